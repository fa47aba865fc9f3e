/*
 * fuzz_proxy_header.c: any bytes as the beginning of a connection: what is
 * read is within them, needs each of its bytes, and says the same when it is
 * written and read again.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "proxyd/http/proxy_header.h"

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size);

#define CHECK(what)              \
	do {                     \
		if (!(what))     \
			abort(); \
	} while (0)

static void
check_within(struct proxy_text t, const char *bytes, size_t size)
{
	if (t.len == 0)
		return;
	CHECK(t.text >= bytes && t.text + t.len <= bytes + size);
}

static bool
same(struct proxy_text a, struct proxy_text b)
{
	return a.len == b.len &&
	    (a.len == 0 || memcmp(a.text, b.text, a.len) == 0);
}

static void
check_again(const struct proxy_header *h, enum proxy_version version)
{
	char out[PROXY_HEADER_OUT];
	size_t taken, size = proxy_header_write(out, sizeof(out), version, h);
	struct proxy_header back;

	CHECK(size > 0);
	CHECK(proxy_header_read(out, size, &back, &taken) == PROXY_READ_DONE);
	CHECK(taken == size && back.from.len == h->from.len);
	CHECK(memcmp(&back.from.u, &h->from.u, h->from.len) == 0);
	if (version == PROXY_V1 || h->from.len == 0)
		return;
	CHECK(back.secure == h->secure);
	CHECK(h->id.len > PROXY_ID_MAX || same(back.id, h->id));
	CHECK(h->authority.len > PROXY_NAME_MAX ||
	    same(back.authority, h->authority));
}

int
LLVMFuzzerTestOneInput(const uint8_t *input, size_t n)
{
	struct proxy_header h, part;
	size_t size = 0, ignored;
	enum proxy_read r;
	char *bytes;

	if (n > PROXY_HEADER_MAX + 64)
		return 0;
	bytes = malloc(n > 0 ? n : 1);
	memcpy(bytes, input, n);
	r = proxy_header_read(bytes, n, &h, &size);
	if (r == PROXY_READ_MORE)
		CHECK(n < PROXY_HEADER_MAX);
	if (r == PROXY_READ_DONE) {
		CHECK(size > 0 && size <= n && size <= PROXY_HEADER_MAX);
		CHECK(proxy_header_read(bytes, size - 1, &part, &ignored) ==
		    PROXY_READ_MORE);
		check_within(h.alpn, bytes, size);
		check_within(h.authority, bytes, size);
		check_within(h.id, bytes, size);
		check_within(h.tls_version, bytes, size);
		check_within(h.tls_cipher, bytes, size);
		check_again(&h, PROXY_V1);
		check_again(&h, PROXY_V2);
	}
	free(bytes);
	return 0;
}
