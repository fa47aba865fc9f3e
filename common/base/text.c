/* text.c: see text.h. */
#include "common/base/text.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct unit {
	const char *suffix;
	uint64_t factor;
};

/* clang-format off */
static const struct unit duration_units[] = {
	{ "ms", 1	  },
	{ "s",  1000     },
	{ "m",  60000    },
	{ "h",  3600000  },
	{ "d",  86400000 },
	{ "",   1000     },
	{ NULL, 0	  },
};
/* clang-format on */

/* clang-format off */
static const struct unit size_units[] = {
	{ "",   1	       },
	{ "K",  1024	       },
	{ "k",  1024	       },
	{ "M",  1048576       },
	{ "G",  1073741824    },
	{ "T",  1099511627776 },
	{ NULL, 0	       },
};
/* clang-format on */

static const char *scan_u64(const char *text, uint64_t *value);
static size_t utf8_length(const char *bytes, size_t n);
static int parse_units(const char *what, const char *text, const struct unit *,
    uint64_t max, const char *rule, uint64_t *value, struct err *);

int
text_parse_u64(const char *what, const char *text, uint64_t min, uint64_t max,
    uint64_t *value, struct err *e)
{
	uint64_t v;
	const char *end = scan_u64(text, &v);

	if (end == NULL || *end != '\0' || v < min || v > max)
		return err_set(e, ERR_USAGE,
		    "%s '%.40s' is not a whole number from %" PRIu64
		    " to %" PRIu64,
		    what, text, min, max);
	*value = v;
	return 0;
}

int
text_parse_duration(const char *what, const char *text, int64_t max_ms,
    int64_t *ms, struct err *e)
{
	uint64_t v;

	if (parse_units(what, text, duration_units, (uint64_t)max_ms,
		"a time like 500ms, 30s, 5m, 1h or 90d", &v, e) == -1)
		return -1;
	*ms = (int64_t)v;
	return 0;
}

int
text_parse_size(const char *what, const char *text, uint64_t max,
    uint64_t *bytes, struct err *e)
{
	return parse_units(what, text, size_units, max,
	    "a size like 512, 64K, 100M or 2G", bytes, e);
}

int
text_parse_share(const char *what, const char *text, uint64_t total,
    uint64_t *n, struct err *e)
{
	uint64_t v;
	const char *end = scan_u64(text, &v);

	if (end != NULL && *end == '\0' && v <= 1000000) {
		*n = v;
		return 0;
	}
	if (end == NULL || strcmp(end, "%") != 0 || v > 100)
		return err_set(e, ERR_USAGE,
		    "%s '%.40s' is neither a number nor a share like 25%%",
		    what, text);
	*n = total * v / 100;
	return 0;
}

bool
text_is_env_name(const char *name, size_t len)
{
	if (len == 0 || isdigit((unsigned char)*name))
		return false;
	for (size_t i = 0; i < len; i++)
		if (!isalnum((unsigned char)name[i]) && name[i] != '_')
			return false;
	return true;
}

bool
text_is_utf8(const char *bytes, size_t n)
{
	while (n > 0) {
		size_t len = utf8_length(bytes, n);

		if (len == 0)
			return false;
		bytes += len;
		n -= len;
	}
	return true;
}

/* Bytes of the character at the front; 0: there is none (RFC 3629). */
static size_t
utf8_length(const char *bytes, size_t n)
{
	const unsigned char *p = (const unsigned char *)bytes;
	unsigned char low = 0x80, high = 0xbf;
	size_t len;

	if (p[0] < 0x80)
		return 1;
	len = p[0] >= 0xc2 && p[0] <= 0xdf ? 2 :
	    (p[0] & 0xf0) == 0xe0	   ? 3 :
	    p[0] >= 0xf0 && p[0] <= 0xf4   ? 4 :
					     0;
	if (len == 0 || len > n)
		return 0;
	switch (p[0]) {
	case 0xe0:
		low = 0xa0;
		break;
	case 0xed:
		high = 0x9f;
		break;
	case 0xf0:
		low = 0x90;
		break;
	case 0xf4:
		high = 0x8f;
		break;
	}
	if (p[1] < low || p[1] > high)
		return 0;
	for (size_t i = 2; i < len; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	return len;
}

void
text_format_duration(int64_t ms, char *buf, size_t size)
{
	int64_t s = ms / 1000;

	if (ms < 0)
		snprintf(buf, size, "-");
	else if (ms < 1000)
		snprintf(buf, size, "%" PRId64 "ms", ms);
	else if (s < 10)
		snprintf(buf, size, "%" PRId64 ".%" PRId64 "s", s,
		    ms % 1000 / 100);
	else if (s < 60)
		snprintf(buf, size, "%" PRId64 "s", s);
	else if (s < 3600)
		snprintf(buf, size, "%" PRId64 "m%" PRId64 "s", s / 60, s % 60);
	else if (s < 86400)
		snprintf(buf, size, "%" PRId64 "h%" PRId64 "m", s / 3600,
		    s % 3600 / 60);
	else
		snprintf(buf, size, "%" PRId64 "d%" PRId64 "h", s / 86400,
		    s % 86400 / 3600);
}

void
text_format_size(uint64_t bytes, char *buf, size_t size)
{
	static const char units[] = "KMGTPE";
	double v = (double)bytes;
	size_t u = 0;

	if (bytes < 1024) {
		snprintf(buf, size, "%" PRIu64, bytes);
		return;
	}
	for (v /= 1024; v >= 1023.5 && units[u + 1] != '\0'; v /= 1024)
		u++;
	snprintf(buf, size, v < 9.95 ? "%.1f%c" : "%.0f%c", v, units[u]);
}

/* Decimal digits only (strtoull takes signs and spaces); NULL when there is
 * none or the value does not fit. */
static const char *
scan_u64(const char *text, uint64_t *value)
{
	const char *p = text;
	uint64_t v = 0;

	for (; *p >= '0' && *p <= '9'; p++)
		if (__builtin_mul_overflow(v, 10, &v) ||
		    __builtin_add_overflow(v, (uint64_t)(*p - '0'), &v))
			return NULL;
	if (p == text)
		return NULL;
	*value = v;
	return p;
}

static int
parse_units(const char *what, const char *text, const struct unit *units,
    uint64_t max, const char *rule, uint64_t *value, struct err *e)
{
	uint64_t v;
	const char *end = scan_u64(text, &v);

	for (; end != NULL && units->suffix != NULL; units++) {
		if (strcmp(end, units->suffix) != 0)
			continue;
		if (__builtin_mul_overflow(v, units->factor, &v) || v > max)
			return err_set(e, ERR_USAGE, "%s '%.40s' is too large",
			    what, text);
		*value = v;
		return 0;
	}
	return err_set(e, ERR_USAGE, "%s '%.40s' is not %s", what, text, rule);
}
