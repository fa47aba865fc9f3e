/* pattern.c: see pattern.h. */
#include "common/nodeset/pattern.h"

#include <arpa/inet.h>
#include <string.h>

#include "common/nodeset/number.h"
#include "common/nodeset/ranges.h"

#define SHOWN 64 /* bytes of what was typed in an error text */

/* A text on its way to a pattern. */
struct scan {
	const char *text; /* whole, for errors */
	size_t text_len;
	const char *p, *end;
	char *pattern;
	size_t len;	/* of the pattern */
	size_t longest; /* of the names it makes */
	struct ranges axis[NODESET_DIMS];
	size_t n_axes;
};

/* One number of a text: digits, brackets or digits around brackets. */
struct item {
	const char *before, *inner, *after;
	size_t n_before, n_inner, n_after; /* inner NULL: no brackets */
};

/* The digits that a pattern has before and behind one of its numbers. */
struct affix {
	uint64_t before, after;
	size_t n_before, n_after;
};

static bool is_digit(char);
static int check_bytes(const struct scan *, struct err *);
static bool take_address(struct scan *);
static int scan_text(struct scan *, struct err *);
static size_t n_colons(const struct scan *);
static int scan_number(struct scan *, struct err *);
static int split_item(struct scan *, struct item *, struct err *);
static int add_item(struct scan *, const struct item *, struct err *);
static int add_ranges(struct scan *, const struct item *, struct ranges *,
    struct err *);
static uint64_t join_digits(const struct item *, uint64_t number);
static int put_number(struct scan *, size_t longest, struct err *);
static int put(struct scan *, const char *bytes, size_t n, size_t longest,
    struct err *);
static int bad(const struct scan *, const char *why, struct err *);
static struct grid *make_grid(struct scan *);
static size_t affixes(const char *pattern, struct affix *);
static int widen(const struct grid *, const struct affix *, struct grid **);
static int widen_span(const struct span *, const struct affix *,
    struct grid *sub, struct grid_maker *);

int
pattern_parse(const char *text, size_t len, char pattern[NODESET_NAME_MAX + 1],
    struct grid **g, struct err *e)
{
	struct scan s = { .text = text,
		.text_len = len,
		.p = text,
		.end = text + len,
		.pattern = pattern };
	struct grid *made = NULL;

	if (check_bytes(&s, e) == 0 &&
	    (take_address(&s) || scan_text(&s, e) == 0)) {
		pattern[s.len] = '\0';
		if ((made = make_grid(&s)) == NULL)
			err_set(e, ERR_LOCAL, "out of memory");
	}
	for (size_t i = 0; i < s.n_axes; i++)
		ranges_fini(&s.axis[i]);
	if (made == NULL)
		return -1;
	*g = made;
	return 0;
}

bool
pattern_touches(const char *pattern)
{
	for (const char *p = pattern; (p = strchr(p, PATTERN_NUMBER)) != NULL;
	     p++)
		if ((p > pattern && is_digit(p[-1])) || is_digit(p[1]))
			return true;
	return false;
}

void
pattern_plain(const char *pattern, char plain[NODESET_NAME_MAX + 1])
{
	size_t n = 0;

	for (const char *p = pattern; *p != '\0';) {
		const char *run = p;
		bool number = false;

		while (is_digit(*p) || *p == PATTERN_NUMBER)
			number |= *p++ == PATTERN_NUMBER;
		if (number) {
			plain[n++] = PATTERN_NUMBER;
			continue;
		}
		if (p == run)
			p++;
		memcpy(plain + n, run, (size_t)(p - run));
		n += (size_t)(p - run);
	}
	plain[n] = '\0';
}

int
pattern_plain_grid(const char *pattern, const struct grid *g, struct grid **out)
{
	struct affix affix[NODESET_DIMS];

	affixes(pattern, affix);
	return widen(g, affix, out);
}

bool
pattern_match(const char *pattern, const char *name,
    uint64_t tuple[NODESET_DIMS])
{
	size_t n = 0;

	for (const char *p = pattern; *p != '\0'; p++) {
		size_t len, after = 0;

		if (*p != PATTERN_NUMBER) {
			if (*name++ != *p)
				return false;
			continue;
		}
		for (len = 0; is_digit(name[len]); len++)
			;
		while (is_digit(p[1 + after]))
			after++;
		if (len <= after || len - after > NUMBER_DIGITS)
			return false;
		tuple[n++] = number_parse(name, len - after);
		name += len - after;
	}
	return *name == '\0';
}

void
pattern_name(const char *pattern, const uint64_t *tuple,
    char name[NODESET_NAME_MAX + 1])
{
	for (const char *p = pattern; *p != '\0'; p++) {
		if (*p == PATTERN_NUMBER)
			name += number_format(*tuple++, name);
		else
			*name++ = *p;
	}
	*name = '\0';
}

static bool
is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static int
check_bytes(const struct scan *s, struct err *e)
{
	if (s->text_len == 0)
		return bad(s, "a name is empty", e);
	for (const char *p = s->text; p < s->end; p++)
		if ((unsigned char)*p < ' ' || *p == 0x7f)
			return bad(s, "it holds a control byte", e);
	return 0;
}

/*
 * IPv6, bare (with a zone) or in brackets (with a port).  Digits of an
 * address do not fold.  Brackets without a port are only a way to write it.
 */
static bool
take_address(struct scan *s)
{
	const char *host = s->p, *end = s->end, *zone, *close;
	char text[INET6_ADDRSTRLEN];
	struct in6_addr ip;

	if (*host == '[') {
		if ((close = memchr(host, ']', s->text_len)) == NULL)
			return false;
		host++;
		end = close;
	}
	zone = memchr(host, '%', (size_t)(end - host));
	if (zone == end - 1)
		return false;
	if (zone == NULL)
		zone = end;
	if ((size_t)(zone - host) >= sizeof(text) ||
	    s->text_len > NODESET_NAME_MAX)
		return false;
	memcpy(text, host, (size_t)(zone - host));
	text[zone - host] = '\0';
	for (const char *p = zone; p < end; p++)
		if (*p == '[' || *p == ']')
			return false;
	if (inet_pton(AF_INET6, text, &ip) != 1)
		return false;
	if (host > s->text && end + 1 < s->end) {
		if (end[1] != ':' || end + 2 == s->end)
			return false;
		for (const char *p = end + 2; p < s->end; p++)
			if (!is_digit(*p))
				return false;
		host = s->text;
		end = s->end;
	}
	s->len = (size_t)(end - host);
	memcpy(s->pattern, host, s->len);
	return true;
}

static int
scan_text(struct scan *s, struct err *e)
{
	if (n_colons(s) >= 2 && memchr(s->text, '[', s->text_len) != NULL)
		return bad(s, "an IPv6 address takes no range", e);
	if (n_colons(s) >= 2)
		return put(s, s->text, s->text_len, s->text_len, e);
	while (s->p < s->end) {
		int rv;

		if (*s->p == ']')
			return bad(s, "a ']' has no '['", e);
		if (*s->p == '[' || is_digit(*s->p))
			rv = scan_number(s, e);
		else
			rv = put(s, s->p++, 1, 1, e);
		if (rv == -1)
			return -1;
	}
	return 0;
}

/* Two make an address, or what was meant to be one: it is left whole. */
static size_t
n_colons(const struct scan *s)
{
	size_t n = 0;

	for (const char *p = s->text; p < s->end; p++)
		n += *p == ':';
	return n;
}

static int
scan_number(struct scan *s, struct err *e)
{
	struct item item;
	uint64_t number;

	if (split_item(s, &item, e) == -1)
		return -1;
	if (item.inner != NULL)
		return add_item(s, &item, e);
	if (item.n_before > NUMBER_DIGITS || s->n_axes == NODESET_DIMS)
		return put(s, item.before, item.n_before, item.n_before, e);
	number = number_parse(item.before, item.n_before);
	if (ranges_add(&s->axis[s->n_axes], number, number, e) == -1)
		return -1;
	s->n_axes++;
	return put_number(s, item.n_before, e);
}

/* Where the digits and brackets of one number lie.  Moves behind them. */
static int
split_item(struct scan *s, struct item *item, struct err *e)
{
	const char *close;

	*item = (struct item){ .before = s->p };
	while (s->p < s->end && is_digit(*s->p))
		s->p++;
	item->n_before = (size_t)(s->p - item->before);
	if (s->p == s->end || *s->p != '[')
		return 0;
	item->inner = s->p + 1;
	close = memchr(item->inner, ']', (size_t)(s->end - item->inner));
	if (close == NULL)
		return bad(s, "a '[' has no ']'", e);
	item->n_inner = (size_t)(close - item->inner);
	if (memchr(item->inner, '[', item->n_inner) != NULL)
		return bad(s, "a '[' stands within brackets", e);
	item->after = s->p = close + 1;
	while (s->p < s->end && is_digit(*s->p))
		s->p++;
	item->n_after = (size_t)(s->p - item->after);
	if (s->p < s->end && *s->p == '[')
		return bad(s, "two ranges meet in one number", e);
	return 0;
}

static int
add_item(struct scan *s, const struct item *item, struct err *e)
{
	struct ranges r = { NULL, 0, 0, 0 };
	bool fixed = item->n_before > 0 && item->before[0] == '0';
	int rv = -1;

	if (ranges_parse(&r, item->inner, item->n_inner, fixed, e) == -1)
		err_wrap(e, "'%.*s'",
		    (int)(s->text_len < SHOWN ? s->text_len : SHOWN), s->text);
	else
		rv = add_ranges(s, item, &r, e);
	ranges_fini(&r);
	return rv;
}

static int
add_ranges(struct scan *s, const struct item *item, struct ranges *r,
    struct err *e)
{
	size_t n_inner = number_len(r->v[r->n - 1].hi);
	size_t n_all = item->n_before + n_inner + item->n_after;
	bool single = r->n == 1 && r->v[0].lo == r->v[0].hi;

	if (n_all > NUMBER_DIGITS)
		return bad(s, "a number has more than 18 digits", e);
	if (s->n_axes == NODESET_DIMS)
		return bad(s, "a name has more than 16 numbers", e);
	if (single) {
		r->v[0].lo = r->v[0].hi = join_digits(item, r->v[0].lo);
		if (put_number(s, n_all, e) == -1)
			return -1;
	} else if (put(s, item->before, item->n_before, item->n_before, e) ==
		-1 ||
	    put_number(s, n_inner, e) == -1 ||
	    put(s, item->after, item->n_after, item->n_after, e) == -1) {
		return -1;
	}
	s->axis[s->n_axes++] = *r;
	*r = (struct ranges){ NULL, 0, 0, 0 };
	return 0;
}

/* A single number in brackets, with the digits around it: 2[1]0 is 210. */
static uint64_t
join_digits(const struct item *item, uint64_t number)
{
	char digits[NUMBER_DIGITS];
	size_t n = item->n_before;

	memcpy(digits, item->before, n);
	n += number_format(number, digits + n);
	memcpy(digits + n, item->after, item->n_after);
	return number_parse(digits, n + item->n_after);
}

/* The mark of a number of up to `longest` digits. */
static int
put_number(struct scan *s, size_t longest, struct err *e)
{
	return put(s, &(char){ PATTERN_NUMBER }, 1, longest, e);
}

/* n bytes more of pattern, which are up to `longest` more of the name. */
static int
put(struct scan *s, const char *bytes, size_t n, size_t longest, struct err *e)
{
	if (longest > NODESET_NAME_MAX - s->longest)
		return bad(s, "a name has more than 255 bytes", e);
	memcpy(s->pattern + s->len, bytes, n);
	s->len += n;
	s->longest += longest;
	return 0;
}

static int
bad(const struct scan *s, const char *why, struct err *e)
{
	return err_set(e, ERR_USAGE, "bad node set '%.*s': %s",
	    (int)(s->text_len < SHOWN ? s->text_len : SHOWN), s->text, why);
}

static struct grid *
make_grid(struct scan *s)
{
	struct grid *g = grid_unit();

	for (size_t i = s->n_axes; i-- > 0 && g != NULL;)
		g = ranges_grid(&s->axis[i], g);
	return g;
}

/* Of all numbers of a pattern; returns how many there are. */
static size_t
affixes(const char *pattern, struct affix *affix)
{
	const char *p = pattern;
	size_t n = 0;

	while ((p = strchr(p, PATTERN_NUMBER)) != NULL) {
		struct affix *a = &affix[n++];
		const char *before = p++;

		*a = (struct affix){ 0, 0, 0, 0 };
		while (before > pattern && is_digit(before[-1]))
			before--;
		for (; before < p - 1; before++, a->n_before++)
			a->before = a->before * 10 + (uint64_t)(*before - '0');
		for (; is_digit(*p); p++, a->n_after++)
			a->after = a->after * 10 + (uint64_t)(*p - '0');
	}
	return n;
}

static int
widen(const struct grid *g, const struct affix *affix, struct grid **out)
{
	struct grid_maker m = { NULL, 0 };
	struct grid *sub;

	if (g->depth == 0) {
		*out = grid_unit();
		return 0;
	}
	for (size_t i = 0; i < g->n; i++) {
		if (widen(g->span[i].sub, affix + 1, &sub) == -1)
			goto fail;
		if (widen_span(&g->span[i], affix, sub, &m) == -1)
			goto fail;
	}
	if ((*out = grid_made(&m)) != NULL)
		return 0;
fail:
	grid_unmake(&m);
	return -1;
}

/* Digits before a range move it; digits behind it part its numbers.  Both
 * keep their order. */
static int
widen_span(const struct span *s, const struct affix *a, struct grid *sub,
    struct grid_maker *m)
{
	uint64_t lo = s->lo, hi;
	int rv = 0;

	for (; rv == 0 && lo <= s->hi; lo = hi + 1) {
		size_t len = number_len(lo);
		size_t all = a->n_before + len + a->n_after;
		uint64_t base = a->before * number_power(len + a->n_after) +
		    a->after,
			 scale = number_power(a->n_after);

		hi = number_last(len) < s->hi ? number_last(len) : s->hi;
		if (a->n_after > 0)
			hi = lo;
		rv = grid_append(m,
		    number_make(base + number_value(lo) * scale, all),
		    number_make(base + number_value(hi) * scale, all),
		    grid_ref(sub));
	}
	grid_unref(sub);
	return rv;
}
