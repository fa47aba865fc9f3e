/*
 * test_parse_request.c: request heads, by the rows of
 * tests/fixtures/http_cases.md (A to D), whole and byte by byte.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/io.h"
#include "proxyd/http/parse_request.h"

#define E    "\r\n\r\n"
#define H    "\r\nHost: a"
#define G    "GET / HTTP/1.1\r\nHost: a\r\n"
#define P    "POST / HTTP/1.1\r\nHost: a\r\n"
#define L(s) s, sizeof(s) - 1

static const struct head_limits limits = { 8192, 64 << 10, 100 };

/* The bytes are copied to the end of a fresh allocation, so that the
 * sanitizer sees any read beyond them. */
static int
parse_at(struct request *r, const char *bytes, size_t len)
{
	char *copy = malloc(len + 1);
	enum why why = WHY_NONE;
	enum parse_result result;

	memcpy(copy + 1, bytes, len);
	result = parse_request(r, copy + 1, len, &limits, &why);
	free(copy);
	if (result == PARSE_BAD)
		assert_int_not_equal(why, WHY_NONE);
	return result == PARSE_DONE ? 200 :
	    result == PARSE_MORE    ? 100 :
				      why_status(why);
}

/* 200: a request; 100: not complete; else the refusal.  A refusal may come
 * earlier when the bytes drip in, never later, and never another one than
 * 400 before it. */
static int
parse(struct request *r, const char *bytes, size_t len)
{
	struct request slow;
	int whole, got = 100;

	request_init(r);
	whole = parse_at(r, bytes, len);
	request_init(&slow);
	for (size_t n = 1; n <= len && got == 100; n += len > 2000 ? 61 : 1)
		got = parse_at(&slow, bytes, n);
	if (got == 100)
		got = parse_at(&slow, bytes, len);
	assert_int_equal(got, whole);
	if (whole == 200)
		assert_int_equal(slow.head_len, r->head_len);
	return whole;
}

static void
heads(void **state)
{
	static const struct {
		const char *row, *bytes;
		size_t len;
		int status;
	} cases[] = {
		{ "A1", L(G "\r\n"), 200 },
		{ "A2", L("\r\n" G "\r\n"), 200 },
		{ "A2", L("\r\n\r\n\r\n\r\n" G "\r\n"), 200 },
		{ "A2", L("\r\n\r\n\r\n\r\n\r\n" G "\r\n"), 400 },
		{ "A2", L("\n" G "\r\n"), 400 },
		{ "A3", L("GET  / HTTP/1.1" H E), 400 },
		{ "A3", L("GET /  HTTP/1.1" H E), 400 },
		{ "A3", L("GET\t/ HTTP/1.1" H E), 400 },
		{ "A3", L("GET / HTTP/1.1 " H E), 400 },
		{ "A3", L("GET\x0b/ HTTP/1.1" H E), 400 },
		{ "A5", L("GET / http/1.1" H E), 400 },
		{ "A5", L("GET / HTTP/1.10" H E), 400 },
		{ "A5", L("GET / HTTP/01.1" H E), 400 },
		{ "A5", L("GET / HTTP/1" H E), 400 },
		{ "A5", L("GET / HTTP/1.x" H E), 400 },
		{ "A5", L("GET / HTTP/\r\r1.1" H E), 400 },
		{ "A6", L("GET / HTTP/1.2" H E), 200 },
		{ "A7", L("GET / HTTP/2.0" H E), 505 },
		{ "A7", L("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), 505 },
		{ "A7", L("GET / HTTP/0.9" H E), 505 },
		{ "A8", L("GET /\r\n"), 400 },
		{ "A8", L("GET /\nHTTP/1.1\r\n\r\n"), 400 },
		{ "A8", L("GET\r\n"), 400 },
		{ "A9", L("G=\":<>(e),[T];?\" /get HTTP/1.1" H E), 400 },
		{ "A9", L(" / HTTP/1.1" H E), 400 },
		{ "A10", L("get / HTTP/1.1" H E), 200 },
		{ "A11",
		    L("AAAAAAAAAABBBBBBBBBBCCCCCCCCCCDDDDDDDDDD"
		      " / HTTP/1.1" H E),
		    501 },
		{ "A14", L("OPTIONS * HTTP/1.1" H E), 200 },
		{ "A14", L("GET * HTTP/1.1" H E), 400 },
		{ "A14", L("OPTIONS http://a HTTP/1.1" H E), 200 },
		{ "A15", L("GET http://b/x HTTP/1.1" H E), 200 },
		{ "A15", L("GET HTTP://b/x HTTP/1.1" H E), 200 },
		{ "A15", L("GET http://b/x HTTP/1.1" E), 400 },
		{ "A16", L("GET http://u:p@a/ HTTP/1.1" H E), 400 },
		{ "A16", L("GET ftp://a/ HTTP/1.1" H E), 400 },
		{ "A16", L("GET http:///x HTTP/1.1" H E), 400 },
		{ "A16", L("GET http://a:99999/x HTTP/1.1" H E), 400 },
		{ "A16", L("GET a/b HTTP/1.1" H E), 400 },
		{ "A16", L("GET https://a/ HTTP/1.1" H E), 421 },
		{ "A17", L("GET /a#x HTTP/1.1" H E), 400 },
		{ "A17", L("GET /\xc3\xa9 HTTP/1.1" H E), 400 },
		{ "A19", L("CONNECT a:443 HTTP/1.1" H E), 405 },
		{ "A20", L("TRACE / HTTP/1.1" H E), 405 },
		{ "A21", L("GET //evil.example/x HTTP/1.1" H E), 200 },
		{ "A22", L("GET /%2e%2e/%2e%2e/etc/passwd HTTP/1.1" H E), 400 },
		{ "A22", L("GET /a/../../b HTTP/1.1" H E), 400 },
		{ "A22", L("GET /..%2fb HTTP/1.1" H E), 400 },
		{ "A22", L("GET /.. HTTP/1.1" H E), 400 },
		{ "A22", L("GET http://a/../x HTTP/1.1" H E), 400 },
		{ "A22", L("GET /a/../b HTTP/1.1" H E), 200 },
		{ "A22", L("GET /a/./b/../../c HTTP/1.1" H E), 200 },
		{ "A22", L("GET /a?/../../.. HTTP/1.1" H E), 200 },
		{ "A24", L("GET /..;/manager/html HTTP/1.1" H E), 200 },
		{ "A24", L("GET /... HTTP/1.1" H E), 200 },

		{ "B1", L("GET / HTTP/1.1" E), 400 },
		{ "B2", L(G "Host: a\r\n\r\n"), 400 },
		{ "B2", L(G "Host: b\r\n\r\n"), 400 },
		{ "B4", L("GET / HTTP/1.1\r\nHost:" E), 400 },
		{ "B4", L("GET / HTTP/1.1\r\nHost: :80" E), 400 },
		{ "B4", L("GET / HTTP/1.1\r\nHost: a b" E), 400 },
		{ "B4", L("GET / HTTP/1.1\r\nHost: a/b" E), 400 },
		{ "B4", L("GET / HTTP/1.1\r\nHost: u@a" E), 400 },
		{ "B4", L("GET / HTTP/1.1\r\nHost: a, b" E), 400 },
		{ "B4", L("GET / HTTP/1.1\r\nHost: a:80a" E), 400 },
		{ "B4", L("GET / HTTP/1.1\r\nHost: [::1]:80" E), 200 },
		{ "B4", L("GET / HTTP/1.1\r\nHost: [::1" E), 400 },
		{ "B5", L("GET / HTTP/1.0" E), 200 },
		{ "B7", L("GET / HTTP/1.1\r\n Host: a" E), 400 },
		{ "B7", L("GET / HTTP/1.1\r\nHost : a" E), 400 },
		{ "B7", L(G "X: y\r\n Host: b\r\n\r\n"), 400 },

		{ "C1", L(P "Content-Length : 5\r\n\r\nhello"), 400 },
		{ "C2", L("GET / HTTP/1.1\r\n\tX: 1\r\nHost: a" E), 400 },
		{ "C3", L(G "X: 1\r\n 2\r\n\r\n"), 400 },
		{ "C3", L(P "Transfer-Encoding:\r\n chunked\r\n\r\n"), 400 },
		{ "C4", L(G ": v\r\n\r\n"), 400 },
		{ "C4", L(G ":\r\nI: cut\r\n\r\n"), 400 },
		{ "C4", L(G "novalue\r\n\r\n"), 400 },
		{ "C6", L(G "Na me: v\r\n\r\n"), 400 },
		{ "C6", L(G "Na\x00me: v\r\n\r\n"), 400 },
		{ "C6", L(G "Na\x80me: v\r\n\r\n"), 400 },
		{ "C6", L(G "Na(me: v\r\n\r\n"), 400 },
		{ "C7",
		    L(G "X: a\x00"
			"b\r\n\r\n"),
		    400 },
		{ "C7", L(G "X: a\rb\r\n\r\n"), 400 },
		{ "C7", L(G "X: 0123456789abcdef\x7f\r\n\r\n"), 400 },
		{ "C9", L("GET / HTTP/1.1\nHost: a\n\n"), 400 },
		{ "C9", L(P "x:x\nTransfer-Encoding: chunked\r\n\r\n"), 400 },
		{ "C9", L(G "\n"), 400 },
		{ "C11",
		    L(G "X: \xff"
			"a\x85\r\n\r\n"),
		    200 },
		{ "C12", L(G "X:a\r\n\r\n"), 200 },
		{ "C12", L(G "X: \t a \t\r\n\r\n"), 200 },
		{ "C13", L(P "Content_Length: 5\r\n\r\n"), 200 },
		{ "C17", L(G "Cookie: a=1\r\nCookie: b=2\r\n\r\n"), 200 },
		{ "C16", L("GET / HT"), 100 },
		{ "TLS", L("\x16\x03\x01\x02\x00\x01\x00"), 400 },

		{ "D1",
		    L(P "Content-Length: 5\r\n"
			"Transfer-Encoding: chunked\r\n\r\n"),
		    400 },
		{ "D1",
		    L(P "Transfer-Encoding: chunked\r\n"
			"Content-Length: 5\r\n\r\n"),
		    400 },
		{ "D2",
		    L("POST / HTTP/1.0\r\nHost: a\r\n"
		      "Transfer-Encoding: chunked\r\n\r\n"),
		    400 },
		{ "D4", L(P "Transfer-Encoding: gzip, chunked\r\n\r\n"), 501 },
		{ "D4",
		    L(P "Transfer-Encoding: deflate\r\n"
			"Transfer-Encoding: chunked\r\n\r\n"),
		    501 },
		{ "D5", L(P "Transfer-Encoding: chunked, identity\r\n\r\n"),
		    400 },
		{ "D5", L(P "Transfer-Encoding: chunked, chunked\r\n\r\n"),
		    400 },
		{ "D5", L(P "Transfer-Encoding: identity\r\n\r\n"), 400 },
		{ "D5", L(P "Transfer-Encoding: xchunked\r\n\r\n"), 400 },
		{ "D5", L(P "Transfer-Encoding: chunkedchunked\r\n\r\n"), 400 },
		{ "D5", L(P "Transfer-Encoding: gzip\r\n\r\n"), 400 },
		{ "D5", L(P "Transfer-Encoding: cow\r\n\r\n"), 400 },
		{ "D5", L(P "Transfer-Encoding:\r\n\r\n"), 400 },
		{ "D5", L(P "Transfer-Encoding: chunked;x\r\n\r\n"), 400 },
		{ "D5", L(P "Transfer-Encoding: , chunked\r\n\r\n"), 400 },
		{ "D7",
		    L(P "Transfer-Encoding: \x0b"
			"chunked\r\n\r\n"),
		    400 },
		{ "D7",
		    L(P "Transfer-Encoding: \x0c"
			"chunked\r\n\r\n"),
		    400 },
		{ "D7",
		    L(P "Transfer-Encoding: \xa0"
			"chunked\r\n\r\n"),
		    400 },
		{ "D7", L(P "Transfer-Encoding: chunked\x00\r\n\r\n"), 400 },
		{ "D8", L(P "tRANSFER-eNCODING: Chunked\r\n\r\n"), 200 },
		{ "D9", L(P "Content-Length: 5\r\nContent-Length: 6\r\n\r\n"),
		    400 },
		{ "D9", L(P "Content-Length: 5\r\nContent-Length: 5\r\n\r\n"),
		    400 },
		{ "D9", L(P "Content-Length: 5, 6\r\n\r\n"), 400 },
		{ "D9", L(P "Content-Length: +5\r\n\r\n"), 400 },
		{ "D9", L(P "Content-Length: 0x5\r\n\r\n"), 400 },
		{ "D9", L(P "Content-Length: -5\r\n\r\n"), 400 },
		{ "D11", L(P "Content-Length:\r\n\r\n"), 400 },
		{ "D11", L(P "Content-Length:\r\nContent-Length: 5\r\n\r\n"),
		    400 },
		{ "D14", L(P "Content-Length: 18446744073709551621\r\n\r\n"),
		    400 },
		{ "D14", L(P "Content-Length: 9223372036854775808\r\n\r\n"),
		    400 },
		{ "D14",
		    L(P "Content-Length: 00000000000000000000"
			"00000000000000000005\r\n\r\n"),
		    400 },
		{ "D15", L(P "\r\n"), 200 },
		{ "D16", L(G "Content-Length: 5\r\n\r\nhello"), 200 },

		{ "G3",
		    L("POST / HTTP/1.0\r\nHost: a\r\nContent-Length: 5"
		      "\r\nExpect: 100-continue\r\n\r\n"),
		    200 },
		{ "G4", L(P "Content-Length: 5\r\nExpect: x\r\n\r\n"), 417 },
		{ "G4",
		    L(P "Content-Length: 5\r\n"
			"Expect: y 100-continue\r\n\r\n"),
		    417 },
		{ "G4",
		    L(P "Content-Length: 5\r\n"
			"Expect: 100-continue, z\r\n\r\n"),
		    417 },
		{ "G4", L(G "Expect: 100-continue\r\n\r\n"), 417 },
		{ "G4",
		    L("OPTIONS / HTTP/1.1\r\nHost: a\r\nContent-Length: 5"
		      "\r\nExpect: 100-continue\r\n\r\n"),
		    417 },
		{ "G11",
		    L(G "Connection: Upgrade\r\nUpgrade: websocket\r\n"
			"\r\n"),
		    400 },
	};
	struct request r;

	(void)state;
	for (size_t i = 0; i < nitems(cases); i++) {
		int got = parse(&r, cases[i].bytes, cases[i].len);

		if (got != cases[i].status)
			print_message("%s: %s\n", cases[i].row, cases[i].bytes);
		assert_int_equal(got, cases[i].status);
	}
}

static void
assert_span(const char *buf, struct span s, const char *want)
{
	assert_int_equal(s.len, strlen(want));
	assert_memory_equal(buf + s.off, want, s.len);
}

static void
targets(void **state)
{
	static const struct {
		const char *line, *path, *authority, *host;
		bool slash, star;
	} cases[] = {
		{ "GET /x?y HTTP/1.1", "/x?y", "A.b.", "a.b", 0, 0 },
		{ "GET http://B:80/x HTTP/1.1", "/x", "B:80", "b", 0, 0 },
		{ "GET http://b?q HTTP/1.1", "?q", "b", "b", 1, 0 },
		{ "GET http://b HTTP/1.1", "", "b", "b", 1, 0 },
		{ "OPTIONS http://b HTTP/1.1", "", "b", "b", 0, 1 },
		{ "OPTIONS http://b/ HTTP/1.1", "/", "b", "b", 0, 0 },
		{ "OPTIONS * HTTP/1.1", "", "A.b.", "a.b", 0, 1 },
	};
	struct request r;
	char buf[200];

	(void)state;
	for (size_t i = 0; i < nitems(cases); i++) {
		snprintf(buf, sizeof(buf), "%s\r\nHost: A.b.\r\n\r\n",
		    cases[i].line);
		assert_int_equal(parse(&r, buf, strlen(buf)), 200);
		assert_span(buf, r.target.path, cases[i].path);
		assert_span(buf, r.authority, cases[i].authority);
		assert_string_equal(r.host, cases[i].host);
		assert_int_equal(r.target.slash, cases[i].slash);
		assert_int_equal(r.target.star, cases[i].star);
	}
}

static void
sizes(void **state)
{
	static char buf[200 << 10];
	struct request r;
	int n;

	(void)state;
	for (int extra = 0; extra < 2; extra++) { /* A12 */
		n = snprintf(buf, sizeof(buf),
		    "GET /%0*d HTTP/1.1\r\nHost: a\r\n\r\n", 8191 + extra, 0);
		assert_int_equal(parse(&r, buf, (size_t)n), extra ? 414 : 200);
	}
	n = snprintf(buf, sizeof(buf), "GET /%0*d", 20000, 0);
	assert_int_equal(parse(&r, buf, (size_t)n), 414);

	for (int extra = 0; extra < 2; extra++) { /* C14: 100 and 101 */
		n = snprintf(buf, sizeof(buf), G);
		for (int i = 0; i < 99 + extra; i++)
			n += snprintf(buf + n, sizeof(buf) - (size_t)n,
			    "X%d: y\r\n", i);
		n += snprintf(buf + n, sizeof(buf) - (size_t)n, "\r\n");
		assert_int_equal(parse(&r, buf, (size_t)n), extra ? 431 : 200);
	}
	for (int extra = 0; extra < 2; extra++) { /* a list without end */
		n = snprintf(buf, sizeof(buf), G "Connection: ");
		for (int i = 0; i < CONNECTION_MAX + extra; i++)
			n += snprintf(buf + n, sizeof(buf) - (size_t)n, "x,");
		n += snprintf(buf + n, sizeof(buf) - (size_t)n, "\r\n\r\n");
		assert_int_equal(parse(&r, buf, (size_t)n), extra ? 400 : 200);
	}
	n = snprintf(buf, sizeof(buf), G "X: %0*d\r\n\r\n", 16 << 10, 0);
	assert_int_equal(parse(&r, buf, (size_t)n), 431);
	n = snprintf(buf, sizeof(buf), G "X: %0*d\r\n\r\n", 16000, 0);
	assert_int_equal(parse(&r, buf, (size_t)n), 200);
	n = snprintf(buf, sizeof(buf), G);
	for (int i = 0; i < 7; i++)
		n += snprintf(buf + n, sizeof(buf) - (size_t)n, "X: %0*d\r\n",
		    9500, 0);
	assert_int_equal(parse(&r, buf, (size_t)n), 431);
}

static void
connections(void **state)
{
	static const struct {
		const char *head;
		bool keep_alive;
	} cases[] = {
		{ G "\r\n", true },
		{ G "Connection: close\r\n\r\n", false },
		{ G "Connection: keep-alive, CLOSE\r\n\r\n", false },
		{ G "Connection: x\r\nConnection: close\r\n\r\n", false },
		{ G "Connection: x\r\n\r\n", true },
		{ "GET / HTTP/1.0\r\n\r\n", false },
		{ "GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", true },
	};
	struct request r;

	(void)state;
	for (size_t i = 0; i < nitems(cases); i++) {
		assert_int_equal(parse(&r, cases[i].head,
				     strlen(cases[i].head)),
		    200);
		assert_int_equal(r.keep_alive, cases[i].keep_alive);
	}
}

static void
bodies(void **state)
{
	static const struct {
		const char *head;
		enum framing kind;
		uint64_t length;
	} cases[] = {
		{ G "\r\n", FRAMING_NONE, 0 },
		{ P "\r\n", FRAMING_NONE, 0 },
		{ P "Content-Length: 0\r\n\r\n", FRAMING_LENGTH, 0 },
		{ G "Content-Length: 05\r\n\r\n", FRAMING_LENGTH, 5 },
		{ P "Content-Length: 9223372036854775807\r\n\r\n",
		    FRAMING_LENGTH, INT64_MAX },
		{ P "tRANSFER-eNCODING: Chunked\r\n\r\n", FRAMING_CHUNKED, 0 },
	};
	struct request r;

	(void)state;
	for (size_t i = 0; i < nitems(cases); i++) {
		assert_int_equal(parse(&r, cases[i].head,
				     strlen(cases[i].head)),
		    200);
		assert_int_equal(r.body.kind, cases[i].kind);
		assert_int_equal(r.body.length, cases[i].length);
	}
}

#define WS "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
#define UP "Connection: keep-alive, Upgrade\r\n"

static void
upgrades(void **state)
{
	static const struct {
		const char *head;
		enum upgrade upgrade;
	} cases[] = {
		{ G UP "Upgrade: WebSocket\r\n" WS, UPGRADE_WEBSOCKET },
		{ G UP "Upgrade: foo\r\n\r\n", UPGRADE_OTHER },
		{ G "Upgrade: websocket\r\n" WS, UPGRADE_NONE },
		{ G UP "Upgrade: h2c\r\n\r\n", UPGRADE_NONE },
		{ G UP "Upgrade: foo, h2c\r\n\r\n", UPGRADE_NONE },
		{ G UP "Upgrade: foo\r\nUpgrade: h2c\r\n\r\n", UPGRADE_NONE },
		{ G UP "HTTP2-Settings: AAMA\r\nUpgrade: foo\r\n\r\n",
		    UPGRADE_NONE },
		{ P UP "Upgrade: websocket\r\n" WS, UPGRADE_NONE },
		{ "GET / HTTP/1.0\r\nHost: a\r\n" UP
		  "Upgrade: websocket\r\n" WS,
		    UPGRADE_NONE },
	};
	struct request r;

	(void)state;
	for (size_t i = 0; i < nitems(cases); i++) {
		assert_int_equal(parse(&r, cases[i].head,
				     strlen(cases[i].head)),
		    200);
		assert_int_equal(r.upgrade, cases[i].upgrade);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(heads),
		cmocka_unit_test(targets),
		cmocka_unit_test(sizes),
		cmocka_unit_test(connections),
		cmocka_unit_test(bodies),
		cmocka_unit_test(upgrades),
	};

	return cmocka_run_group_tests_name("parse_request", tests, NULL, NULL);
}
