/*
 * fuzz_response.c: any bytes as a node's response.  However they are cut, the
 * parser says the same, and the head we make of it is right again.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "proxyd/http/forward.h"
#include "proxyd/http/parse_response.h"

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size);

static const struct head_limits limits = { 8192, 64 << 10, 100 };

#define CHECK(what)              \
	do {                     \
		if (!(what))     \
			abort(); \
	} while (0)

static void
forwarded(const struct response *r, const char *base, bool head)
{
	static char out[FORWARD_MAX];
	struct forward_response fr = {
		.res = r,
		.base = base,
		.date = "Mon, 30 Nov 2026 10:00:00 GMT",
		.extra = "",
		.connection = FORWARD_CLOSE,
		.chunked = r->body.kind == FRAMING_CHUNKED ||
		    r->body.kind == FRAMING_CLOSE,
	};
	struct head_limits wide = { 8192, 128 << 10, FIELDS_MAX };
	struct response again;
	size_t n;

	if (r->status == 101 && !fields_have(&r->fields, FIELD_UPGRADE))
		return;
	n = forward_response(out, sizeof(out), &fr);
	CHECK(n > 0);
	response_init(&again);
	CHECK(parse_response(&again, out, n, &wide, head) == PARSE_DONE);
	CHECK(again.head_len == n && again.status == r->status);
	if (r->status < 200)
		return;
	CHECK(!again.keep_alive);
	CHECK(again.body.kind == (fr.chunked ? FRAMING_CHUNKED : r->body.kind));
	CHECK(r->body.kind != FRAMING_LENGTH ||
	    again.body.length == r->body.length);
}

int
LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	static struct response r, cut;
	enum parse_result whole, got = PARSE_MORE;
	bool head;
	char *copy;
	size_t step;

	if (size < 2 || size > 100000)
		return 0;
	step = input[0] % 32 + 1;
	head = input[0] >= 128;
	copy = malloc(size - 1);
	memcpy(copy, input + 1, --size);
	response_init(&r);
	whole = parse_response(&r, copy, size, &limits, head);
	response_init(&cut);
	for (size_t n = step; got == PARSE_MORE; n += step) {
		got = parse_response(&cut, copy, n < size ? n : size, &limits,
		    head);
		if (n >= size)
			break;
	}
	CHECK(got == whole);
	if (whole == PARSE_DONE) {
		CHECK(cut.head_len == r.head_len);
		forwarded(&r, copy, head);
	}
	free(copy);
	return 0;
}
