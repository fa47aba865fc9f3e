/*
 * unmap.h: gives large mappings back, in a thread of its own.
 *
 * Whoever unmaps the last view of an image frees its pages: five milliseconds
 * for a hundred thousand sites, in which a worker would serve nobody.
 */
#ifndef MUSTER_UNMAP_H
#define MUSTER_UNMAP_H

#include <stddef.h>

/* munmap(2), soon.  At once where the mapping is small, or no thread is to be
 * had. */
void unmap_later(void *start, size_t size);

#endif
