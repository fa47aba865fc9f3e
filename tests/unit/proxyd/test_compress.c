/*
 * test_compress.c: bodies into codings and, by the decoders' own libraries,
 * back: every level, pieces of every size, flushes, and what it takes.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <brotli/decode.h>
#include <zlib.h>

#include "common/base/io.h"
#include "proxyd/http/compress.h"

#define BODY_MAX (3U << 20)
#define ROOM	 (BODY_MAX + BODY_MAX / 2)

static char *body, *coded, *decoded;
static struct compress_memory memory;

static size_t
gunzip(size_t size)
{
	z_stream z = { .next_in = (Bytef *)coded, .avail_in = (uInt)size };
	size_t n;

	assert_int_equal(inflateInit2(&z, MAX_WBITS + 16), Z_OK);
	z.next_out = (Bytef *)decoded;
	z.avail_out = ROOM;
	assert_in_range(inflate(&z, Z_SYNC_FLUSH) + 10, 10, 11);
	n = z.total_out;
	inflateEnd(&z);
	return n;
}

static size_t
unbrotli(size_t size)
{
	BrotliDecoderState *s = BrotliDecoderCreateInstance(NULL, NULL, NULL);
	const uint8_t *in = (const uint8_t *)coded;
	uint8_t *out = (uint8_t *)decoded;
	size_t room = ROOM, total = 0;

	assert_int_not_equal(BrotliDecoderDecompressStream(s, &size, &in, &room,
				 &out, &total),
	    BROTLI_DECODER_RESULT_ERROR);
	BrotliDecoderDestroyInstance(s);
	return total;
}

static void
assert_decodes(enum coding coding, size_t coded_size, size_t body_size)
{
	assert_int_equal(coding == CODING_GZIP ? gunzip(coded_size) :
						 unbrotli(coded_size),
	    body_size);
	assert_memory_equal(decoded, body, body_size);
}

/* One push, with `bite` bytes of room at a time, as a flow does it. */
static void
step(struct compress *c, enum filter_push push, const char *in, size_t size,
    size_t bite, size_t *n)
{
	ssize_t got;

	do {
		assert_true(*n + bite <= ROOM);
		got = c->filter.turn(&c->filter, &in, &size, coded + *n, bite,
		    push);
		assert_true(got >= 0);
		*n += (size_t)got;
	} while (got == (ssize_t)bite || size > 0);
}

static void
check(enum coding coding, unsigned level, size_t size, size_t piece,
    size_t bite)
{
	struct compress *c = compress_new(&memory, coding, level,
	    piece == 16384 ? size : COMPRESS_ANY_SIZE);
	size_t n = 0;

	assert_non_null(c);
	for (size_t at = 0; at < size; at += piece)
		step(c, FILTER_MORE, body + at,
		    size - at < piece ? size - at : piece, bite, &n);
	assert_in_range(memory.used, 1, compress_cost(coding, level));
	step(c, FILTER_END, NULL, 0, bite, &n);
	compress_free(&c);
	assert_null(c);
	assert_int_equal(memory.used, 0);
	assert_decodes(coding, n, size);
}

static void
every_level(void **state)
{
	static const size_t sizes[] = { 0, 1, 100, 249, 250, 251, 2000, 16121,
		20000, 300000 };

	(void)state;
	for (size_t i = 0; i < nitems(sizes); i++) {
		for (unsigned l = 1; l <= COMPRESS_GZIP_MAX; l++)
			check(CODING_GZIP, l, sizes[i], 16384, 16384);
		for (unsigned l = 0; l <= COMPRESS_BROTLI_MAX; l++)
			check(CODING_BR, l, sizes[i], 16384, 16384);
	}
}

static void
pieces_and_rooms(void **state)
{
	static const size_t pieces[][2] = { { 1, 64 }, { 7, 16 }, { 5000, 100 },
		{ 131072, 131072 }, { 20000, 32 } };

	(void)state;
	for (size_t i = 0; i < nitems(pieces); i++)
		for (enum coding c = CODING_GZIP; c < CODING_N; c++)
			check(c, 4, 20000, pieces[i][0], pieces[i][1]);
}

static void
large_bodies_within_the_bound(void **state)
{
	(void)state;
	for (enum coding c = CODING_GZIP; c < CODING_N; c++)
		check(c, 4, BODY_MAX, 131072, 16384);
	check(CODING_BR, 9, BODY_MAX, 131072, 16384);
}

/* What was flushed can be read without what comes later. */
static void
flushes(void **state)
{
	(void)state;
	for (enum coding coding = CODING_GZIP; coding < CODING_N; coding++) {
		struct compress *c =
		    compress_new(&memory, coding, 4, COMPRESS_ANY_SIZE);
		size_t n = 0, size = 0;

		for (size_t piece = 1; size + piece < 100000; piece *= 3) {
			step(c, FILTER_MORE, body + size, piece, 100, &n);
			step(c, FILTER_FLUSH, NULL, 0, 100, &n);
			size += piece;
			assert_decodes(coding, n, size);
		}
		/* All together, also when nothing is left to flush. */
		step(c, FILTER_FLUSH, body + size, 1000, 4096, &n);
		step(c, FILTER_FLUSH, NULL, 0, 4096, &n);
		step(c, FILTER_END, body + size + 1000, 5, 4096, &n);
		compress_free(&c);
		assert_decodes(coding, n, size + 1005);
	}
}

static void
memory_is_kept_within_bounds(void **state)
{
	struct compress *all[40];
	size_t used = 0;

	(void)state;
	for (size_t i = 0; i < nitems(all); i++) {
		all[i] =
		    compress_new(&memory, CODING_GZIP, 4, COMPRESS_ANY_SIZE);
		assert_true(memory.used > used);
		used = memory.used;
	}
	for (size_t i = 0; i < nitems(all); i++)
		compress_free(&all[i]);
	assert_int_equal(memory.used, 0);
	assert_in_range(memory.n_spare, 1, COMPRESS_KEPT_MAX);
	assert_in_range(memory.spare, 1, COMPRESS_KEPT_SIZE);
	compress_memory_fini(&memory);
	assert_int_equal(memory.spare, 0);
	assert_null(memory.free);
	compress_free(&all[0]); /* NULL is fine */
}

static ssize_t
turn_badly(struct flow_filter *f, const char **in, size_t *size, char *out,
    size_t room, enum filter_push push)
{
	(void)f;
	(void)in;
	(void)size;
	(void)out;
	(void)room;
	(void)push;
	return -1;
}

/* Nobody takes a body for whole whose compressor failed. */
static void
a_failure_ends_the_flow(void **state)
{
	struct flow_filter failing = { turn_badly };
	struct buf_pool bufs = { 0 };
	struct pipe_pool pipes = { 0 };
	struct flow_tools tools = { .bufs = &bufs, .pipes = &pipes };
	struct sock src = { .fd = -1 }, dst = { .fd = -1, .writable = true };
	char bytes[] = "a body";
	enum why why = WHY_NONE;
	struct flow f;

	(void)state;
	flow_init(&f, (struct body_framing){ FRAMING_LENGTH, 6 }, FLOW_CHUNKS);
	flow_filter(&f, &failing);
	assert_int_equal(flow_feed(&f, bytes, 6, &why), FLOW_WAITS_SRC);
	assert_int_equal(flow_run(&f, &tools, &src, &dst, &why),
	    FLOW_FILTER_ERROR);
	flow_fini(&f, &tools);
	buf_pool_free(&bufs);
	pipe_pool_free(&pipes);
}

/* Half text, half noise. */
static int
make_body(void **state)
{
	uint32_t noise = 1;

	(void)state;
	body = malloc(BODY_MAX);
	coded = malloc(ROOM);
	decoded = malloc(ROOM);
	for (size_t i = 0; i < BODY_MAX; i++) {
		noise = noise * 1664525 + 1013904223;
		body[i] = i / 10000 % 2 == 0 ?
		    (char)(noise >> 24) :
		    "<p>the text of a page</p>"[i % 25];
	}
	return 0;
}

static int
free_body(void **state)
{
	(void)state;
	compress_memory_fini(&memory);
	free(body);
	free(coded);
	free(decoded);
	return 0;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_level),
		cmocka_unit_test(pieces_and_rooms),
		cmocka_unit_test(large_bodies_within_the_bound),
		cmocka_unit_test(flushes),
		cmocka_unit_test(memory_is_kept_within_bounds),
		cmocka_unit_test(a_failure_ends_the_flow),
	};

	return cmocka_run_group_tests(tests, make_body, free_body);
}
