/* boxes.c: see boxes.h. */
#include "common/nodeset/boxes.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/nodeset/nodeset.h"
#include "common/nodeset/number.h"

#define NO_AXIS NODESET_DIMS

/* Tuples one behind the other, `depth` numbers each. */
struct tuples {
	uint64_t *v;
	size_t n;
	size_t depth;
};

/* The box that grows while the sorted tuples go by: the first tuple, and all
 * the numbers that one of its axes takes. */
struct growing {
	const uint64_t *tuple;
	size_t axis; /* NO_AXIS while there is one tuple only */
	uint64_t *number;
	size_t n;
};

/* Where the boxes stand that are the same but for one axis. */
struct place {
	uint64_t key;
	size_t at;
};

static bool is_box(const struct grid *);
static int add_whole(struct boxes *, struct grid *);
static int expand(const struct grid *, struct tuples *);
static void fill(const struct grid *, uint64_t *tuple, size_t level,
    struct tuples *);
static int grow_boxes(struct boxes *, const struct tuples *);
static bool absorb(struct growing *, const uint64_t *tuple, size_t depth);
static int add_grown(struct boxes *, struct growing *);
static struct grid *axis_of_one(const struct boxes *, size_t k,
    uint64_t number);
static int add_box(struct boxes *, struct grid **axis);
static int merge_all(struct boxes *);
static int merge_neighbours(struct boxes *, bool *changed);
static int merge_any(struct boxes *, bool *changed);
static int fold_into(struct boxes *, size_t at, const struct place *,
    bool *changed);
static size_t next_match(const struct boxes *, const struct place *,
    const struct box *, size_t axis, size_t behind);
static bool mergeable(const struct boxes *, const struct box *,
    const struct box *, size_t *axis);
static int merge(struct boxes *, struct box *, struct box *, size_t axis);
static void drop_merged(struct boxes *);
static struct grid *axis_of(const uint64_t *number, size_t n);
static struct grid *axis_of_level(const struct grid *);
static uint64_t hash_axis(const struct grid *);
static uint64_t mix(uint64_t);
static uint64_t key_without(const struct box *, size_t axis, size_t depth);
static int by_text(const void *, const void *, void *);
static int by_number(const void *, const void *);
static int by_size(const void *, const void *, void *);
static int by_key(const void *, const void *);

int
boxes_make(struct boxes *b, struct grid *g)
{
	struct tuples t = { NULL, 0, g->depth };
	int rv = -1;

	*b = (struct boxes){ .depth = g->depth };
	if (is_box(g))
		rv = add_whole(b, g);
	else if (expand(g, &t) == 0 && grow_boxes(b, &t) == 0)
		rv = merge_all(b);
	free(t.v);
	if (rv == -1)
		boxes_fini(b);
	return rv;
}

void
boxes_fini(struct boxes *b)
{
	for (size_t i = 0; i < b->n; i++) {
		for (size_t k = 0; k < b->depth; k++)
			grid_unref(b->v[i]->axis[k].grid);
		free(b->v[i]);
	}
	free(b->v);
	*b = (struct boxes){ NULL, 0, 0, 0 };
}

/* The usual case by far, and the one that may be a million names. */
static bool
is_box(const struct grid *g)
{
	for (; g->depth > 0; g = g->span[0].sub)
		for (size_t i = 1; i < g->n; i++)
			if (!grid_equal(g->span[i].sub, g->span[0].sub))
				return false;
	return true;
}

static int
add_whole(struct boxes *b, struct grid *g)
{
	struct grid *axis[NODESET_DIMS] = { NULL };

	for (size_t k = 0; k < b->depth; k++, g = g->span[0].sub)
		axis[k] = axis_of_level(g);
	return add_box(b, axis);
}

/* All tuples, in the order of their text. */
static int
expand(const struct grid *g, struct tuples *t)
{
	uint64_t tuple[NODESET_DIMS];

	t->v = reallocarray(NULL, g->count, t->depth * sizeof(t->v[0]));
	if (t->v == NULL)
		return -1;
	fill(g, tuple, 0, t);
	qsort_r(t->v, t->n, t->depth * sizeof(t->v[0]), by_text, &t->depth);
	return 0;
}

static void
fill(const struct grid *g, uint64_t *tuple, size_t level, struct tuples *t)
{
	if (g->depth == 0) {
		memcpy(t->v + t->n++ * t->depth, tuple,
		    t->depth * sizeof(t->v[0]));
		return;
	}
	for (size_t i = 0; i < g->n; i++)
		for (uint64_t v = g->span[i].lo; v <= g->span[i].hi; v++) {
			tuple[level] = v;
			fill(g->span[i].sub, tuple, level + 1, t);
		}
}

/* The first pass of folding: each tuple is merged with the box before it
 * if they differ in one axis only. */
static int
grow_boxes(struct boxes *b, const struct tuples *t)
{
	struct growing g = { .axis = NO_AXIS };
	int rv = 0;

	g.number = reallocarray(NULL, t->n, sizeof(g.number[0]));
	if (g.number == NULL)
		return -1;
	g.tuple = t->v;
	for (size_t i = 1; rv == 0 && i < t->n; i++) {
		const uint64_t *tuple = t->v + i * t->depth;

		if (absorb(&g, tuple, t->depth))
			continue;
		rv = add_grown(b, &g);
		g.tuple = tuple;
		g.axis = NO_AXIS;
	}
	if (rv == 0)
		rv = add_grown(b, &g);
	free(g.number);
	return rv;
}

static bool
absorb(struct growing *g, const uint64_t *tuple, size_t depth)
{
	size_t axis = NO_AXIS;

	for (size_t k = 0; k < depth; k++) {
		if (g->tuple[k] == tuple[k])
			continue;
		if (axis != NO_AXIS)
			return false;
		axis = k;
	}
	if (g->axis == NO_AXIS) {
		g->axis = axis;
		g->number[0] = g->tuple[axis];
		g->n = 1;
	}
	if (axis != g->axis)
		return false;
	g->number[g->n++] = tuple[axis];
	return true;
}

static int
add_grown(struct boxes *b, struct growing *g)
{
	struct grid *axis[NODESET_DIMS] = { NULL };

	for (size_t k = 0; k < b->depth; k++)
		axis[k] = k == g->axis ? axis_of(g->number, g->n) :
					 axis_of_one(b, k, g->tuple[k]);
	return add_box(b, axis);
}

/* The box before has the same number more often than not. */
static struct grid *
axis_of_one(const struct boxes *b, size_t k, uint64_t number)
{
	struct grid *before = b->n > 0 ? b->v[b->n - 1]->axis[k].grid : NULL;

	if (before != NULL && before->count == 1 &&
	    before->span[0].lo == number)
		return grid_ref(before);
	return axis_of(&number, 1);
}

/* Takes the references; one that is NULL stands for a lack of memory. */
static int
add_box(struct boxes *b, struct grid **axis)
{
	size_t size = b->size == 0 ? 1 : b->size * 2;
	struct box *box, **v = b->v;

	box = malloc(sizeof(*box) + b->depth * sizeof(box->axis[0]));
	if (b->n == b->size &&
	    (v = reallocarray(b->v, size, sizeof(*v))) != NULL) {
		b->v = v;
		b->size = size;
	}
	for (size_t k = 0; k < b->depth; k++)
		if (box == NULL || v == NULL || axis[k] == NULL)
			goto fail;
	box->size = 1;
	for (size_t k = 0; k < b->depth; k++) {
		box->size *= axis[k]->count;
		box->axis[k] = (struct axis){ axis[k], hash_axis(axis[k]) };
	}
	b->v[b->n++] = box;
	return 0;
fail:
	for (size_t k = 0; k < b->depth; k++)
		grid_unref(axis[k]);
	free(box);
	return -1;
}

/* Passes over neighbours as long as they help, then over all pairs. */
static int
merge_all(struct boxes *b)
{
	bool changed = true, full = false;

	while (changed) {
		changed = false;
		qsort_r(b->v, b->n, sizeof(b->v[0]), by_size, &b->depth);
		if ((full ? merge_any : merge_neighbours)(b, &changed) == -1)
			return -1;
		if (!changed && !full)
			changed = full = true;
	}
	return 0;
}

static int
merge_neighbours(struct boxes *b, bool *changed)
{
	size_t into = 0, axis;

	for (size_t i = 1; i < b->n; i++) {
		if (!mergeable(b, b->v[into], b->v[i], &axis)) {
			into = i;
			continue;
		}
		if (merge(b, b->v[into], b->v[i], axis) == -1)
			return -1;
		*changed = true;
	}
	drop_merged(b);
	return 0;
}

/* Each box takes up, in order, whatever behind it differs in one axis. */
static int
merge_any(struct boxes *b, bool *changed)
{
	struct place *places;
	int rv = 0;

	places = reallocarray(NULL, b->n, b->depth * sizeof(*places));
	if (places == NULL)
		return -1;
	for (size_t k = 0; k < b->depth; k++) {
		struct place *p = places + k * b->n;

		for (size_t i = 0; i < b->n; i++)
			p[i] =
			    (struct place){ key_without(b->v[i], k, b->depth),
				    i };
		qsort(p, b->n, sizeof(*p), by_key);
	}
	for (size_t i = 0; rv == 0 && i < b->n; i++)
		if (b->v[i]->size > 0)
			rv = fold_into(b, i, places, changed);
	free(places);
	drop_merged(b);
	return rv;
}

static int
fold_into(struct boxes *b, size_t at, const struct place *places, bool *changed)
{
	for (size_t behind = at;;) {
		size_t best = b->n, axis = 0;

		for (size_t k = 0; k < b->depth; k++) {
			size_t i = next_match(b, places + k * b->n, b->v[at], k,
			    behind);

			if (i < best) {
				best = i;
				axis = k;
			}
		}
		if (best == b->n)
			return 0;
		if (merge(b, b->v[at], b->v[best], axis) == -1)
			return -1;
		*changed = true;
		behind = best;
	}
}

/* The first box behind a place that differs from `box` in this axis only;
 * b->n: none. */
static size_t
next_match(const struct boxes *b, const struct place *p, const struct box *box,
    size_t axis, size_t behind)
{
	struct place want = { key_without(box, axis, b->depth), behind + 1 };
	size_t lo = 0, hi = b->n, differ;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (by_key(&p[mid], &want) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	for (; lo < b->n && p[lo].key == want.key; lo++)
		if (b->v[p[lo].at]->size > 0 &&
		    mergeable(b, box, b->v[p[lo].at], &differ) &&
		    differ == axis)
			return p[lo].at;
	return b->n;
}

/* Boxes share no tuple, so those that differ in one axis have no number in
 * common there. */
static bool
mergeable(const struct boxes *b, const struct box *x, const struct box *y,
    size_t *axis)
{
	size_t n = 0;

	for (size_t k = 0; k < b->depth && n < 2; k++) {
		if (x->axis[k].hash == y->axis[k].hash &&
		    grid_equal(x->axis[k].grid, y->axis[k].grid))
			continue;
		*axis = k;
		n++;
	}
	return n == 1;
}

static int
merge(struct boxes *b, struct box *into, struct box *from, size_t axis)
{
	struct axis *a = &into->axis[axis];
	struct grid *both;

	if (grid_combine(a->grid, from->axis[axis].grid, GRID_UNION, &both) ==
	    -1)
		return -1;
	grid_unref(a->grid);
	*a = (struct axis){ both, hash_axis(both) };
	into->size += from->size;
	for (size_t k = 0; k < b->depth; k++) {
		grid_unref(from->axis[k].grid);
		from->axis[k].grid = NULL;
	}
	from->size = 0;
	return 0;
}

static void
drop_merged(struct boxes *b)
{
	size_t n = 0;

	for (size_t i = 0; i < b->n; i++) {
		if (b->v[i]->size > 0)
			b->v[n++] = b->v[i];
		else
			free(b->v[i]);
	}
	b->n = n;
}

static struct grid *
axis_of(const uint64_t *number, size_t n)
{
	struct grid_maker m = { NULL, 0 };
	uint64_t *sorted;

	if ((sorted = reallocarray(NULL, n, sizeof(*sorted))) == NULL)
		return NULL;
	memcpy(sorted, number, n * sizeof(*sorted));
	qsort(sorted, n, sizeof(*sorted), by_number);
	for (size_t i = 0; i < n; i++)
		if (grid_append(&m, sorted[i], sorted[i], grid_unit()) == -1) {
			grid_unmake(&m);
			break;
		}
	free(sorted);
	return grid_made(&m);
}

static struct grid *
axis_of_level(const struct grid *g)
{
	struct grid_maker m = { NULL, 0 };

	for (size_t i = 0; i < g->n; i++)
		if (grid_append(&m, g->span[i].lo, g->span[i].hi,
			grid_unit()) == -1) {
			grid_unmake(&m);
			break;
		}
	return grid_made(&m);
}

static uint64_t
hash_axis(const struct grid *g)
{
	uint64_t h = g->n;

	for (size_t i = 0; i < g->n; i++)
		h = mix(mix(h ^ g->span[i].lo) ^ g->span[i].hi);
	return h;
}

/* The finalizer of MurmurHash3. */
static uint64_t
mix(uint64_t h)
{
	h = (h ^ h >> 33) * 0xff51afd7ed558ccd;
	h = (h ^ h >> 33) * 0xc4ceb9fe1a85ec53;
	return h ^ h >> 33;
}

static uint64_t
key_without(const struct box *box, size_t axis, size_t depth)
{
	uint64_t key = 0;

	for (size_t k = 0; k < depth; k++)
		if (k != axis)
			key = mix(key ^ box->axis[k].hash);
	return key;
}

static int
by_text(const void *a, const void *b, void *depth)
{
	const uint64_t *x = a, *y = b;
	int c = 0;

	for (size_t k = 0; c == 0 && k < *(size_t *)depth; k++)
		c = x[k] == y[k] ? 0 : number_text_cmp(x[k], y[k]);
	return c;
}

static int
by_number(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* Largest box first; then axis by axis the one with more numbers, with the
 * lower first, with the lower last one (as text). */
static int
by_size(const void *a, const void *b, void *depth)
{
	const struct box *x = *(struct box *const *)a;
	const struct box *y = *(struct box *const *)b;
	int c;

	if (x->size != y->size)
		return x->size > y->size ? -1 : 1;
	for (size_t k = 0; k < *(size_t *)depth; k++) {
		const struct grid *g = x->axis[k].grid, *h = y->axis[k].grid;

		if (g->count != h->count)
			return g->count > h->count ? -1 : 1;
		c = number_text_cmp(g->span[0].lo, h->span[0].lo);
		if (c == 0)
			c = number_text_cmp(g->span[g->n - 1].hi,
			    h->span[h->n - 1].hi);
		if (c != 0)
			return c;
	}
	return 0;
}

static int
by_key(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return (x->at > y->at) - (x->at < y->at);
}
