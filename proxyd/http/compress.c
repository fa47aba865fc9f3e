/*
 * compress.c: see compress.h.
 *
 * gzip by zlib with its largest window, as everybody does.  Brotli with a
 * window of 64 KiB: at the levels that keep up with traffic a larger one
 * gains two per cent and costs megabytes a stream.
 */
#include "proxyd/http/compress.h"

#include <assert.h>
#include <brotli/encode.h>
#include <zlib.h>

#define GZIP_FORMAT   16 /* added to the window: with gzip's head and tail */
#define GZIP_MEMORY   8	 /* zlib's default */
#define BROTLI_WINDOW 16

struct stream {
	struct compress c;
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

/* A window larger than the body is only cleared for nothing; zlib looks no
 * nearer than 262 bytes to its end. */
static int
open_gzip(struct stream *s, unsigned level, uint64_t size)
{
	int window = MAX_WBITS, memory = GZIP_MEMORY;

	while (window > 10 && size < (1U << (window - 1)) - 262) {
		window--;
		memory--;
	}
	s->z = (z_stream){
		.zalloc = lend_to_zlib,
		.zfree = compress_give,
		.opaque = s->memory,
	};
	return deflateInit2(&s->z, (int)level, Z_DEFLATED, window + GZIP_FORMAT,
		   memory, Z_DEFAULT_STRATEGY) == Z_OK ?
	    0 :
	    -1;
}

static void
close_gzip(struct stream *s)
{
	deflateEnd(&s->z);
}

static ssize_t
turn_gzip(struct stream *s, const char **in, size_t *size, char *out,
    size_t room, enum filter_push push)
{
	static const int flushes[] = {
		[FILTER_MORE] = Z_NO_FLUSH,
		[FILTER_FLUSH] = Z_SYNC_FLUSH,
		[FILTER_END] = Z_FINISH,
	};
	int r;

	s->z.next_in = (Bytef *)(uintptr_t)*in;
	s->z.avail_in = (uInt)*size;
	s->z.next_out = (Bytef *)out;
	s->z.avail_out = (uInt)room;
	r = deflate(&s->z, flushes[push]);
	*in = (const char *)s->z.next_in;
	*size = s->z.avail_in;
	/* Z_BUF_ERROR: there was nothing to do. */
	if (r != Z_OK && r != Z_STREAM_END && r != Z_BUF_ERROR)
		return -1;
	return (ssize_t)(room - s->z.avail_out);
}

static int
open_brotli(struct stream *s, unsigned level, uint64_t size)
{
	(void)size; /* it takes memory as the body grows */
	s->brotli = BrotliEncoderCreateInstance(compress_lend, compress_give,
	    s->memory);
	if (s->brotli == NULL)
		return -1;
	BrotliEncoderSetParameter(s->brotli, BROTLI_PARAM_QUALITY, level);
	BrotliEncoderSetParameter(s->brotli, BROTLI_PARAM_LGWIN, BROTLI_WINDOW);
	return 0;
}

static void
close_brotli(struct stream *s)
{
	BrotliEncoderDestroyInstance(s->brotli);
}

static ssize_t
turn_brotli(struct stream *s, const char **in, size_t *size, char *out,
    size_t room, enum filter_push push)
{
	static const BrotliEncoderOperation operations[] = {
		[FILTER_MORE] = BROTLI_OPERATION_PROCESS,
		[FILTER_FLUSH] = BROTLI_OPERATION_FLUSH,
		[FILTER_END] = BROTLI_OPERATION_FINISH,
	};
	const uint8_t *next_in = (const uint8_t *)*in;
	uint8_t *next_out = (uint8_t *)out;
	size_t left = room;

	if (!BrotliEncoderCompressStream(s->brotli, operations[push], size,
		&next_in, &left, &next_out, NULL))
		return -1;
	*in = (const char *)next_in;
	return (ssize_t)(room - left);
}

static const struct {
	int (*open)(struct stream *, unsigned level, uint64_t size);
	void (*close)(struct stream *);
	ssize_t (*turn)(struct stream *, const char **in, size_t *size,
	    char *out, size_t room, enum filter_push);
} coders[CODING_N] = {
	[CODING_GZIP] = { open_gzip, close_gzip, turn_gzip },
	[CODING_BR] = { open_brotli, close_brotli, turn_brotli },
};

static ssize_t
turn(struct flow_filter *f, const char **in, size_t *size, char *out,
    size_t room, enum filter_push push)
{
	struct stream *s = (struct stream *)(void *)f;

	return coders[s->coding].turn(s, in, size, out, room, push);
}

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
compress_new(struct compress_memory *memory, enum coding coding, unsigned level,
    uint64_t size)
{
	struct stream *s = compress_lend(memory, sizeof(*s));

	assert(coders[coding].open != NULL);
	if (s == NULL)
		return NULL;
	*s = (struct stream){
		.c.filter.turn = turn,
		.memory = memory,
		.coding = coding,
	};
	if (coders[coding].open(s, level, size) == 0)
		return &s->c;
	compress_give(memory, s);
	return NULL;
}

void
compress_free(struct compress **c)
{
	struct stream *s = (struct stream *)(void *)*c;

	if (s == NULL)
		return;
	*c = NULL;
	coders[s->coding].close(s);
	compress_give(s->memory, s);
}
