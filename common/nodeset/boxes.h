/*
 * boxes.h: a grid as few boxes: rack[1-3]node[1-20], rack4node[1-9].
 *
 * A box is the product of one set of numbers for each dimension.  Which
 * boxes a grid folds into is not unique; the rule (and so the order, largest
 * first) is that of ClusterShell, so that both print the same.
 */
#ifndef MUSTER_BOXES_H
#define MUSTER_BOXES_H

#include <stddef.h>
#include <stdint.h>

#include "common/nodeset/grid.h"

struct box {
	uint64_t size; /* tuples; 0: merged into another box */
	struct axis {
		struct grid *grid; /* of depth 1 */
		uint64_t hash;	   /* of its numbers */
	} axis[];
};

struct boxes {
	struct box **v;
	size_t n;
	size_t size;
	size_t depth;
};

/* Of a grid of depth 1 or more.  -1: out of memory. */
int boxes_make(struct boxes *, struct grid *);
void boxes_fini(struct boxes *);

#endif
