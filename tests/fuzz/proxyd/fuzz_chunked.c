/*
 * fuzz_chunked.c: any bytes as a chunked body, cut anywhere, against the
 * reference.  Payload and end must be the same.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "proxyd/http/chunked.h"
#include "tests/fuzz/proxyd/reference.h"

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size);

#define CHECK(what)              \
	do {                     \
		if (!(what))     \
			abort(); \
	} while (0)

/* In pieces of `step`, each in memory of its own. */
static enum chunk_result
decode(const uint8_t *bytes, size_t size, size_t step, uint8_t *out,
    size_t *out_len, size_t *taken)
{
	enum chunk_result r = CHUNK_MORE;
	struct chunked c;

	chunked_init(&c);
	*out_len = *taken = 0;
	while (r == CHUNK_MORE && *taken < size) {
		size_t n = size - *taken < step ? size - *taken : step, used;
		struct chunk_piece piece;
		char *copy = malloc(n);

		memcpy(copy, bytes + *taken, n);
		r = chunked_decode(&c, copy, n, &piece, &used);
		CHECK(used <= n && piece.start + piece.len <= n);
		CHECK(r != CHUNK_MORE || used == n);
		CHECK(r != CHUNK_DONE ||
		    memcmp(copy + used, bytes + *taken + used, n - used) == 0);
		memcpy(out + *out_len, copy + piece.start, piece.len);
		*out_len += piece.len;
		*taken += used;
		free(copy);
	}
	return r;
}

int
LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	uint8_t *ours, *theirs;
	size_t n_ours, n_theirs, end_ours, end_theirs = 0;
	enum chunk_result r;
	enum ref_verdict v;
	size_t step;

	if (size < 2 || size > 60000)
		return 0;
	step = input[0] == 0 ? size : input[0];
	input++, size--;
	ours = malloc(size);
	theirs = malloc(size);
	r = decode(input, size, step, ours, &n_ours, &end_ours);
	v = ref_chunked(input, size, theirs, &n_theirs, &end_theirs);
	if (r == CHUNK_DONE) {
		CHECK(v == REF_OK && end_ours == end_theirs);
		CHECK(n_ours == n_theirs && memcmp(ours, theirs, n_ours) == 0);
	} else if (r == CHUNK_MORE) {
		/* We see an error as soon as it is there; the reference, at
		 * the end of the line. */
		CHECK(v == REF_MORE);
	} else {
		/* Only limits make a whole body wrong. */
		CHECK(v != REF_OK || size > CHUNK_EXT_MAX ||
		    memchr(input, ':', size) != NULL);
	}
	free(ours);
	free(theirs);
	return 0;
}
