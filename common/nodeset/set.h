/*
 * set.h: a node set from within.  Only for the files of this folder.
 */
#ifndef MUSTER_SET_H
#define MUSTER_SET_H

#include "common/nodeset/nodeset.h"
#include "common/nodeset/catalog.h"

struct nodeset {
	struct catalog catalog;
	uint64_t bound; /* it holds at most so many names */
};

/* Adds the names of a pattern. */
int set_add(struct nodeset *, const char *pattern, struct grid *, struct err *);

#endif
