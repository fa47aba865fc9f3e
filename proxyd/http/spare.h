/*
 * spare.h: blocks of one size that are used again and again: one that is put
 * back is kept for the next, and after a crowd has gone the system gets back
 * what was not needed.
 */
#ifndef MUSTER_SPARE_H
#define MUSTER_SPARE_H

#include <stddef.h>
#include <stdint.h>

struct spare {
	struct spare_block *first;
	uint32_t n, least; /* that are here; the fewest since the last tidy */
};

/* NULL: no memory.  What is in it is undefined. */
void *spare_take(struct spare *, size_t size);
void spare_put(struct spare *, void *);

/* Once a second: gives back part of what nobody needed since.  How many. */
uint32_t spare_tidy(struct spare *);

void spare_fini(struct spare *);

#endif
