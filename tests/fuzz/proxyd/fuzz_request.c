/*
 * fuzz_request.c: any bytes as requests.  However they are cut, the parser
 * says the same; what it accepts, the reference reads with the same end; and
 * what we send on is accepted again, and means the same.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "proxyd/http/forward.h"
#include "proxyd/http/parse_request.h"
#include "tests/fuzz/proxyd/reference.h"

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size);

static const struct head_limits limits = { 8192, 64 << 10, 100 };

#define CHECK(what)              \
	do {                     \
		if (!(what))     \
			abort(); \
	} while (0)

static void
same_end(const struct request *r, const uint8_t *bytes, size_t size)
{
	struct ref_request ref;

	CHECK(ref_request(bytes, size, &ref) == REF_OK);
	CHECK(ref.head_len == r->head_len);
	CHECK((r->body.kind == FRAMING_NONE) == (ref.body == REF_NO_BODY));
	CHECK((r->body.kind == FRAMING_LENGTH) == (ref.body == REF_LENGTH));
	CHECK((r->body.kind == FRAMING_CHUNKED) == (ref.body == REF_CHUNKED));
	CHECK(r->body.kind != FRAMING_LENGTH || r->body.length == ref.length);
}

static void
forwarded(const struct request *r, const char *base)
{
	static char out[FORWARD_MAX];
	struct forward_request fr = {
		.req = r,
		.base = base,
		.peer_ip = "::1",
		.client_ip = "192.0.2.1",
		.proto = "http",
		.host = "default.example",
		.via = "muster",
		.id = "0123456789",
		.id_len = 10,
		.trusted = r->scan % 2,
	};
	struct head_limits wide = { 8192, 128 << 10, FIELDS_MAX };
	struct request again;
	enum why why;
	size_t n = forward_request(out, sizeof(out), &fr);

	CHECK(n > 0);
	request_init(&again);
	CHECK(parse_request(&again, out, n, &wide, &why) == PARSE_DONE);
	CHECK(again.head_len == n && again.minor == 1);
	CHECK(again.method_name.len == r->method_name.len);
	CHECK(again.body.kind == r->body.kind);
	CHECK(again.body.length == r->body.length);
	CHECK(again.upgrade == r->upgrade && again.expect == r->expect);
	CHECK(r->host_len == 0 || strcmp(again.host, r->host) == 0);
	CHECK(!fields_have(&again.fields, FIELD_TE));
	CHECK(!fields_have(&again.fields, FIELD_KEEP_ALIVE));
	CHECK(r->upgrade != UPGRADE_NONE ||
	    !fields_have(&again.fields, FIELD_CONNECTION));
	same_end(&again, (const uint8_t *)out, n);
}

int
LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	static struct request r, cut;
	enum why why = WHY_NONE, cut_why = WHY_NONE;
	enum parse_result whole, got = PARSE_MORE;
	char *copy;
	size_t step;

	if (size < 2 || size > 100000)
		return 0;
	step = input[0] % 32 + 1;
	copy = malloc(size - 1);
	memcpy(copy, input + 1, --size);
	request_init(&r);
	whole = parse_request(&r, copy, size, &limits, &why);
	request_init(&cut);
	for (size_t n = step; got == PARSE_MORE; n += step) {
		got = parse_request(&cut, copy, n < size ? n : size, &limits,
		    &cut_why);
		if (n >= size)
			break;
	}
	CHECK(got == whole);
	if (whole == PARSE_DONE) {
		CHECK(cut.head_len == r.head_len);
		same_end(&r, input + 1, size);
		forwarded(&r, copy);
	}
	if (whole == PARSE_BAD)
		CHECK(why != WHY_NONE && why_status(why) >= 400);
	free(copy);
	return 0;
}
