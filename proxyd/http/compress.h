/*
 * compress.h: a body on its way into a content coding: a filter of a flow.
 */
#ifndef MUSTER_COMPRESS_H
#define MUSTER_COMPRESS_H

#include <stddef.h>
#include <stdint.h>

#include "proxyd/http/coding.h"
#include "proxyd/http/compress_memory.h"
#include "proxyd/http/flow.h"

/* As zlib and brotli count them. */
#define COMPRESS_GZIP_MAX   9
#define COMPRESS_BROTLI_MAX 9 /* those above are for files, not for traffic */

struct compress {
	struct flow_filter filter;
};

/* What one takes of the memory at most. */
size_t compress_cost(enum coding, unsigned level);

#define COMPRESS_ANY_SIZE UINT64_MAX

/* Not for CODING_NONE.  `size`: what is to come, or COMPRESS_ANY_SIZE: of
 * little, little memory is made ready.  NULL: no memory. */
struct compress *compress_new(struct compress_memory *, enum coding,
    unsigned level, uint64_t size);

/* Frees *c, if there is one, and sets it to NULL. */
void compress_free(struct compress **c);

#endif
