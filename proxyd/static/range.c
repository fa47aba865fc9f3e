/* range.c: see range.h. */
#include "proxyd/static/range.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

struct spec {
	bool has_first, has_last;
	uint64_t first, last;
};

/* Digits at *at; a number too large is the largest.  False: no digit. */
static bool
take_number(const char **at, const char *end, uint64_t *n)
{
	const char *p = *at;
	uint64_t value = 0;

	for (; p < end && *p >= '0' && *p <= '9'; p++)
		if (__builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, (uint64_t)(*p - '0'), &value))
			value = UINT64_MAX / 16;
	if (p == *at)
		return false;
	*at = p;
	*n = value;
	return true;
}

static void
skip_space(const char **at, const char *end)
{
	while (*at < end && (**at == ' ' || **at == '\t'))
		(*at)++;
}

/* "1-2", "1-" or "-2", with white space around. */
static bool
take_spec(const char **at, const char *end, struct spec *s)
{
	skip_space(at, end);
	s->has_first = take_number(at, end, &s->first);
	if (*at == end || **at != '-')
		return false;
	(*at)++;
	s->has_last = take_number(at, end, &s->last);
	skip_space(at, end);
	return (s->has_first || s->has_last) &&
	    !(s->has_first && s->has_last && s->last < s->first);
}

/* What of it the file has; false: nothing. */
static bool
fit(const struct spec *s, uint64_t size, struct range *r)
{
	if (!s->has_first) {
		uint64_t n = s->last < size ? s->last : size;

		*r = (struct range){ size - n, n };
		return n > 0;
	}
	if (s->first >= size)
		return false;
	r->first = s->first;
	r->size = s->has_last && s->last < size - 1 ? s->last - s->first + 1 :
						      size - s->first;
	return true;
}

static bool
overlaps(const struct range_set *set, const struct range *r)
{
	for (unsigned i = 0; i < set->n; i++)
		if (r->first < set->parts[i].first + set->parts[i].size &&
		    set->parts[i].first < r->first + r->size)
			return true;
	return false;
}

enum range_result
range_parse(const char *text, size_t len, uint64_t size, struct range_set *set)
{
	static const char unit[] = "bytes=";
	const char *at = text + sizeof(unit) - 1, *end = text + len;
	unsigned n = 0;

	set->n = 0;
	if (len < sizeof(unit) ||
	    strncasecmp(text, unit, sizeof(unit) - 1) != 0)
		return RANGE_WHOLE;
	for (;; at++) {
		struct spec s = { 0 };
		struct range r;

		if (!take_spec(&at, end, &s) || n++ == RANGES_MAX ||
		    (at < end && *at != ','))
			return RANGE_WHOLE;
		if (fit(&s, size, &r)) {
			if (overlaps(set, &r))
				return RANGE_WHOLE;
			set->parts[set->n++] = r;
		}
		if (at == end)
			return set->n > 0 ? RANGE_PARTS : RANGE_UNSATISFIABLE;
	}
}
