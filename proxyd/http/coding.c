/* coding.c: see coding.h. */
#include "proxyd/http/coding.h"

#include "common/base/io.h"
#include "proxyd/http/fields.h"

const char *const coding_names[CODING_N] = { "", "gzip", "br" };
const char *const coding_ends[CODING_N] = { "", ".gz", ".br" };

/* A weight in thousandths; what is malformed weighs nothing. */
static int
weight(const char *text, size_t len)
{
	int value, unit = 1000;

	while (len > 0 && (*text == ' ' || *text == '\t'))
		text++, len--;
	if (len < 3 || len > 7 || (*text != 'q' && *text != 'Q') ||
	    text[1] != '=' || (text[2] != '0' && text[2] != '1'))
		return 0;
	value = (text[2] - '0') * unit;
	if (len > 3 && text[3] != '.')
		return 0;
	for (size_t i = 4; i < len; i++) {
		if (text[i] < '0' || text[i] > '9')
			return 0;
		unit /= 10;
		value += (text[i] - '0') * unit;
	}
	return value <= 1000 ? value : 0;
}

struct coding_wish
coding_parse(const char *text, size_t len)
{
	struct coding_wish wish = { { CODING_NONE, CODING_NONE } };
	int q[CODING_N] = { 0, -1, -1 }, other = 0;
	const char *at = text;
	struct member m;

	while (field_member(&at, text + len, &m)) {
		size_t n = 0, end;
		int value = 1000;

		while (n < m.len && m.text[n] != ';')
			n++;
		if (n < m.len)
			value = weight(m.text + n + 1, m.len - n - 1);
		for (end = n; end > 0 &&
		     (m.text[end - 1] == ' ' || m.text[end - 1] == '\t');
		     end--)
			continue;
		if (field_is(m.text, end, "gzip") ||
		    field_is(m.text, end, "x-gzip"))
			q[CODING_GZIP] = value;
		else if (field_is(m.text, end, "br"))
			q[CODING_BR] = value;
		else if (field_is(m.text, end, "*"))
			other = value;
	}
	for (int c = CODING_GZIP; c < CODING_N; c++)
		if (q[c] == -1)
			q[c] = other;
	if (q[CODING_BR] > 0 && q[CODING_BR] >= q[CODING_GZIP])
		wish.order[0] = CODING_BR;
	else if (q[CODING_GZIP] > 0)
		wish.order[0] = CODING_GZIP;
	if (q[CODING_BR] > 0 && q[CODING_GZIP] > 0)
		wish.order[1] =
		    wish.order[0] == CODING_BR ? CODING_GZIP : CODING_BR;
	return wish;
}

enum coding
coding_choose(struct coding_wish wish, uint32_t codings)
{
	for (size_t i = 0; i < nitems(wish.order); i++)
		if (wish.order[i] != CODING_NONE &&
		    (codings >> (wish.order[i] - 1) & 1) != 0)
			return wish.order[i];
	return CODING_NONE;
}
