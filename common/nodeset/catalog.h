/*
 * catalog.h: the patterns of a set, each with the grid of its names.
 *
 * Names come one by one and in any order.  So that n of them cost n log n,
 * a grid that is added waits beside its pattern, and is merged with others
 * of its age (as the carry of a binary counter) until the catalog is settled.
 */
#ifndef MUSTER_CATALOG_H
#define MUSTER_CATALOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/nodeset/grid.h"

struct entry {
	char *pattern;	       /* see pattern.h */
	struct grid *grid;     /* NULL in a settled catalog: no names */
	struct grid **waiting; /* NULL in a settled catalog */
	uint32_t hash;	       /* of the pattern */
	bool touches;	       /* pattern_touches() */
};

/* A place in the hash table of patterns. */
struct slot {
	uint32_t hash;
	uint32_t entry; /* in v, plus 1; 0: free */
};

struct catalog {
	struct entry *v; /* settled: by pattern, as strcmp */
	size_t n;
	size_t size;
	size_t n_touching; /* entries with ->touches */
	struct slot *index;
	size_t index_size; /* 0 or a power of 2 */
	bool settled;
};

void catalog_fini(struct catalog *);

/* NULL: there is none. */
struct entry *catalog_find(const struct catalog *, const char *pattern);

/* Adds the tuples of a grid to a pattern's.  -1: out of memory. */
int catalog_add(struct catalog *, const char *pattern, struct grid *);

/* Merges what waits, drops patterns without names, sorts.  -1: out of
 * memory (the catalog is as good as before). */
int catalog_settle(struct catalog *);

/* Replaces the grid of an entry; takes the reference. */
void entry_set(struct catalog *, struct entry *, struct grid *);

#endif
