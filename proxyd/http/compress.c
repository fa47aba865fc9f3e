/*
 * compress.c: see compress.h.
 *
 * gzip by zlib with its largest window, as everybody does.  Brotli with a
 * window of 64 KiB: at the levels that keep up with traffic a larger one
 * gains two per cent and costs megabytes a stream.
 */
#include "proxyd/http/compress.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>
#include <brotli/encode.h>
#include <zlib.h>

#define GZIP_WINDOW   (MAX_WBITS + 16) /* 16: with gzip's head and tail */
#define GZIP_MEMORY   8		       /* zlib's default */
#define BROTLI_WINDOW 16

struct compress {
	struct compress_memory *memory;
	enum coding coding;
	union {
		z_stream z;
		BrotliEncoderState *brotli;
	};
};

static void *
lend_to_zlib(void *memory, unsigned n, unsigned size)
{
	return compress_lend(memory, (size_t)n * size);
}

static int
open_gzip(struct compress *c, unsigned level)
{
	c->z = (z_stream){
		.zalloc = lend_to_zlib,
		.zfree = compress_give,
		.opaque = c->memory,
	};
	return deflateInit2(&c->z, (int)level, Z_DEFLATED, GZIP_WINDOW,
		   GZIP_MEMORY, Z_DEFAULT_STRATEGY) == Z_OK ?
	    0 :
	    -1;
}

static void
close_gzip(struct compress *c)
{
	deflateEnd(&c->z);
}

static enum compress_result
run_gzip(struct compress *c, enum compress_step step, struct compress_io *io)
{
	static const int flushes[] = {
		[COMPRESS_RUN] = Z_NO_FLUSH,
		[COMPRESS_FLUSH] = Z_SYNC_FLUSH,
		[COMPRESS_END] = Z_FINISH,
	};
	int r;

	c->z.next_in = (Bytef *)(uintptr_t)io->in;
	c->z.avail_in = (uInt)io->in_size;
	c->z.next_out = (Bytef *)io->out;
	c->z.avail_out = (uInt)io->out_size;
	r = deflate(&c->z, flushes[step]);
	io->in = (const char *)c->z.next_in;
	io->in_size = c->z.avail_in;
	io->out = (char *)c->z.next_out;
	io->out_size = c->z.avail_out;
	/* Z_BUF_ERROR: there was nothing to do. */
	if (r != Z_OK && r != Z_STREAM_END && r != Z_BUF_ERROR)
		return COMPRESS_FAILED;
	if (step == COMPRESS_END)
		return r == Z_STREAM_END ? COMPRESS_DONE : COMPRESS_FULL;
	return io->in_size > 0 ||
		(step == COMPRESS_FLUSH && io->out_size == 0) ?
	    COMPRESS_FULL :
	    COMPRESS_DONE;
}

static int
open_brotli(struct compress *c, unsigned level)
{
	c->brotli = BrotliEncoderCreateInstance(compress_lend, compress_give,
	    c->memory);
	if (c->brotli == NULL)
		return -1;
	BrotliEncoderSetParameter(c->brotli, BROTLI_PARAM_QUALITY, level);
	BrotliEncoderSetParameter(c->brotli, BROTLI_PARAM_LGWIN, BROTLI_WINDOW);
	return 0;
}

static void
close_brotli(struct compress *c)
{
	BrotliEncoderDestroyInstance(c->brotli);
}

static enum compress_result
run_brotli(struct compress *c, enum compress_step step, struct compress_io *io)
{
	static const BrotliEncoderOperation operations[] = {
		[COMPRESS_RUN] = BROTLI_OPERATION_PROCESS,
		[COMPRESS_FLUSH] = BROTLI_OPERATION_FLUSH,
		[COMPRESS_END] = BROTLI_OPERATION_FINISH,
	};
	const uint8_t *in = (const uint8_t *)io->in;
	uint8_t *out = (uint8_t *)io->out;

	if (!BrotliEncoderCompressStream(c->brotli, operations[step],
		&io->in_size, &in, &io->out_size, &out, NULL))
		return COMPRESS_FAILED;
	io->in = (const char *)in;
	io->out = (char *)out;
	if (io->in_size > 0 || BrotliEncoderHasMoreOutput(c->brotli))
		return COMPRESS_FULL;
	return COMPRESS_DONE;
}

static const struct {
	int (*open)(struct compress *, unsigned level);
	void (*close)(struct compress *);
	enum compress_result (
	    *run)(struct compress *, enum compress_step, struct compress_io *);
} coders[CODING_N] = {
	[CODING_GZIP] = { open_gzip, close_gzip, run_gzip },
	[CODING_BR] = { open_brotli, close_brotli, run_brotli },
};

size_t
compress_cost(enum coding coding, unsigned level)
{
	/* Measured, for brotli's quality; and an eighth for blocks that are
	 * larger than what was asked for. */
	static const size_t brotli_kib[COMPRESS_BROTLI_MAX + 1] = { 384, 896,
		1472, 1472, 2688, 2688, 2688, 2688, 2688, 2688 };

	if (coding == CODING_GZIP)
		return 304UL << 10;
	return brotli_kib[level] << 10;
}

struct compress *
compress_new(struct compress_memory *memory, enum coding coding, unsigned level)
{
	struct compress *c = compress_lend(memory, sizeof(*c));

	assert(coders[coding].open != NULL);
	if (c == NULL)
		return NULL;
	c->memory = memory;
	c->coding = coding;
	if (coders[coding].open(c, level) == 0)
		return c;
	compress_give(memory, c);
	return NULL;
}

void
compress_free(struct compress **cp)
{
	struct compress *c = *cp;

	if (c == NULL)
		return;
	*cp = NULL;
	coders[c->coding].close(c);
	compress_give(c->memory, c);
}

enum compress_result
compress_run(struct compress *c, enum compress_step step,
    struct compress_io *io)
{
	return coders[c->coding].run(c, step, io);
}
