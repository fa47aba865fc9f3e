/*
 * pages.h: the HTML pages that sites bring along (suspended, out of order),
 * read while a snapshot is compiled.  Many sites share few files: each is
 * read once and stands once in the image.
 */
#ifndef MUSTER_PAGES_H
#define MUSTER_PAGES_H

#include <stddef.h>
#include <stdint.h>

#include "proxyd/process/snapshot_plan.h"

#define PAGE_SIZE_MAX (64U << 10)

struct page;

struct pages {
	struct page *slots; /* by a hash of the path */
	size_t n, room;
};

/* Zeroed storage is an empty one. */
void pages_free(struct pages *);

/*
 * The text of the file for the plan; none for an empty path.  A page that
 * cannot be read must change nothing else: it is logged, and the built-in
 * one is shown.  -1: no memory.
 */
int pages_get(struct pages *, struct snapshot_plan *, const char *path,
    struct snap_text *, struct err *);

#endif
