/* test_parse_response.c: rows H of http_cases.md, whole and byte by byte. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/io.h"
#include "proxyd/http/parse_response.h"

#define L(s) s, sizeof(s) - 1
#define R    "HTTP/1.1 200 OK\r\n"

static const struct head_limits limits = { 8192, 64 << 10, 100 };

static enum parse_result
parse_at(struct response *r, const char *bytes, size_t len, bool head)
{
	char *copy = malloc(len);
	enum parse_result result;

	memcpy(copy, bytes, len);
	result = parse_response(r, copy, len, &limits, head);
	free(copy);
	return result;
}

static enum parse_result
parse(struct response *r, const char *bytes, size_t len, bool head)
{
	enum parse_result whole, got = PARSE_MORE;

	response_init(r);
	for (size_t n = 1; n <= len && got == PARSE_MORE; n++)
		got = parse_at(r, bytes, n, head);
	response_init(r);
	whole = parse_at(r, bytes, len, head);
	assert_int_equal(got, whole);
	return whole;
}

static void
heads(void **state)
{
	static const struct {
		const char *row, *bytes;
		size_t len;
		enum parse_result result;
		enum framing kind;
		uint64_t length;
		bool head, keep_alive;
	} cases[] = {
		{ "-", L(R "Content-Length: 5\r\n\r\nhello"), PARSE_DONE,
		    FRAMING_LENGTH, 5, false, true },
		{ "-", L("HTTP/1.1 200\r\nContent-Length: 5\r\n\r\n"),
		    PARSE_DONE, FRAMING_LENGTH, 5, false, true },
		{ "-", L("HTTP/1.1 200 \r\nContent-Length: 5\r\n\r\n"),
		    PARSE_DONE, FRAMING_LENGTH, 5, false, true },
		{ "-",
		    L(R "Transfer-Encoding: chunked\r\n"
			"Connection: close\r\n\r\n"),
		    PARSE_DONE, FRAMING_CHUNKED, 0, false, false },
		{ "-", L("HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\n"),
		    PARSE_DONE, FRAMING_LENGTH, 5, false, false },
		{ "-",
		    L("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n"
		      "Content-Length: 5\r\n\r\n"),
		    PARSE_DONE, FRAMING_LENGTH, 5, false, true },
		{ "H1",
		    L(R "Content-Length: 5\r\n"
			"Transfer-Encoding: chunked\r\n\r\n"),
		    PARSE_BAD, 0, 0, false, false },
		{ "H1", L(R "Transfer-Encoding: gzip\r\n\r\n"), PARSE_BAD, 0, 0,
		    false, false },
		{ "H1", L(R "Content-Length: 5\r\nContent-Length: 5\r\n\r\n"),
		    PARSE_BAD, 0, 0, false, false },
		{ "H1",
		    L("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n"
		      "\r\n"),
		    PARSE_BAD, 0, 0, false, false },
		{ "H3", L(R "X: a\r\n b\r\n\r\n"), PARSE_BAD, 0, 0, false,
		    false },
		{ "H4", L(R "Content-Length \t: 5\r\n\r\n"), PARSE_DONE,
		    FRAMING_LENGTH, 5, false, true },
		{ "H5", L(R "Content-Length: 100\r\n\r\n"), PARSE_DONE,
		    FRAMING_NONE, 100, true, true },
		{ "H5", L(R "Transfer-Encoding: chunked\r\n\r\n"), PARSE_DONE,
		    FRAMING_NONE, 0, true, true },
		{ "H5", L("HTTP/1.1 304 Not\r\nContent-Length: 9\r\n\r\n"),
		    PARSE_DONE, FRAMING_NONE, 9, false, true },
		{ "H5", L("HTTP/1.1 204 No\r\nContent-Length: 9\r\n\r\n"),
		    PARSE_DONE, FRAMING_NONE, 9, false, false },
		{ "H5", L("HTTP/1.1 204 No\r\n\r\n"), PARSE_DONE, FRAMING_NONE,
		    0, false, true },
		{ "H7", L(R "\r\ndata"), PARSE_DONE, FRAMING_CLOSE, 0, false,
		    true },
		{ "H12", L(R "X: a\x00\r\n\r\n"), PARSE_BAD, 0, 0, false,
		    false },
		{ "H12", L(R "X: a\rb\r\n\r\n"), PARSE_BAD, 0, 0, false,
		    false },
		{ "H12", L(R "X(: a\r\n\r\n"), PARSE_BAD, 0, 0, false, false },
		{ "H12", L(R "X: a\nY: b\r\n\r\n"), PARSE_BAD, 0, 0, false,
		    false },
		{ "H12", L("HTTP/1.1 200 O\x01K\r\n\r\n"), PARSE_BAD, 0, 0,
		    false, false },
		{ "H12", L("HTTP/2.0 200 OK\r\n\r\n"), PARSE_BAD, 0, 0, false,
		    false },
		{ "H12", L("HTTP/1.1 2000 OK\r\n\r\n"), PARSE_BAD, 0, 0, false,
		    false },
		{ "H12", L("HTTP/1.1 099 OK\r\n\r\n"), PARSE_BAD, 0, 0, false,
		    false },
		{ "H12", L("HTTP/1.1  200 OK\r\n\r\n"), PARSE_BAD, 0, 0, false,
		    false },
		{ "H12", L("garbage\r\n\r\n"), PARSE_BAD, 0, 0, false, false },
		{ "G5", L("HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" R),
		    PARSE_DONE, FRAMING_NONE, 0, false, true },
		{ "-", L(R "X: "), PARSE_MORE, 0, 0, false, false },
	};
	struct response r;

	(void)state;
	for (size_t i = 0; i < nitems(cases); i++) {
		enum parse_result got =
		    parse(&r, cases[i].bytes, cases[i].len, cases[i].head);

		if (got != cases[i].result)
			print_message("%s: %s\n", cases[i].row, cases[i].bytes);
		assert_int_equal(got, cases[i].result);
		if (got != PARSE_DONE)
			continue;
		assert_int_equal(r.body.kind, cases[i].kind);
		assert_int_equal(r.body.length, cases[i].length);
		assert_int_equal(r.keep_alive, cases[i].keep_alive);
	}
}

static void
reasons(void **state)
{
	static const char bytes[] = "HTTP/1.1 404 Not \xe9t\xe9\r\n\r\n";
	struct response r;

	(void)state;
	assert_int_equal(parse(&r, L(bytes), false), PARSE_DONE);
	assert_int_equal(r.status, 404);
	assert_int_equal(r.reason.len, 7);
	assert_memory_equal(bytes + r.reason.off, "Not \xe9t\xe9", 7);
}

static void
over_the_limit(void **state)
{
	static char bytes[100000];
	struct response r;
	int n = snprintf(bytes, sizeof(bytes), R "X: %020000d\r\n\r\n", 0);

	(void)state;
	response_init(&r);
	assert_int_equal(parse_at(&r, bytes, (size_t)n, false), PARSE_BAD);
	n = snprintf(bytes, sizeof(bytes), R);
	for (int i = 0; i < 101; i++)
		n += snprintf(bytes + n, sizeof(bytes) - (size_t)n, "X: %d\r\n",
		    i);
	response_init(&r);
	assert_int_equal(parse_at(&r, bytes, (size_t)n, false), PARSE_BAD);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(heads),
		cmocka_unit_test(reasons),
		cmocka_unit_test(over_the_limit),
	};

	return cmocka_run_group_tests_name("parse_response", tests, NULL, NULL);
}
