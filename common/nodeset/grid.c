/* grid.c: see grid.h. */
#include "common/nodeset/grid.h"

#include <assert.h>
#include <stdlib.h>

/* A place in one of the two grids that are combined. */
struct cursor {
	const struct grid *grid;
	size_t i;
};

static int sweep(struct grid *a, struct grid *b, unsigned keep,
    struct grid **out);
static int segment(const struct cursor *a, const struct cursor *b, uint64_t at,
    unsigned keep, struct grid_maker *, uint64_t *next);
static void seek(struct cursor *, uint64_t at);
static const struct span *here(const struct cursor *);
static uint64_t start(const struct cursor *, uint64_t at);
static uint64_t times(uint64_t a, uint64_t b);
static uint64_t plus(uint64_t a, uint64_t b);

struct grid *
grid_unit(void)
{
	static struct grid unit = { .refs = 1, .count = 1 };

	return grid_ref(&unit);
}

struct grid *
grid_ref(struct grid *g)
{
	if (g != NULL)
		g->refs++;
	return g;
}

void
grid_unref(struct grid *g)
{
	if (g == NULL || --g->refs > 0)
		return;
	for (size_t i = 0; i < g->n; i++)
		grid_unref(g->span[i].sub);
	free(g);
}

int
grid_combine(struct grid *a, struct grid *b, unsigned keep, struct grid **out)
{
	/* Also where both are the empty tuple: there is only one of it. */
	if (a == b)
		*out = keep & GRID_BOTH ? grid_ref(a) : NULL;
	else if (b == NULL)
		*out = keep & GRID_A_ONLY ? grid_ref(a) : NULL;
	else if (a == NULL)
		*out = keep & GRID_B_ONLY ? grid_ref(b) : NULL;
	else
		return sweep(a, b, keep, out);
	return 0;
}

bool
grid_equal(const struct grid *a, const struct grid *b)
{
	if (a == b)
		return true;
	if (a == NULL || b == NULL || a->depth != b->depth || a->n != b->n ||
	    a->count != b->count)
		return false;
	for (size_t i = 0; i < a->n; i++)
		if (a->span[i].lo != b->span[i].lo ||
		    a->span[i].hi != b->span[i].hi ||
		    !grid_equal(a->span[i].sub, b->span[i].sub))
			return false;
	return true;
}

bool
grid_has(const struct grid *g, const uint64_t *tuple)
{
	while (g != NULL && g->depth > 0) {
		struct cursor c = { g, 0 };
		const struct span *s;

		seek(&c, *tuple);
		if ((s = here(&c)) == NULL || s->lo > *tuple)
			return false;
		g = s->sub;
		tuple++;
	}
	return g != NULL;
}

int
grid_append(struct grid_maker *m, uint64_t lo, uint64_t hi, struct grid *sub)
{
	struct span *last;
	struct grid *g;
	size_t size;

	last = m->grid != NULL ? &m->grid->span[m->grid->n - 1] : NULL;
	if (last != NULL && last->hi + 1 == lo && grid_equal(last->sub, sub)) {
		last->hi = hi;
		grid_unref(sub);
		return 0;
	}
	if (m->grid == NULL || m->grid->n == m->size) {
		size = m->size == 0 ? 1 : m->size * 2;
		g = realloc(m->grid, sizeof(*g) + size * sizeof(g->span[0]));
		if (g == NULL) {
			grid_unref(sub);
			return -1;
		}
		if (m->grid == NULL)
			*g =
			    (struct grid){ .refs = 1, .depth = sub->depth + 1 };
		m->grid = g;
		m->size = size;
	}
	m->grid->span[m->grid->n++] = (struct span){ lo, hi, sub };
	return 0;
}

struct grid *
grid_made(struct grid_maker *m)
{
	struct grid *g = m->grid, *fit;

	if (g == NULL)
		return NULL;
	for (size_t i = 0; i < g->n; i++)
		g->count = plus(g->count,
		    times(g->span[i].hi - g->span[i].lo + 1,
			g->span[i].sub->count));
	fit = realloc(g, sizeof(*g) + g->n * sizeof(g->span[0]));
	*m = (struct grid_maker){ NULL, 0 };
	return fit != NULL ? fit : g;
}

void
grid_unmake(struct grid_maker *m)
{
	grid_unref(m->grid);
	*m = (struct grid_maker){ NULL, 0 };
}

/* Walks both grids at once, segment by segment. */
static int
sweep(struct grid *a, struct grid *b, unsigned keep, struct grid **out)
{
	struct cursor x = { a, 0 }, y = { b, 0 };
	struct grid_maker m = { NULL, 0 };
	uint64_t at = 0;

	assert(a->depth == b->depth);
	for (;;) {
		/* What only one side has, and nobody wants, is jumped over:
		 * so a few names are looked up in many without a walk. */
		seek(&x, keep & GRID_A_ONLY ? at : start(&y, at));
		seek(&y, keep & GRID_B_ONLY ? at : start(&x, at));
		if (start(&x, at) == UINT64_MAX && start(&y, at) == UINT64_MAX)
			break;
		if (segment(&x, &y, at, keep, &m, &at) == -1) {
			grid_unmake(&m);
			return -1;
		}
	}
	*out = grid_made(&m);
	return 0;
}

/* The next stretch on which neither side changes, from `at` on. */
static int
segment(const struct cursor *a, const struct cursor *b, uint64_t at,
    unsigned keep, struct grid_maker *m, uint64_t *next)
{
	const struct cursor *side[2] = { a, b };
	struct grid *sub[2] = { NULL, NULL }, *out;
	uint64_t lo, hi = UINT64_MAX - 1;

	lo = start(a, at) < start(b, at) ? start(a, at) : start(b, at);
	for (size_t k = 0; k < 2; k++) {
		const struct span *s = here(side[k]);
		uint64_t end;

		if (s == NULL)
			continue;
		end = s->lo <= lo ? s->hi : s->lo - 1;
		if (s->lo <= lo)
			sub[k] = s->sub;
		if (end < hi)
			hi = end;
	}
	*next = hi + 1;
	if (grid_combine(sub[0], sub[1], keep, &out) == -1)
		return -1;
	return out != NULL ? grid_append(m, lo, hi, out) : 0;
}

/* Moves to the first span that ends at `at` or behind: in doubling steps,
 * then by halving. */
static void
seek(struct cursor *c, uint64_t at)
{
	const struct grid *g = c->grid;
	size_t step = 1, lo = c->i, hi;

	while (lo < g->n && g->span[lo].hi < at) {
		c->i = lo + 1;
		lo += step;
		step *= 2;
	}
	hi = lo < g->n ? lo : g->n;
	while (c->i < hi) {
		size_t mid = c->i + (hi - c->i) / 2;

		if (g->span[mid].hi < at)
			c->i = mid + 1;
		else
			hi = mid;
	}
}

static const struct span *
here(const struct cursor *c)
{
	return c->i < c->grid->n ? &c->grid->span[c->i] : NULL;
}

/* Where the cursor's span begins, not before `at`; UINT64_MAX: no more. */
static uint64_t
start(const struct cursor *c, uint64_t at)
{
	const struct span *s = here(c);

	if (s == NULL)
		return UINT64_MAX;
	return s->lo > at ? s->lo : at;
}

static uint64_t
times(uint64_t a, uint64_t b)
{
	uint64_t r;

	return __builtin_mul_overflow(a, b, &r) ? UINT64_MAX : r;
}

static uint64_t
plus(uint64_t a, uint64_t b)
{
	uint64_t r;

	return __builtin_add_overflow(a, b, &r) ? UINT64_MAX : r;
}
