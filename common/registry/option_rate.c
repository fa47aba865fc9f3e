/* option_rate.c: rates as text: "10/s", "600/m,burst=50", "1M/s". */
#include <stdio.h>
#include <string.h>

#include "common/base/io.h"
#include "common/registry/option_type.h"

#define BURST ",burst="

static const struct {
	char letter;
	int64_t ms;
} periods[] = { { 's', 1000 }, { 'm', 60000 }, { 'h', 3600000 } };

/* What its two numbers are. */
static const struct option_type_spec *
numbers(const struct option *o)
{
	return &option_types[o->type == OPTION_RATE ? OPTION_COUNT :
						      OPTION_SIZE];
}

/* 0: no such letter.  Bytes are counted by the second alone. */
static int64_t
period_of(const struct option *o, char letter)
{
	size_t n = o->type == OPTION_RATE ? nitems(periods) : 1;

	for (size_t i = 0; i < n; i++)
		if (periods[i].letter == letter)
			return periods[i].ms;
	return 0;
}

int
option_rate_parse(const struct option *o, const char *text, void *field,
    struct err *e)
{
	const struct option_type_spec *number = numbers(o);
	size_t len = strcspn(text, "/");
	const char *rest = text + len;
	struct rate r = { 0 };
	char first[32];

	if (*rest == '\0' || len >= sizeof(first))
		return option_broken(o, text, e);
	memcpy(first, text, len);
	first[len] = '\0';
	if (number->parse(o, first, &r.n, e) == -1 ||
	    (r.per_ms = period_of(o, rest[1])) == 0)
		return option_broken(o, text, e);
	rest += 2;
	if (*rest != '\0' &&
	    (strncmp(rest, BURST, strlen(BURST)) != 0 ||
		number->parse(o, rest + strlen(BURST), &r.burst, e) == -1))
		return option_broken(o, text, e);
	*(struct rate *)field = r;
	return 0;
}

void
option_rate_format(const struct option *o, const void *field,
    char text[OPTION_TEXT_MAX])
{
	const struct option_type_spec *number = numbers(o);
	const struct rate *r = field;
	char burst[OPTION_TEXT_MAX];
	size_t n;

	number->format(o, &r->n, text);
	n = strlen(text);
	for (size_t i = 0; i < nitems(periods); i++)
		if (periods[i].ms == r->per_ms)
			n += (size_t)snprintf(text + n, OPTION_TEXT_MAX - n,
			    "/%c", periods[i].letter);
	if (r->burst == 0)
		return;
	number->format(o, &r->burst, burst);
	snprintf(text + n, OPTION_TEXT_MAX - n, BURST "%.32s", burst);
}

void
option_rate_rule(const struct option *o, char *buf, size_t size)
{
	char range[64];

	numbers(o)->rule(o, range, sizeof(range));
	if (o->type == OPTION_RATE)
		snprintf(buf, size,
		    "N/s, N/m or N/h, perhaps with " BURST "N (each %s)",
		    range);
	else
		snprintf(buf, size,
		    "SIZE/s, perhaps with " BURST "SIZE (each %s)", range);
}
