/* nodeset.c: see nodeset.h.  Expressions are read in expr.c. */
#include "common/nodeset/nodeset.h"

#include <stdlib.h>
#include <string.h>

#include "common/nodeset/pattern.h"
#include "common/nodeset/set.h"

/* Ranges that touch digits are kept as written in sets of few patterns. */
#define WRITTEN_MAX 64

static const unsigned keeps[] = {
	[NODESET_UNION] = GRID_UNION,
	[NODESET_DIFFERENCE] = GRID_A_ONLY,
	[NODESET_INTERSECTION] = GRID_BOTH,
	[NODESET_XOR] = GRID_A_ONLY | GRID_B_ONLY,
};

static void settle_or_die(const struct nodeset *);
static int add_all(struct nodeset *, const struct nodeset *, struct err *);
static int combine(struct nodeset *, const struct nodeset *, unsigned keep,
    struct err *);
static int combine_catalogs(const struct catalog *a, const struct catalog *b,
    unsigned keep, struct catalog *);
static bool within(struct grid *, struct grid *);
static bool clash(const struct nodeset *, const char *pattern);
static int make_plain(struct nodeset *);
static int add_plain(struct catalog *, const char *pattern, struct grid *);
static int check_bound(struct nodeset *, struct err *);
static uint64_t count(const struct catalog *);
static int no_memory(struct err *);
static void enter_grid(struct nodeset_iter *, const struct grid *,
    size_t level);
static bool advance(struct nodeset_iter *, size_t depth);

struct nodeset *
nodeset_new(void)
{
	return calloc(1, sizeof(struct nodeset));
}

void
nodeset_free(struct nodeset *s)
{
	if (s == NULL)
		return;
	catalog_fini(&s->catalog);
	free(s);
}

int
nodeset_add(struct nodeset *s, const char *name, struct err *e)
{
	char pattern[NODESET_NAME_MAX + 1];
	struct grid *g;
	int rv;

	if (name[0] == '@' || name[0] == ' ' || name[0] == '\0' ||
	    name[strlen(name) - 1] == ' ' || strpbrk(name, ",!&^") != NULL)
		return err_set(e, ERR_USAGE, "'%.64s' is not one node's name",
		    name);
	if (pattern_parse(name, strlen(name), pattern, &g, e) == -1)
		return -1;
	rv = g->count > 1 ?
	    err_set(e, ERR_USAGE, "'%.64s' is not one node's name", name) :
	    set_add(s, pattern, g, e);
	grid_unref(g);
	return rv;
}

int
nodeset_combine(struct nodeset *a, enum nodeset_op op, const struct nodeset *b,
    struct err *e)
{
	if (nodeset_settle(b, e) == -1)
		return -1;
	if (op == NODESET_UNION)
		return add_all(a, b, e);
	return combine(a, b, keeps[op], e);
}

int
nodeset_settle(const struct nodeset *set, struct err *e)
{
	/* What is in the set stays the same, only its form does not. */
	struct nodeset *s = (struct nodeset *)set;

	return catalog_settle(&s->catalog) == -1 ? no_memory(e) : 0;
}

size_t
nodeset_count(const struct nodeset *s)
{
	settle_or_die(s);
	return count(&s->catalog);
}

bool
nodeset_has(const struct nodeset *s, const char *name)
{
	const struct catalog *t = &s->catalog;
	char pattern[NODESET_NAME_MAX + 1];
	uint64_t tuple[NODESET_DIMS];
	const struct entry *en;
	struct grid *g;
	struct err ignored;
	bool has;

	settle_or_die(s);
	if (pattern_parse(name, strlen(name), pattern, &g, &ignored) == -1)
		return false;
	en = catalog_find(t, pattern);
	has = en != NULL && within(g, en->grid);
	grid_unref(g);
	for (size_t i = 0; !has && t->n_touching > 0 && i < t->n; i++)
		has = t->v[i].touches &&
		    pattern_match(t->v[i].pattern, name, tuple) &&
		    grid_has(t->v[i].grid, tuple);
	return has;
}

void
nodeset_iter_init(struct nodeset_iter *it, const struct nodeset *s)
{
	settle_or_die(s);
	it->set = s;
	it->pattern = 0;
	it->started = false;
}

const char *
nodeset_iter_next(struct nodeset_iter *it)
{
	const struct catalog *t = &it->set->catalog;

	while (it->pattern < t->n) {
		const struct entry *en = &t->v[it->pattern];

		if (!it->started)
			enter_grid(it, en->grid, 0);
		if (it->started && !advance(it, en->grid->depth)) {
			it->pattern++;
			it->started = false;
			continue;
		}
		it->started = true;
		pattern_name(en->pattern, it->number, it->name);
		return it->name;
	}
	return NULL;
}

int
set_add(struct nodeset *s, const char *pattern, struct grid *g, struct err *e)
{
	bool mixed = clash(s, pattern);

	if (mixed && make_plain(s) == -1)
		return no_memory(e);
	if ((mixed ? add_plain : catalog_add)(&s->catalog, pattern, g) == -1)
		return no_memory(e);
	s->bound =
	    g->count > NODESET_MAX ? NODESET_MAX + 1 : s->bound + g->count;
	return check_bound(s, e);
}

static void
settle_or_die(const struct nodeset *s)
{
	struct err e;

	if (nodeset_settle(s, &e) == -1)
		abort();
}

static int
add_all(struct nodeset *a, const struct nodeset *b, struct err *e)
{
	for (size_t i = 0; i < b->catalog.n; i++)
		if (set_add(a, b->catalog.v[i].pattern, b->catalog.v[i].grid,
			e) == -1)
			return -1;
	return 0;
}

/* Makes the result aside, so that `a` stands when it fails. */
static int
combine(struct nodeset *a, const struct nodeset *b, unsigned keep,
    struct err *e)
{
	struct nodeset result = { .bound = 0 }, plain = { .bound = 0 };
	bool mixed = false;
	int rv = -1;

	for (size_t i = 0; !mixed && i < b->catalog.n; i++)
		mixed = clash(a, b->catalog.v[i].pattern);
	if (mixed) {
		if (add_all(&plain, b, e) == -1)
			goto out;
		if (make_plain(a) == -1 || make_plain(&plain) == -1) {
			no_memory(e);
			goto out;
		}
		b = &plain;
	}
	if (catalog_settle(&a->catalog) == -1 ||
	    combine_catalogs(&a->catalog, &b->catalog, keep, &result.catalog) ==
		-1 ||
	    catalog_settle(&result.catalog) == -1) {
		no_memory(e);
		goto out;
	}
	result.bound = count(&result.catalog);
	if (check_bound(&result, e) == -1)
		goto out;
	catalog_fini(&a->catalog);
	*a = result;
	result.catalog = (struct catalog){ .v = NULL };
	rv = 0;
out:
	catalog_fini(&result.catalog);
	catalog_fini(&plain.catalog);
	return rv;
}

static int
combine_catalogs(const struct catalog *a, const struct catalog *b,
    unsigned keep, struct catalog *result)
{
	for (size_t i = 0; i < a->n; i++) {
		const struct entry *other = catalog_find(b, a->v[i].pattern);
		struct grid *g;
		int rv;

		if (grid_combine(a->v[i].grid,
			other != NULL ? other->grid : NULL, keep, &g) == -1)
			return -1;
		rv = g == NULL ? 0 : catalog_add(result, a->v[i].pattern, g);
		grid_unref(g);
		if (rv == -1)
			return -1;
	}
	for (size_t i = 0; keep & GRID_B_ONLY && i < b->n; i++)
		if (catalog_find(a, b->v[i].pattern) == NULL &&
		    catalog_add(result, b->v[i].pattern, b->v[i].grid) == -1)
			return -1;
	return 0;
}

/* Takes memory only where the answer is no. */
static bool
within(struct grid *g, struct grid *of)
{
	struct grid *rest = NULL;
	bool all = grid_combine(g, of, GRID_A_ONLY, &rest) == 0 && rest == NULL;

	grid_unref(rest);
	return all;
}

/* Whether names of this pattern may be in the set under another one. */
static bool
clash(const struct nodeset *s, const char *pattern)
{
	char plain[NODESET_NAME_MAX + 1], other[NODESET_NAME_MAX + 1];
	const struct catalog *t = &s->catalog;
	bool touches = pattern_touches(pattern);

	if (!touches && t->n_touching == 0)
		return false;
	if (t->n > WRITTEN_MAX)
		return true;
	pattern_plain(pattern, plain);
	if (touches && catalog_find(t, plain) != NULL)
		return true;
	for (size_t i = 0; i < t->n; i++) {
		if (!t->v[i].touches || strcmp(t->v[i].pattern, pattern) == 0)
			continue;
		pattern_plain(t->v[i].pattern, other);
		if (strcmp(plain, other) == 0)
			return true;
	}
	return false;
}

static int
make_plain(struct nodeset *s)
{
	struct catalog *t = &s->catalog;
	size_t n;

	if (t->n_touching == 0)
		return 0;
	if (catalog_settle(t) == -1)
		return -1;
	n = t->n;
	for (size_t i = 0; i < n; i++) {
		if (!t->v[i].touches)
			continue;
		if (add_plain(t, t->v[i].pattern, t->v[i].grid) == -1)
			return -1;
		entry_set(t, &t->v[i], NULL);
	}
	return catalog_settle(t);
}

static int
add_plain(struct catalog *t, const char *pattern, struct grid *g)
{
	char plain[NODESET_NAME_MAX + 1];
	struct grid *wide;
	int rv;

	pattern_plain(pattern, plain);
	if (pattern_plain_grid(pattern, g, &wide) == -1)
		return -1;
	rv = catalog_add(t, plain, wide);
	grid_unref(wide);
	return rv;
}

static int
check_bound(struct nodeset *s, struct err *e)
{
	if (s->bound <= NODESET_MAX)
		return 0;
	if (nodeset_settle(s, e) == -1)
		return -1;
	s->bound = count(&s->catalog);
	if (s->bound <= NODESET_MAX)
		return 0;
	return err_set(e, ERR_USAGE,
	    "more than %d names, the most that one set holds", NODESET_MAX);
}

static uint64_t
count(const struct catalog *t)
{
	uint64_t n = 0;

	for (size_t i = 0; i < t->n; i++)
		n = t->v[i].grid->count > NODESET_MAX ? NODESET_MAX + 1 :
							n + t->v[i].grid->count;
	return n;
}

static int
no_memory(struct err *e)
{
	return err_set(e, ERR_LOCAL, "out of memory for a node set");
}

/* Puts the odometer on the first tuple below a level. */
static void
enter_grid(struct nodeset_iter *it, const struct grid *g, size_t level)
{
	for (; g->depth > 0; g = g->span[0].sub, level++) {
		it->grid[level] = g;
		it->span[level] = 0;
		it->number[level] = g->span[0].lo;
	}
}

static bool
advance(struct nodeset_iter *it, size_t depth)
{
	for (size_t k = depth; k-- > 0;) {
		const struct grid *g = it->grid[k];

		if (it->number[k] < g->span[it->span[k]].hi)
			it->number[k]++;
		else if (it->span[k] + 1 < g->n)
			it->number[k] = g->span[++it->span[k]].lo;
		else
			continue;
		enter_grid(it, g->span[it->span[k]].sub, k + 1);
		return true;
	}
	return false;
}
