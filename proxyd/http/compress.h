/*
 * compress.h: a body on its way into a content coding, piece by piece.
 *
 * At any point all that went in can be had out (COMPRESS_FLUSH), so nothing
 * a node has sent waits for what it has not.
 */
#ifndef MUSTER_COMPRESS_H
#define MUSTER_COMPRESS_H

#include <stddef.h>

#include "proxyd/http/coding.h"
#include "proxyd/http/compress_memory.h"

/* As zlib and brotli count them. */
#define COMPRESS_GZIP_MAX   9
#define COMPRESS_BROTLI_MAX 9 /* those above are for files, not for traffic */

struct compress;

enum compress_step {
	COMPRESS_RUN,	/* more will follow */
	COMPRESS_FLUSH, /* the client shall be able to read all so far */
	COMPRESS_END,
};

enum compress_result {
	COMPRESS_DONE,	/* all was taken and, but for a run, is out */
	COMPRESS_FULL,	/* again, with more room */
	COMPRESS_FAILED /* the stream is of no use any more */
};

/* Moves on by what was taken, and by what was written. */
struct compress_io {
	const char *in;
	size_t in_size;
	char *out;
	size_t out_size;
};

/* What a stream takes of the memory at most. */
size_t compress_cost(enum coding, unsigned level);

/* Not for CODING_NONE.  NULL: no memory. */
struct compress *compress_new(struct compress_memory *, enum coding,
    unsigned level);

/* Frees *c, if there is one, and sets it to NULL. */
void compress_free(struct compress **c);

enum compress_result compress_run(struct compress *, enum compress_step,
    struct compress_io *);

#endif
