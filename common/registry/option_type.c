/* option_type.c: see option_type.h. */
#include "common/registry/option_type.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/text.h"

struct unit {
	const char *suffix;
	int64_t factor;
};

static const struct unit time_units[] = {
	{ "d", 86400000 },
	{ "h", 3600000 },
	{ "m", 60000 },
	{ "s", 1000 },
	{ "ms", 1 },
};
static const struct unit size_units[] = {
	{ "T", 1LL << 40 },
	{ "G", 1 << 30 },
	{ "M", 1 << 20 },
	{ "K", 1 << 10 },
	{ "", 1 },
};

static bool printable(const char *text);

/* ---- whole numbers ---------------------------------------------------- */

static int
check_range(const struct option *o, int64_t value, const char *text,
    struct err *e)
{
	return value >= o->min && value <= o->max ? 0 :
						    option_broken(o, text, e);
}

static int
parse_count(const struct option *o, const char *text, void *field,
    struct err *e)
{
	uint64_t v;

	if (text_parse_u64(o->name, text, 0, INT64_MAX, &v, e) == -1)
		return option_broken(o, text, e);
	if (check_range(o, (int64_t)v, text, e) == -1)
		return -1;
	*(int64_t *)field = (int64_t)v;
	return 0;
}

static void
format_count(const struct option *o, const void *field, char *text)
{
	(void)o;
	snprintf(text, OPTION_TEXT_MAX, "%" PRId64, *(const int64_t *)field);
}

static void
rule_count(const struct option *o, char *buf, size_t size)
{
	snprintf(buf, size, "%" PRId64 "..%" PRId64, o->min, o->max);
}

/* ---- times and sizes: the largest unit that says it exactly ----------- */

static void
format_units(const struct unit *units, int64_t v, char *text, size_t size)
{
	while (units->factor > 1 && (v == 0 || v % units->factor != 0))
		units++;
	snprintf(text, size, "%" PRId64 "%s", v / units->factor, units->suffix);
}

static void
rule_units(const struct option *o, const struct unit *units, char *buf,
    size_t size)
{
	char low[32], high[32];

	format_units(units, o->min, low, sizeof(low));
	format_units(units, o->max, high, sizeof(high));
	snprintf(buf, size, "%s..%s", low, high);
}

static int
parse_duration(const struct option *o, const char *text, void *field,
    struct err *e)
{
	int64_t ms;

	if (text_parse_duration(o->name, text, INT64_MAX, &ms, e) == -1)
		return option_broken(o, text, e);
	if (check_range(o, ms, text, e) == -1)
		return -1;
	*(int64_t *)field = ms;
	return 0;
}

static void
format_duration(const struct option *o, const void *field, char *text)
{
	(void)o;
	format_units(time_units, *(const int64_t *)field, text,
	    OPTION_TEXT_MAX);
}

static void
rule_duration(const struct option *o, char *buf, size_t size)
{
	rule_units(o, time_units, buf, size);
}

static int
parse_size(const struct option *o, const char *text, void *field, struct err *e)
{
	uint64_t v;

	if (text_parse_size(o->name, text, INT64_MAX, &v, e) == -1)
		return option_broken(o, text, e);
	if (check_range(o, (int64_t)v, text, e) == -1)
		return -1;
	*(int64_t *)field = (int64_t)v;
	return 0;
}

static void
format_size(const struct option *o, const void *field, char *text)
{
	(void)o;
	format_units(size_units, *(const int64_t *)field, text,
	    OPTION_TEXT_MAX);
}

static void
rule_size(const struct option *o, char *buf, size_t size)
{
	rule_units(o, size_units, buf, size);
}

/* ---- words ------------------------------------------------------------ */

/* The nth of "a|b|c", or the index of a word in it (-1: none). */
static const char *
nth_word(const char *words, int64_t n, size_t *len)
{
	for (; n > 0 && *words != '\0'; n--) {
		words += strcspn(words, "|");
		words += *words == '|';
	}
	*len = strcspn(words, "|");
	return words;
}

static int64_t
word_index(const char *words, const char *text)
{
	size_t len = strlen(text), n;

	for (int64_t i = 0; *words != '\0'; i++) {
		n = strcspn(words, "|");
		if (n == len && memcmp(words, text, len) == 0)
			return i;
		words += n + (words[n] == '|');
	}
	return -1;
}

static int
parse_word(const struct option *o, const char *text, void *field, struct err *e)
{
	int64_t i = word_index(o->words, text);

	if (i == -1)
		return option_broken(o, text, e);
	*(int64_t *)field = i;
	return 0;
}

static void
format_word(const struct option *o, const void *field, char *text)
{
	size_t len;
	const char *w = nth_word(o->words, *(const int64_t *)field, &len);

	snprintf(text, OPTION_TEXT_MAX, "%.*s", (int)len, w);
}

static void
rule_word(const struct option *o, char *buf, size_t size)
{
	snprintf(buf, size, "%s", o->words);
}

static int
parse_bool(const struct option *o, const char *text, void *field, struct err *e)
{
	static const char words[] = "off|on|no|yes|false|true|0|1";
	int64_t i = word_index(words, text);

	if (i == -1)
		return option_broken(o, text, e);
	*(int64_t *)field = i % 2;
	return 0;
}

static void
format_bool(const struct option *o, const void *field, char *text)
{
	(void)o;
	snprintf(text, OPTION_TEXT_MAX, "%s",
	    *(const int64_t *)field != 0 ? "on" : "off");
}

static void
rule_bool(const struct option *o, char *buf, size_t size)
{
	(void)o;
	snprintf(buf, size, "on|off");
}

/* ---- text and lists --------------------------------------------------- */

static int
check_item(const struct option *o, const char *text, struct err *e)
{
	if (o->check == NULL || o->check(text, e) == 0)
		return 0;
	return err_wrap(e, "%s", o->name);
}

static int
parse_text(const struct option *o, const char *text, void *field, struct err *e)
{
	size_t len = strlen(text);

	if (len >= o->size || !printable(text) ||
	    (len == 0 && *o->fallback != '\0'))
		return option_broken(o, text, e);
	if (len > 0 && check_item(o, text, e) == -1)
		return -1;
	memcpy(field, text, len + 1);
	return 0;
}

static void
format_text(const struct option *o, const void *field, char *text)
{
	(void)o;
	snprintf(text, OPTION_TEXT_MAX, "%s", (const char *)field);
}

static void
rule_text(const struct option *o, char *buf, size_t size)
{
	snprintf(buf, size, "%sprintable text of at most %zu bytes",
	    *o->fallback != '\0' ? "non-empty " : "", o->size - 1);
}

static int
parse_list(const struct option *o, const char *text, void *field, struct err *e)
{
	char out[OPTION_TEXT_MAX], item[OPTION_TEXT_MAX];
	size_t n_items = 0, used = 0;

	assert(o->size <= sizeof(out));
	if (!printable(text))
		return option_broken(o, text, e);
	for (const char *p = text;;) {
		size_t n;

		p += strspn(p, " ,");
		if ((n = strcspn(p, " ,")) == 0)
			break;
		if (used + n + 1 >= o->size)
			return option_broken(o, text, e);
		memcpy(item, p, n);
		item[n] = '\0';
		if (check_item(o, item, e) == -1)
			return -1;
		used += (size_t)snprintf(out + used, sizeof(out) - used, "%s%s",
		    n_items > 0 ? " " : "", item);
		n_items++;
		p += n;
	}
	if ((int64_t)n_items < o->min || (int64_t)n_items > o->max)
		return option_broken(o, text, e);
	memcpy(field, n_items > 0 ? out : "", n_items > 0 ? used + 1 : 1);
	return 0;
}

static void
rule_list(const struct option *o, char *buf, size_t size)
{
	snprintf(buf, size,
	    "a list of %" PRId64 "..%" PRId64 " items, at most %zu bytes",
	    o->min, o->max, o->size - 1);
}

static bool
printable(const char *text)
{
	if (!text_is_utf8(text, strlen(text)))
		return false;
	for (; *text != '\0'; text++)
		if ((unsigned char)*text < 0x20 || *text == 0x7f)
			return false;
	return true;
}

int
option_broken(const struct option *o, const char *text, struct err *e)
{
	char rule[OPTION_TEXT_MAX];

	option_rule(o, rule, sizeof(rule));
	return err_set(e, ERR_USAGE, "%s '%.60s' is not %s", o->name, text,
	    rule);
}

const struct option_type_spec option_types[] = {
	[OPTION_BOOL] = { parse_bool, format_bool, rule_bool },
	[OPTION_COUNT] = { parse_count, format_count, rule_count },
	[OPTION_DURATION] = { parse_duration, format_duration, rule_duration },
	[OPTION_SIZE] = { parse_size, format_size, rule_size },
	[OPTION_RATE] = { option_rate_parse, option_rate_format,
	    option_rate_rule },
	[OPTION_BANDWIDTH] = { option_rate_parse, option_rate_format,
	    option_rate_rule },
	[OPTION_WORD] = { parse_word, format_word, rule_word },
	[OPTION_TEXT] = { parse_text, format_text, rule_text },
	[OPTION_LIST] = { parse_list, format_text, rule_list },
};
