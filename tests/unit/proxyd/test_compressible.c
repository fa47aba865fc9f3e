/*
 * test_compressible.c: which responses are compressed for whom, and why the
 * others are not; what the heads then say, to the byte.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "common/base/io.h"
#include "proxyd/http/compressible.h"
#include "proxyd/http/forward.h"

static const struct head_limits limits = { 8192, 64 << 10, 100 };

/* Of a request, and of a response, behind their first lines. */
static char request_head[4096], response_head[4096];
static struct request req;
static struct response res;

static void
parse(const char *method, const char *asked, int minor, int status,
    const char *answered)
{
	enum why why;
	int n;

	n = snprintf(request_head, sizeof(request_head),
	    "%s / HTTP/1.%d\r\nHost: a\r\n%s\r\n", method, minor, asked);
	request_init(&req);
	assert_int_equal(parse_request(&req, request_head, (size_t)n, &limits,
			     &why),
	    PARSE_DONE);
	n = snprintf(response_head, sizeof(response_head),
	    "HTTP/1.1 %d X\r\n%s\r\n", status, answered);
	response_init(&res);
	assert_int_equal(parse_response(&res, response_head, (size_t)n, &limits,
			     req.method == METHOD_HEAD),
	    PARSE_DONE);
}

static struct compressible
judge(uint32_t codings, uint64_t min, const char *types)
{
	struct compress_rules rules = { codings, min, types };
	struct compressible c;

	compressible_judge(&c, &rules, &req, request_head, &res, response_head);
	return c;
}

#define HTML   "Content-Type: text/html\r\n"
#define ACCEPT "Accept-Encoding: gzip\r\n"
#define LONG   "Content-Length: 5000\r\n"

static void
responses(void **state)
{
	static const struct {
		int status;
		const char *head;
		enum compress_why why;
	} cases[] = {
		{ 200, HTML LONG, COMPRESS_YES },
		{ 200, HTML, COMPRESS_YES },
		{ 200, HTML "Transfer-Encoding: chunked\r\n", COMPRESS_YES },
		{ 201, HTML LONG, COMPRESS_YES },
		{ 203, HTML LONG, COMPRESS_YES },
		{ 207, HTML LONG, COMPRESS_YES },
		{ 400, HTML LONG, COMPRESS_YES },
		{ 404, HTML LONG, COMPRESS_YES },
		{ 500, HTML LONG, COMPRESS_YES },
		{ 503, HTML LONG, COMPRESS_YES },
		{ 204, HTML, COMPRESS_STATUS },
		{ 205, HTML, COMPRESS_STATUS },
		{ 206, HTML LONG, COMPRESS_STATUS },
		{ 226, HTML LONG, COMPRESS_STATUS },
		{ 301, HTML LONG, COMPRESS_STATUS },
		{ 304, HTML LONG, COMPRESS_STATUS },
		{ 200, HTML "Content-Encoding: gzip\r\n", COMPRESS_ENCODED },
		{ 200, HTML "content-encoding: zstd\r\n", COMPRESS_ENCODED },
		{ 200, HTML "Content-Range: bytes 0-1/2\r\n", COMPRESS_RANGE },
		{ 200, HTML "Cache-Control: public, no-transform\r\n",
		    COMPRESS_TRANSFORM },
		{ 200,
		    HTML "Cache-Control: public\r\n"
			 "Cache-Control: No-Transform\r\n",
		    COMPRESS_TRANSFORM },
		{ 200, HTML "Cache-Control: public\r\n", COMPRESS_YES },
		{ 200, HTML "Content-MD5: x\r\n", COMPRESS_DIGEST },
		{ 200, HTML "Digest: x\r\n", COMPRESS_DIGEST },
		{ 200, HTML "Repr-Digest: x\r\n", COMPRESS_DIGEST },
		{ 200, HTML "Content-Digest: x\r\n", COMPRESS_DIGEST },
		{ 200, HTML "Content-Length: 1023\r\n", COMPRESS_SMALL },
		{ 200, HTML "Content-Length: 1024\r\n", COMPRESS_YES },
		{ 200, LONG, COMPRESS_TYPE },
	};

	(void)state;
	for (size_t i = 0; i < nitems(cases); i++) {
		struct compressible c;

		parse("GET", ACCEPT, 1, cases[i].status, cases[i].head);
		c = judge(3, 1024, "");
		assert_string_equal(compress_why_word(c.why),
		    compress_why_word(cases[i].why));
		assert_int_equal(c.varies, c.why == COMPRESS_YES);
		assert_int_equal(c.weak, c.why == COMPRESS_YES);
		assert_int_equal(c.coding,
		    c.why == COMPRESS_YES ? CODING_GZIP : CODING_NONE);
	}
}

static void
media_types(void **state)
{
	static const struct {
		const char *list, *type;
		bool yes;
	} cases[] = {
		{ "", "text/html", true },
		{ "", "text/html;charset=utf-8", true },
		{ "", "Text/HTML ; charset=utf-8", true },
		{ "", "text/x-component", true },
		{ "", "application/json", true },
		{ "", "application/jsonx", false },
		{ "", "application/jso", false },
		{ "", "image/svg+xml", true },
		{ "", "text/event-stream", false },
		{ "", "text/", false },
		{ "", "textual/html", false },
		{ "", "image/png", false },
		{ "", "application/octet-stream", false },
		{ "", "video/mp4", false },
		{ "", "*", false },
		{ "text/html", "text/html", true },
		{ "text/html", "text/plain", false },
		{ "a/b text/event-stream", "text/event-stream", true },
		{ "a/b text/*", "text/event-stream", false },
		{ "a/b application/*", "application/zip", true },
		{ "a/b application/*", "a/b", true },
		{ "a/b application/*", "a/bc", false },
	};

	(void)state;
	for (size_t i = 0; i < nitems(cases); i++) {
		char head[200];

		snprintf(head, sizeof(head), "Content-Type: %s\r\n",
		    cases[i].type);
		parse("GET", ACCEPT, 1, 200, head);
		assert_int_equal(judge(1, 1, cases[i].list).why,
		    cases[i].yes ? COMPRESS_YES : COMPRESS_TYPE);
	}
}

static void
clients(void **state)
{
	enum { GZIP = 1, BR = 2, BOTH = 3 };
	static const struct {
		const char *head;
		int minor;
		uint32_t codings;
		enum compress_why why;
		enum coding coding;
	} cases[] = {
		{ "", 1, BOTH, COMPRESS_ACCEPT, CODING_NONE },
		{ ACCEPT, 0, BOTH, COMPRESS_HTTP10, CODING_NONE },
		{ "Cache-Control: no-transform\r\n" ACCEPT, 1, BOTH,
		    COMPRESS_TRANSFORM, CODING_NONE },
		{ ACCEPT ACCEPT, 1, BOTH, COMPRESS_ACCEPT, CODING_NONE },
#define A(text, codings, yes, coding)                  \
	{ "Accept-Encoding: " text "\r\n", 1, codings, \
		(yes) ? COMPRESS_YES : COMPRESS_ACCEPT, coding }
		A("gzip", BOTH, true, CODING_GZIP),
		A("gzip", BR, false, CODING_NONE),
		A("br", BR, true, CODING_BR),
		A("br", GZIP, false, CODING_NONE),
		A("gzip, br", BOTH, true, CODING_BR),
		A("gzip, br", GZIP, true, CODING_GZIP),
		A("GZIP;q=1, br;q=0.9", BOTH, true, CODING_GZIP),
		A("gzip;q=0.5, br;q=0.4", BR, true, CODING_BR),
		A("gzip;q=0, br;q=0.0", BOTH, false, CODING_NONE),
		A("*", BOTH, true, CODING_BR),
		A("*;q=0", BOTH, false, CODING_NONE),
		A("*, br;q=0", BOTH, true, CODING_GZIP),
		A("gzip;q=0, *", BOTH, true, CODING_BR),
		A("x-gzip", GZIP, true, CODING_GZIP),
		A("deflate, zstd", BOTH, false, CODING_NONE),
		A("identity", BOTH, false, CODING_NONE),
		A("", BOTH, false, CODING_NONE),
		A("gzip;q=2", BOTH, false, CODING_NONE),
		A("gzip;q=0.001", BOTH, true, CODING_GZIP),
		A("gzip;q=", BOTH, false, CODING_NONE),
#undef A
	};

	(void)state;
	for (size_t i = 0; i < nitems(cases); i++) {
		struct compressible c;

		parse("GET", cases[i].head, cases[i].minor, 200, HTML LONG);
		c = judge(cases[i].codings, 1, "");
		assert_string_equal(compress_why_word(c.why),
		    compress_why_word(cases[i].why));
		assert_int_equal(c.coding, cases[i].coding);
		assert_true(c.varies); /* whoever asks */
	}
}

static void
heads(void **state)
{
	static const struct {
		const char *method, *asked;
		int status;
		const char *answered, *want;
	} cases[] = {
		/* Everything there is to change. */
		{ "GET", ACCEPT, 200,
		    HTML LONG "ETag: \"x\"\r\nAccept-Ranges: bytes\r\n"
			      "Vary: Cookie\r\nVary: accept-encoding, B\r\n"
			      "X: y\r\n",
		    "HTTP/1.1 200 X\r\n" HTML
		    "X: y\r\nContent-Encoding: gzip\r\nETag: W/\"x\"\r\n"
		    "Vary: Cookie, B, Accept-Encoding\r\n"
		    "Transfer-Encoding: chunked\r\nDate: now\r\n\r\n" },
		/* Nothing of it there. */
		{ "GET", ACCEPT, 200, HTML,
		    "HTTP/1.1 200 X\r\n" HTML
		    "Content-Encoding: gzip\r\nVary: Accept-Encoding\r\n"
		    "Transfer-Encoding: chunked\r\nDate: now\r\n\r\n" },
		{ "GET", ACCEPT, 200, HTML "ETag: W/\"x\"\r\nVary: *\r\n",
		    "HTTP/1.1 200 X\r\n" HTML
		    "Content-Encoding: gzip\r\nETag: W/\"x\"\r\nVary: *\r\n"
		    "Transfer-Encoding: chunked\r\nDate: now\r\n\r\n" },
		/* HEAD: as GET, but for its framing. */
		{ "HEAD", ACCEPT, 200, HTML LONG "ETag: \"x\"\r\n",
		    "HTTP/1.1 200 X\r\n" HTML
		    "Content-Encoding: gzip\r\nETag: W/\"x\"\r\n"
		    "Vary: Accept-Encoding\r\nDate: now\r\n\r\n" },
		/* Another client gets it as it is, and is told. */
		{ "GET", "", 200,
		    HTML LONG "ETag: \"x\"\r\nAccept-Ranges: bytes\r\n",
		    "HTTP/1.1 200 X\r\n" HTML
		    "Accept-Ranges: bytes\r\nETag: \"x\"\r\n"
		    "Vary: Accept-Encoding\r\nContent-Length: 5000\r\n"
		    "Date: now\r\n\r\n" },
		/* What nobody gets compressed is left alone. */
		{ "GET", ACCEPT, 200, "Content-Type: image/png\r\n" LONG,
		    "HTTP/1.1 200 X\r\nContent-Type: image/png\r\n" LONG
		    "Date: now\r\n\r\n" },
		/* The tag that we weakened comes back, and goes out so. */
		{ "GET", "If-None-Match: \"y\", W/\"x\"\r\n", 304,
		    "ETag: \"x\"\r\n",
		    "HTTP/1.1 304 X\r\nETag: W/\"x\"\r\n"
		    "Vary: Accept-Encoding\r\nDate: now\r\n\r\n" },
		{ "GET", "If-None-Match: \"x\"\r\n", 304, "ETag: \"x\"\r\n",
		    "HTTP/1.1 304 X\r\nETag: \"x\"\r\nDate: now\r\n\r\n" },
		{ "GET", "If-None-Match: W/\"y\", \"x\"\r\n", 304,
		    "ETag: \"x\"\r\n",
		    "HTTP/1.1 304 X\r\nETag: \"x\"\r\nDate: now\r\n\r\n" },
		{ "GET", "If-None-Match: W/\"x\"\r\n", 304, "ETag: W/\"x\"\r\n",
		    "HTTP/1.1 304 X\r\nETag: W/\"x\"\r\nDate: now\r\n\r\n" },
	};

	(void)state;
	for (size_t i = 0; i < nitems(cases); i++) {
		static char out[FORWARD_MAX];
		struct forward_response fr = {
			.res = &res,
			.base = response_head,
			.date = "now",
			.extra = "",
		};
		struct compressible c;

		parse(cases[i].method, cases[i].asked, 1, cases[i].status,
		    cases[i].answered);
		c = judge(3, 1024, "");
		fr.varies = c.varies;
		fr.weak = c.weak;
		if (c.why == COMPRESS_YES)
			fr.coding = coding_names[c.coding];
		fr.chunked = fr.coding != NULL && req.method != METHOD_HEAD;
		out[forward_response(out, sizeof(out), &fr)] = '\0';
		assert_string_equal(out, cases[i].want);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(responses),
		cmocka_unit_test(media_types),
		cmocka_unit_test(clients),
		cmocka_unit_test(heads),
	};

	return cmocka_run_group_tests_name("compressible", tests, NULL, NULL);
}
