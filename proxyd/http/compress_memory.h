/*
 * compress_memory.h: what the compressors of one worker hold: counted,
 * bounded, and some of it kept for the next ones.
 *
 * Compressors ask for a few blocks of the same sizes each time; from malloc()
 * they would come as fresh pages, whose faults cost as much as compressing a
 * small body.
 */
#ifndef MUSTER_COMPRESS_MEMORY_H
#define MUSTER_COMPRESS_MEMORY_H

#include <stddef.h>

#define COMPRESS_KEPT_MAX  64U	       /* spare blocks */
#define COMPRESS_KEPT_SIZE (4UL << 20) /* and their bytes */

struct compress_block;

struct compress_memory {
	size_t used;  /* bytes lent */
	size_t spare; /* bytes kept */
	unsigned n_spare;
	struct compress_block *free; /* the one given back last is first */
};

/* As malloc() and free(); of a struct compress_memory, as zlib and brotli
 * want to call them. */
void *compress_lend(void *memory, size_t);
void compress_give(void *memory, void *);

/* Frees what is kept. */
void compress_memory_fini(struct compress_memory *);

#endif
