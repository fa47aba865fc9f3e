/*
 * test_differential.c: the parser and the chunk decoder against the plain
 * reference reader, on requests that were damaged at random, the same way in
 * each run.  What is compared is in the fuzzers; these go much further.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>

#include "common/base/io.h"

#define LLVMFuzzerTestOneInput differ_request
#include "tests/fuzz/proxyd/fuzz_request.c"
#undef LLVMFuzzerTestOneInput
#undef CHECK
#define LLVMFuzzerTestOneInput differ_chunked
#include "tests/fuzz/proxyd/fuzz_chunked.c"
#undef LLVMFuzzerTestOneInput

#define ROUNDS 40000

static uint32_t seed = 20261130;

static uint32_t
dice(uint32_t n)
{
	seed = seed * 1664525 + 1013904223;
	return (seed >> 8) % n;
}

/* Bytes that mean something, more often than others. */
static uint8_t
any_byte(void)
{
	static const char telling[] = "\r\n\r\n \t:;,=\"\\0123456789aAfF/%.#_-";

	return dice(4) == 0 ? (uint8_t)dice(256) :
			      (uint8_t)telling[dice(sizeof(telling) - 1)];
}

static size_t
damage(uint8_t *bytes, size_t n, size_t room)
{
	for (uint32_t times = dice(4); times > 0 && n > 2; times--) {
		size_t at = 1 + dice((uint32_t)n - 1), len = 1 + dice(6);

		switch (dice(4)) {
		case 0:
			bytes[at] = any_byte();
			break;
		case 1: /* cut out */
			len = len < n - at ? len : n - at;
			memmove(bytes + at, bytes + at + len, n - at - len);
			n -= len;
			break;
		case 2: /* put in */
			if (n + 1 > room)
				break;
			memmove(bytes + at + 1, bytes + at, n - at);
			bytes[at] = any_byte();
			n++;
			break;
		case 3: /* double */
			len = len * 4 < n - at ? len * 4 : n - at;
			if (n + len > room)
				break;
			memmove(bytes + at + len, bytes + at, n - at);
			n += len;
			break;
		}
	}
	return n;
}

static void
run(int (*differ)(const uint8_t *, size_t), const char *const *seeds,
    size_t n_seeds)
{
	static uint8_t bytes[4096];

	for (int i = 0; i < ROUNDS; i++) {
		const char *s = seeds[dice((uint32_t)n_seeds)];
		size_t n = strlen(s);

		bytes[0] = (uint8_t)dice(256); /* how it is cut */
		memcpy(bytes + 1, s, n);
		n = damage(bytes, n + 1, sizeof(bytes));
		assert_int_equal(differ(bytes, n), 0);
	}
}

static void
requests(void **state)
{
	static const char *const seeds[] = {
		"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
		"POST /x?y HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n"
		"\r\n0\r\n\r\n",
		"GET http://b:80 HTTP/1.1\r\nHost: a\r\nX:  y \r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n"
		"Content-Length: 5\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
		"GET / HTTP/1.0\r\nConnection: close, Host\r\nHost: a\r\n"
		"Content_Length: 7\r\n\r\n",
	};

	(void)state;
	run(differ_request, seeds, nitems(seeds));
}

static void
chunks(void **state)
{
	static const char *const seeds[] = {
		"5\r\nhello\r\n0\r\n\r\n",
		"A;a=b;c=\"\\\"x\"\r\n0123456789\r\n1 ; y\r\nz\r\n0\r\n\r\n",
		"0\r\nX: y\r\nZ:\r\n\r\nGET / HTTP/1.1\r\n",
		"00000000000003\r\nabc\r\n000\r\n\r\n",
	};

	(void)state;
	run(differ_chunked, seeds, nitems(seeds));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(requests),
		cmocka_unit_test(chunks),
	};

	return cmocka_run_group_tests_name("differential", tests, NULL, NULL);
}
