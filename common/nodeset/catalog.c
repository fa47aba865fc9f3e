/* catalog.c: see catalog.h. */
#include "common/nodeset/catalog.h"

#include <stdlib.h>
#include <string.h>

#include "common/nodeset/pattern.h"

#define N_WAITING 32 /* the last one holds whatever comes so far */

static struct entry *make(struct catalog *, const char *pattern);
static int grow(struct catalog *);
static int wait_for_settle(struct entry *, struct grid *);
static int merge_waiting(struct entry *);
static void drop_empty(struct catalog *);
static void reindex(struct catalog *);
static struct slot *find_slot(const struct catalog *, const char *pattern,
    uint32_t hash);
static struct slot *free_slot(const struct catalog *, uint32_t hash);
static uint32_t hash_of(const char *text);
static bool sorted(const struct catalog *);
static int by_pattern(const void *, const void *);

void
catalog_fini(struct catalog *t)
{
	for (size_t i = 0; i < t->n; i++) {
		struct entry *en = &t->v[i];

		for (size_t k = 0; en->waiting != NULL && k < N_WAITING; k++)
			grid_unref(en->waiting[k]);
		free(en->waiting);
		grid_unref(en->grid);
		free(en->pattern);
	}
	free(t->v);
	free(t->index);
	*t = (struct catalog){ .v = NULL };
}

struct entry *
catalog_find(const struct catalog *t, const char *pattern)
{
	const struct slot *slot;

	if (t->n == 0)
		return NULL;
	slot = find_slot(t, pattern, hash_of(pattern));
	return slot->entry > 0 ? &t->v[slot->entry - 1] : NULL;
}

int
catalog_add(struct catalog *t, const char *pattern, struct grid *g)
{
	struct entry *en = catalog_find(t, pattern);

	if (en == NULL && (en = make(t, pattern)) == NULL)
		return -1;
	if (en->grid == NULL && en->waiting == NULL) {
		en->grid = grid_ref(g);
		return 0;
	}
	if (g->depth == 0)
		return 0;
	t->settled = false;
	return wait_for_settle(en, grid_ref(g));
}

int
catalog_settle(struct catalog *t)
{
	if (t->settled)
		return 0;
	for (size_t i = 0; i < t->n; i++)
		if (t->v[i].waiting != NULL && merge_waiting(&t->v[i]) == -1)
			return -1;
	drop_empty(t);
	if (!sorted(t))
		qsort(t->v, t->n, sizeof(t->v[0]), by_pattern);
	reindex(t);
	t->settled = true;
	return 0;
}

void
entry_set(struct catalog *t, struct entry *en, struct grid *g)
{
	grid_unref(en->grid);
	en->grid = g;
	t->settled = false;
}

static struct entry *
make(struct catalog *t, const char *pattern)
{
	struct entry *en;
	char *copy;

	if (t->n == t->size && grow(t) == -1)
		return NULL;
	if ((copy = strdup(pattern)) == NULL)
		return NULL;
	en = &t->v[t->n];
	*en = (struct entry){ .pattern = copy,
		.hash = hash_of(copy),
		.touches = pattern_touches(copy) };
	*free_slot(t, en->hash) = (struct slot){ en->hash, (uint32_t)++t->n };
	t->n_touching += en->touches;
	t->settled = false;
	return en;
}

/* Twice the entries, and an index that stays at most half full. */
static int
grow(struct catalog *t)
{
	size_t size = t->size == 0 ? 4 : t->size * 2;
	struct entry *v;
	struct slot *index;

	if ((v = reallocarray(t->v, size, sizeof(*v))) == NULL)
		return -1;
	t->v = v;
	if ((index = calloc(size * 2, sizeof(*index))) == NULL)
		return -1;
	free(t->index);
	t->index = index;
	t->index_size = size * 2;
	t->size = size;
	reindex(t);
	return 0;
}

/* Takes the reference, also on failure. */
static int
wait_for_settle(struct entry *en, struct grid *g)
{
	size_t k = 0;

	if (en->waiting == NULL)
		en->waiting = calloc(N_WAITING, sizeof(en->waiting[0]));
	if (en->waiting == NULL) {
		grid_unref(g);
		return -1;
	}
	while (en->waiting[k] != NULL) {
		struct grid *both;

		if (grid_combine(en->waiting[k], g, GRID_UNION, &both) == -1) {
			grid_unref(g);
			return -1;
		}
		grid_unref(g);
		grid_unref(en->waiting[k]);
		en->waiting[k] = NULL;
		g = both;
		if (k < N_WAITING - 1)
			k++;
	}
	en->waiting[k] = g;
	return 0;
}

/* From the small to the large, and the grid last. */
static int
merge_waiting(struct entry *en)
{
	struct grid *all = NULL, *both;

	for (size_t k = 0; k <= N_WAITING; k++) {
		struct grid **from =
		    k < N_WAITING ? &en->waiting[k] : &en->grid;

		if (grid_combine(*from, all, GRID_UNION, &both) == -1) {
			en->waiting[0] = all; /* nothing is lost */
			return -1;
		}
		grid_unref(all);
		grid_unref(*from);
		*from = NULL;
		all = both;
	}
	free(en->waiting);
	en->waiting = NULL;
	en->grid = all;
	return 0;
}

static void
drop_empty(struct catalog *t)
{
	size_t n = 0;

	for (size_t i = 0; i < t->n; i++) {
		if (t->v[i].grid != NULL) {
			t->v[n++] = t->v[i];
			continue;
		}
		t->n_touching -= t->v[i].touches;
		free(t->v[i].pattern);
	}
	t->n = n;
}

static void
reindex(struct catalog *t)
{
	if (t->index_size > 0)
		memset(t->index, 0, t->index_size * sizeof(t->index[0]));
	for (size_t i = 0; i < t->n; i++)
		*free_slot(t, t->v[i].hash) =
		    (struct slot){ t->v[i].hash, (uint32_t)(i + 1) };
}

/* The slot of a pattern, or the free one where it belongs. */
static struct slot *
find_slot(const struct catalog *t, const char *pattern, uint32_t hash)
{
	size_t i = hash & (t->index_size - 1);

	while (t->index[i].entry != 0 &&
	    (t->index[i].hash != hash ||
		strcmp(t->v[t->index[i].entry - 1].pattern, pattern) != 0))
		i = (i + 1) & (t->index_size - 1);
	return &t->index[i];
}

static struct slot *
free_slot(const struct catalog *t, uint32_t hash)
{
	size_t i = hash & (t->index_size - 1);

	while (t->index[i].entry != 0)
		i = (i + 1) & (t->index_size - 1);
	return &t->index[i];
}

/* FNV-1a, folded. */
static uint32_t
hash_of(const char *text)
{
	uint64_t h = 0xcbf29ce484222325;

	for (; *text != '\0'; text++)
		h = (h ^ (unsigned char)*text) * 0x100000001b3;
	return (uint32_t)(h ^ h >> 32);
}

static bool
sorted(const struct catalog *t)
{
	for (size_t i = 1; i < t->n; i++)
		if (by_pattern(&t->v[i - 1], &t->v[i]) > 0)
			return false;
	return true;
}

static int
by_pattern(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	return strcmp(x->pattern, y->pattern);
}
