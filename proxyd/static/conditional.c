/* conditional.c: see conditional.h. */
#include "proxyd/static/conditional.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "proxyd/static/http_date.h"

void
etag_format(char out[ETAG_MAX], uint64_t size, int64_t s, uint32_t ns,
    enum coding c)
{
	snprintf(out, ETAG_MAX, "\"%" PRIx64 "-%" PRIx64 ".%x%s%s\"", size,
	    (uint64_t)s, ns, c != CODING_NONE ? "-" : "", coding_names[c]);
}

/* The next entity tag of a list, its length with the quotes; 0: no more, or
 * no such thing.  Commas may stand inside the quotes. */
static size_t
next_tag(const char **at, const char *end, bool *weak)
{
	const char *p = *at, *close;

	while (p < end && (*p == ' ' || *p == '\t' || *p == ','))
		p++;
	*weak = end - p >= 2 && p[0] == 'W' && p[1] == '/';
	p += *weak ? 2 : 0;
	if (p == end || *p != '"' ||
	    (close = memchr(p + 1, '"', (size_t)(end - p) - 1)) == NULL)
		return 0;
	*at = close + 1;
	return (size_t)(close + 1 - p);
}

/* Whether a list of entity tags, or "*", names ours. */
static bool
lists_tag(const struct member *m, const char *etag, bool weak_counts)
{
	const char *at = m->text, *end = m->text + m->len;
	size_t len = strlen(etag), n;
	bool weak;

	if (m->len == 1 && *at == '*')
		return true;
	while ((n = next_tag(&at, end, &weak)) > 0)
		if (n == len && memcmp(at - n, etag, len) == 0 &&
		    (!weak || weak_counts))
			return true;
	return false;
}

static bool
take_date(const struct member *m, int64_t now_s, int64_t *date)
{
	return m->text != NULL && http_date_parse(m->text, m->len, now_s, date);
}

/* A date is as good as a strong tag only if the file had a whole second to
 * change in unseen, and did not (section 8.8.2.2). */
static bool
range_holds(const struct member *m, const struct validators *v, int64_t now_s)
{
	int64_t date;
	bool weak;
	const char *at = m->text;
	size_t n = next_tag(&at, m->text + m->len, &weak);

	if (n > 0)
		return !weak && n == strlen(v->etag) &&
		    memcmp(at - n, v->etag, n) == 0;
	return take_date(m, now_s, &date) && date == v->modified_s &&
	    now_s - v->modified_s > 1;
}

enum precondition
precondition(const struct asked *a, const struct validators *v, int64_t now_s)
{
	const struct member *f = a->fields;
	int64_t date;

	if (f[ASKED_IF_MATCH].text != NULL) {
		if (!lists_tag(&f[ASKED_IF_MATCH], v->etag, false))
			return PRECONDITION_FAILED;
	} else if (take_date(&f[ASKED_IF_UNMODIFIED_SINCE], now_s, &date) &&
	    v->modified_s > date) {
		return PRECONDITION_FAILED;
	}
	if (f[ASKED_IF_NONE_MATCH].text != NULL) {
		if (lists_tag(&f[ASKED_IF_NONE_MATCH], v->etag, true))
			return PRECONDITION_UNCHANGED;
	} else if (take_date(&f[ASKED_IF_MODIFIED_SINCE], now_s, &date) &&
	    date <= now_s && v->modified_s <= date) {
		/* A date in the future is no date (section 13.1.3). */
		return PRECONDITION_UNCHANGED;
	}
	if (f[ASKED_RANGE].text != NULL && f[ASKED_IF_RANGE].text != NULL &&
	    !range_holds(&f[ASKED_IF_RANGE], v, now_s))
		return PRECONDITION_WHOLE;
	return PRECONDITION_NONE;
}
