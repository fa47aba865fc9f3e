/* ranges.c: see ranges.h. */
#include "common/nodeset/ranges.h"

#include <stdlib.h>
#include <string.h>

#include "common/nodeset/nodeset.h"
#include "common/nodeset/number.h"

/* A run of digits in the text. */
struct digits {
	const char *at;
	size_t len;
};

/* "lo-hi/step"; a single number has lo = hi and step 1. */
struct item {
	struct digits lo, hi;
	uint64_t step;
};

static int item_parse(const char *text, size_t len, struct item *,
    struct err *);
static int item_check(const struct item *, const char *text, size_t len,
    bool fixed, struct err *);
static int item_add(struct ranges *, const struct item *, struct err *);
static int take_digits(const char **p, const char *end, struct digits *);
static void skip_spaces(const char **p, const char *end);
static bool padded(struct digits);
static uint64_t value(struct digits);
static size_t n_digits(uint64_t value);
static int by_start(const void *, const void *);

int
ranges_parse(struct ranges *r, const char *text, size_t len, bool fixed,
    struct err *e)
{
	const char *end = text + len;

	for (;;) {
		const char *comma = memchr(text, ',', (size_t)(end - text));
		size_t n = (size_t)((comma != NULL ? comma : end) - text);
		struct item item;

		if (item_parse(text, n, &item, e) == -1 ||
		    item_check(&item, text, n, fixed, e) == -1 ||
		    item_add(r, &item, e) == -1)
			return -1;
		if (comma == NULL)
			break;
		text = comma + 1;
	}
	ranges_settle(r);
	return 0;
}

int
ranges_add(struct ranges *r, uint64_t lo, uint64_t hi, struct err *e)
{
	struct range *v;
	size_t size;

	r->count += hi - lo + 1;
	if (r->count > NODESET_MAX)
		return err_set(e, ERR_USAGE,
		    "more than %d names, the most that one set holds",
		    NODESET_MAX);
	if (r->n == r->size) {
		size = r->size == 0 ? 4 : r->size * 2;
		if ((v = reallocarray(r->v, size, sizeof(*v))) == NULL)
			return err_set(e, ERR_LOCAL, "out of memory");
		r->v = v;
		r->size = size;
	}
	r->v[r->n++] = (struct range){ lo, hi };
	return 0;
}

void
ranges_settle(struct ranges *r)
{
	size_t n = 0;

	if (r->n > 1)
		qsort(r->v, r->n, sizeof(r->v[0]), by_start);
	for (size_t i = 0; i < r->n; i++) {
		if (n == 0 || r->v[n - 1].hi + 1 < r->v[i].lo)
			r->v[n++] = r->v[i];
		else if (r->v[n - 1].hi < r->v[i].hi)
			r->v[n - 1].hi = r->v[i].hi;
	}
	r->n = n;
}

struct grid *
ranges_grid(const struct ranges *r, struct grid *sub)
{
	struct grid_maker m = { NULL, 0 };
	struct grid *g = NULL;

	for (size_t i = 0; i < r->n; i++)
		if (grid_append(&m, r->v[i].lo, r->v[i].hi, grid_ref(sub)) ==
		    -1)
			goto out;
	g = grid_made(&m);
out:
	grid_unmake(&m);
	grid_unref(sub);
	return g;
}

void
ranges_fini(struct ranges *r)
{
	free(r->v);
	*r = (struct ranges){ NULL, 0, 0, 0 };
}

static int
item_parse(const char *text, size_t len, struct item *item, struct err *e)
{
	const char *p = text, *end = text + len;
	struct digits step;

	item->step = 1;
	if (take_digits(&p, end, &item->lo) == -1)
		goto bad;
	item->hi = item->lo;
	if (p < end && *p == '-') {
		p++;
		if (take_digits(&p, end, &item->hi) == -1)
			goto bad;
		if (p < end && *p == '/') {
			p++;
			if (take_digits(&p, end, &step) == -1)
				goto bad;
			item->step = value(step);
		}
	}
	if (p == end)
		return 0;
bad:
	return err_set(e, ERR_USAGE,
	    "'%.*s' is not a number, a range 1-9 or a range with a step "
	    "1-9/2 (of at most %d digits)",
	    (int)(len < 64 ? len : 64), text, NUMBER_DIGITS);
}

static int
item_check(const struct item *item, const char *text, size_t len, bool fixed,
    struct err *e)
{
	const char *why = NULL;

	if (item->step == 0)
		why = "a step is at least 1";
	else if (item->lo.len != item->hi.len &&
	    (fixed || padded(item->lo) || padded(item->hi)))
		why = "with leading zeros both ends have as many digits";
	else if (value(item->lo) > value(item->hi))
		why = "its first number is above its last";
	if (why == NULL)
		return 0;
	return err_set(e, ERR_USAGE, "bad range '%.*s': %s",
	    (int)(len < 64 ? len : 64), text, why);
}

static int
item_add(struct ranges *r, const struct item *item, struct err *e)
{
	uint64_t v = value(item->lo), last = value(item->hi);
	size_t len;

	while (v <= last) {
		uint64_t hi = v;

		/* Without zeros the digits grow on the way: 8-11. */
		len = item->lo.len == item->hi.len ? item->lo.len : n_digits(v);
		if (item->step == 1) {
			hi = number_power(len) - 1;
			if (hi > last)
				hi = last;
		}
		if (ranges_add(r, number_make(v, len), number_make(hi, len),
			e) == -1)
			return -1;
		v = hi + item->step;
	}
	return 0;
}

/* Digits with spaces around them. */
static int
take_digits(const char **p, const char *end, struct digits *d)
{
	skip_spaces(p, end);
	d->at = *p;
	while (*p < end && **p >= '0' && **p <= '9')
		(*p)++;
	d->len = (size_t)(*p - d->at);
	skip_spaces(p, end);
	return d->len >= 1 && d->len <= NUMBER_DIGITS ? 0 : -1;
}

static void
skip_spaces(const char **p, const char *end)
{
	while (*p < end && (**p == ' ' || **p == '\t'))
		(*p)++;
}

static bool
padded(struct digits d)
{
	return d.len > 1 && d.at[0] == '0';
}

static uint64_t
value(struct digits d)
{
	return number_value(number_parse(d.at, d.len));
}

static size_t
n_digits(uint64_t v)
{
	size_t n = 1;

	while (n < NUMBER_DIGITS && v >= number_power(n))
		n++;
	return n;
}

static int
by_start(const void *a, const void *b)
{
	const struct range *x = a, *y = b;

	return (x->lo > y->lo) - (x->lo < y->lo);
}
