/*
 * grid.h: sets of tuples of numbers: what names of one pattern differ in.
 *
 * A grid of depth n maps intervals of the first number to grids of depth
 * n-1; the grid of depth 0 holds the empty tuple.  Intervals are as wide as
 * can be, so equal sets have equal grids, and a set is as large as its
 * ranges, not its names.  Grids are never changed once made, shared freely
 * and counted by references.  The empty set is NULL.
 */
#ifndef MUSTER_GRID_H
#define MUSTER_GRID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct span {
	uint64_t lo, hi; /* both within */
	struct grid *sub;
};

struct grid {
	size_t refs;
	size_t depth;
	uint64_t count; /* of tuples; UINT64_MAX: that many or more */
	size_t n;
	struct span span[];
};

/* Which tuples a combination of two sets keeps. */
enum grid_keep {
	GRID_A_ONLY = 1,
	GRID_B_ONLY = 2,
	GRID_BOTH = 4,
	GRID_UNION = GRID_A_ONLY | GRID_B_ONLY | GRID_BOTH
};

/* The set of the empty tuple. */
struct grid *grid_unit(void);

struct grid *grid_ref(struct grid *);
void grid_unref(struct grid *);

/* *out = the tuples of a and b that `keep` asks for.  -1: out of memory. */
int grid_combine(struct grid *a, struct grid *b, unsigned keep,
    struct grid **out);

bool grid_equal(const struct grid *, const struct grid *);
bool grid_has(const struct grid *, const uint64_t *tuple);

/* A grid is made span by span, in ascending order. */
struct grid_maker {
	struct grid *grid;
	size_t size;
};
/* Takes the reference to sub, also on failure (-1: out of memory). */
int grid_append(struct grid_maker *, uint64_t lo, uint64_t hi,
    struct grid *sub);
/* The finished grid; NULL when nothing was appended. */
struct grid *grid_made(struct grid_maker *);
/* Frees a half-made one. */
void grid_unmake(struct grid_maker *);

#endif
