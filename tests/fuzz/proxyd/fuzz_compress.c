/*
 * fuzz_compress.c: any body in any pieces, flushed anywhere, with any room:
 * what comes out decodes to what went in, and no memory is left behind.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <brotli/decode.h>
#include <zlib.h>

#include "proxyd/http/compress.h"

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size);

#define CODED_MAX (1U << 20)
#define BODY_MAX  (64U << 10)

#define CHECK(what)              \
	do {                     \
		if (!(what))     \
			abort(); \
	} while (0)

static char coded[CODED_MAX], body[BODY_MAX];

static size_t
gunzip(size_t n)
{
	z_stream z = { .next_in = (Bytef *)coded, .avail_in = (uInt)n };

	z.next_out = (Bytef *)body;
	z.avail_out = sizeof(body);
	CHECK(inflateInit2(&z, MAX_WBITS + 16) == Z_OK);
	CHECK(inflate(&z, Z_FINISH) == Z_STREAM_END && z.avail_in == 0);
	inflateEnd(&z);
	return z.total_out;
}

static size_t
unbrotli(size_t n)
{
	size_t size = sizeof(body);

	CHECK(BrotliDecoderDecompress(n, (const uint8_t *)coded, &size,
		  (uint8_t *)body) == BROTLI_DECODER_RESULT_SUCCESS);
	return size;
}

static size_t
push(struct compress *c, const char *in, size_t size, size_t room,
    enum filter_push how, size_t n)
{
	ssize_t got;

	do {
		CHECK(n + room <= sizeof(coded));
		got = c->filter.turn(&c->filter, &in, &size, coded + n, room,
		    how);
		CHECK(got >= 0);
		n += (size_t)got;
	} while ((size_t)got == room || size > 0);
	return n;
}

int
LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	struct compress_memory memory = { 0 };
	enum coding coding;
	struct compress *c;
	const char *in;
	size_t room, left, n = 0;

	if (size < 2 || size > 4096)
		return 0;
	coding = input[0] & 1 ? CODING_BR : CODING_GZIP;
	c = compress_new(&memory, coding, 1 + (input[0] >> 1) % 6,
	    input[0] & 128 ? size - 2 : COMPRESS_ANY_SIZE);
	room = 16 + input[1];
	in = (const char *)input + 2;
	left = size -= 2;
	CHECK(c != NULL);
	while (left > 0) {
		/* The body itself says where it is cut. */
		size_t piece = 1 + (uint8_t)*in % 32;

		if (piece > left)
			piece = left;
		n = push(c, in, piece, room,
		    *in & 64 ? FILTER_FLUSH : FILTER_MORE, n);
		in += piece;
		left -= piece;
	}
	n = push(c, NULL, 0, room, FILTER_END, n);
	CHECK((coding == CODING_BR ? unbrotli(n) : gunzip(n)) == size);
	CHECK(memcmp(body, input + 2, size) == 0);
	compress_free(&c);
	CHECK(memory.used == 0);
	compress_memory_fini(&memory);
	return 0;
}
