/* fold.c: nodeset_fold, the canonical text of a set. */
#include "common/nodeset/nodeset.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/nodeset/boxes.h"
#include "common/nodeset/number.h"
#include "common/nodeset/pattern.h"
#include "common/nodeset/set.h"

/* Numbers that are written as one range, lo-hi. */
struct run {
	uint64_t lo, hi;
};

struct runs {
	struct run *v;
	size_t n;
};

static int fold_entry(FILE *, const struct entry *, const char *sep);
static int put_box(FILE *, const char *pattern, const struct box *);
static int put_axis(FILE *, const struct grid *);
static int split_runs(const struct grid *, struct runs *);
static void add_run(struct runs *, uint64_t lo, uint64_t hi);
static bool is_padded(uint64_t number);
static void put_number(FILE *, uint64_t number);
static int by_value(const void *, const void *);

int
nodeset_fold(const struct nodeset *s, const char *sep, char **text,
    struct err *e)
{
	char *buf = NULL;
	size_t size;
	FILE *f;
	int rv = 0;

	if (nodeset_settle(s, e) == -1)
		return -1;
	if ((f = open_memstream(&buf, &size)) == NULL)
		return err_set(e, ERR_LOCAL, "out of memory");
	for (size_t i = 0; rv == 0 && i < s->catalog.n; i++) {
		if (i > 0)
			fputs(sep, f);
		rv = fold_entry(f, &s->catalog.v[i], sep);
	}
	if (ferror(f))
		rv = -1;
	if (fclose(f) != 0 || rv == -1) {
		free(buf);
		return err_set(e, ERR_LOCAL,
		    "out of memory for the text of a node set");
	}
	*text = buf;
	return 0;
}

static int
fold_entry(FILE *f, const struct entry *en, const char *sep)
{
	struct boxes boxes;
	int rv = 0;

	if (en->grid->depth == 0) {
		fputs(en->pattern, f);
		return 0;
	}
	if (boxes_make(&boxes, en->grid) == -1)
		return -1;
	for (size_t i = 0; rv == 0 && i < boxes.n; i++) {
		if (i > 0)
			fputs(sep, f);
		rv = put_box(f, en->pattern, boxes.v[i]);
	}
	boxes_fini(&boxes);
	return rv;
}

static int
put_box(FILE *f, const char *pattern, const struct box *box)
{
	const struct axis *a = box->axis;

	for (const char *p = pattern; *p != '\0'; p++) {
		if (*p != PATTERN_NUMBER)
			fputc(*p, f);
		else if (put_axis(f, (a++)->grid) == -1)
			return -1;
	}
	return 0;
}

static int
put_axis(FILE *f, const struct grid *g)
{
	struct runs runs;

	if (g->count == 1) {
		put_number(f, g->span[0].lo);
		return 0;
	}
	if (split_runs(g, &runs) == -1)
		return -1;
	for (size_t i = 0; i < runs.n; i++) {
		fputc(i == 0 ? '[' : ',', f);
		put_number(f, runs.v[i].lo);
		if (runs.v[i].lo == runs.v[i].hi)
			continue;
		fputc('-', f);
		put_number(f, runs.v[i].hi);
	}
	fputc(']', f);
	free(runs.v);
	return 0;
}

/* A span may hold numbers of several lengths (8 9 00 01): each length has a
 * run of its own, unless digits merely grow (8 9 10 11). */
static int
split_runs(const struct grid *g, struct runs *runs)
{
	bool sorted = true;

	runs->n = 0;
	runs->v = reallocarray(NULL, g->n + NUMBER_DIGITS, sizeof(runs->v[0]));
	if (runs->v == NULL)
		return -1;
	for (size_t i = 0; i < g->n; i++) {
		uint64_t lo = g->span[i].lo, hi;

		for (; lo <= g->span[i].hi; lo = hi + 1) {
			hi = number_last(number_len(lo));
			if (hi > g->span[i].hi)
				hi = g->span[i].hi;
			add_run(runs, lo, hi);
		}
	}
	for (size_t i = 1; sorted && i < runs->n; i++)
		sorted = by_value(&runs->v[i - 1], &runs->v[i]) < 0;
	if (!sorted)
		qsort(runs->v, runs->n, sizeof(runs->v[0]), by_value);
	return 0;
}

static void
add_run(struct runs *r, uint64_t lo, uint64_t hi)
{
	struct run *last = r->n > 0 ? &r->v[r->n - 1] : NULL;
	size_t len = number_len(lo);

	if (last != NULL && len > 1 && !is_padded(last->lo) &&
	    last->hi == number_last(len - 1) &&
	    number_value(lo) == number_power(len - 1))
		last->hi = hi;
	else
		r->v[r->n++] = (struct run){ lo, hi };
}

static bool
is_padded(uint64_t number)
{
	size_t len = number_len(number);

	return len > 1 && number_value(number) < number_power(len - 1);
}

static void
put_number(FILE *f, uint64_t number)
{
	char digits[NUMBER_DIGITS];

	fwrite(digits, 1, number_format(number, digits), f);
}

/* node[1,01,001]: by value first, then by length. */
static int
by_value(const void *a, const void *b)
{
	const struct run *x = a, *y = b;
	uint64_t v = number_value(x->lo), w = number_value(y->lo);

	if (v != w)
		return v < w ? -1 : 1;
	return (x->lo > y->lo) - (x->lo < y->lo);
}
