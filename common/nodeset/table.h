/*
 * table.h: the patterns of a set, each with the grid of its names.
 *
 * Names come one by one and in any order.  So that n of them cost n log n,
 * a grid that is added waits beside its pattern, and is merged with others
 * of its age (as the carry of a binary counter) until the table is settled.
 */
#ifndef MUSTER_TABLE_H
#define MUSTER_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/nodeset/grid.h"

struct entry {
	char *pattern;	       /* see pattern.h */
	struct grid *grid;     /* NULL in a settled table: no names */
	struct grid **waiting; /* NULL in a settled table */
	bool touches;	       /* pattern_touches() */
};

struct table {
	struct entry *v; /* settled: by pattern, as strcmp */
	size_t n;
	size_t size;
	size_t n_touching; /* entries with ->touches */
	uint32_t *index;   /* hash of pattern -> place in v, plus 1 */
	size_t index_size; /* 0 or a power of 2 */
	bool settled;
};

void table_fini(struct table *);

/* NULL: there is none. */
struct entry *table_find(const struct table *, const char *pattern);

/* Adds the tuples of a grid to a pattern's.  -1: out of memory. */
int table_add(struct table *, const char *pattern, struct grid *);

/* Merges what waits, drops patterns without names, sorts.  -1: out of
 * memory (the table is as good as before). */
int table_settle(struct table *);

/* Replaces the grid of an entry; takes the reference. */
void entry_set(struct table *, struct entry *, struct grid *);

#endif
