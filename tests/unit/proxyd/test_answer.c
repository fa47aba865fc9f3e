/* test_answer.c: heads and parts of answers with a file. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "common/base/io.h"
#include "proxyd/static/answer.h"

#define TYPE  "Content-Type: text/css\r\n"
#define BODY  "Content-Encoding: br\r\n"
#define OTHER "ETag: \"x\"\r\nVary: Accept-Encoding\r\n"
#define DATE  "Date: today\r\n"

static const struct file file = {
	.content = "0123456789",
	.size = 10,
	.validators = { 784111777, "\"x\"" },
	.fields = TYPE BODY OTHER,
	.type_size = sizeof(TYPE) - 1,
	.body_size = sizeof(TYPE BODY) - 1,
	.fields_size = sizeof(TYPE BODY OTHER) - 1,
};

/* Puts together what a client sees. */
static void
answered(const char *fields, bool head, enum answer_connection c, char *out,
    size_t size)
{
	static struct answer a;
	struct fields fs;
	struct asked asked;
	struct field f;
	struct answer_ask ask = {
		.asked = &asked,
		.head = head,
		.connection = c,
		.date = "today",
		.now_s = 1000000000,
		.random = 0xabc,
		.extra = "",
	};
	uint32_t end = (uint32_t)strlen(fields);
	int n;

	fields_clear(&fs);
	if (end > 0) {
		assert_true(
		    field_parse(&f, fields, 0, end, FIELD_SPACE_REFUSED));
		assert_true(fields_add(&fs, &f, 10));
	}
	assert_true(asked_find(&asked, &fs, fields));
	answer_file(&a, &file, &ask);
	do {
		n = snprintf(out, size, "%.*s%.*s", (int)a.text_size, a.text,
		    (int)a.part.size, file.content + a.part.first);
		assert_true(n >= 0 && (size_t)n < size);
		out += n;
		size -= (size_t)n;
	} while (answer_next(&a));
}

static void
heads(void **state)
{
	static const struct {
		const char *field;
		bool head;
		enum answer_connection connection;
		const char *answer;
	} cases[] = {
		{ "", false, ANSWER_PERSIST,
		    "HTTP/1.1 200 OK\r\n" DATE TYPE BODY OTHER
		    "Content-Length: 10\r\n\r\n0123456789" },
		{ "", true, ANSWER_CLOSE,
		    "HTTP/1.1 200 OK\r\n" DATE TYPE BODY OTHER
		    "Content-Length: 10\r\nConnection: close\r\n\r\n" },
		{ "Range: bytes=2-4", false, ANSWER_PERSIST_10,
		    "HTTP/1.1 206 Partial Content\r\n" DATE TYPE BODY OTHER
		    "Content-Range: bytes 2-4/10\r\nContent-Length: 3\r\n"
		    "Connection: keep-alive\r\n\r\n234" },
		{ "Range: bytes=10-", false, ANSWER_PERSIST,
		    "HTTP/1.1 416 Range Not Satisfiable\r\n" DATE
		    "Content-Range: bytes */10\r\nContent-Length: 0\r\n\r\n" },
		{ "If-Match: \"y\"", false, ANSWER_PERSIST,
		    "HTTP/1.1 412 Precondition Failed\r\n" DATE
		    "Content-Length: 0\r\n\r\n" },
		{ "If-None-Match: \"x\"", false, ANSWER_PERSIST,
		    "HTTP/1.1 304 Not Modified\r\n" DATE OTHER "\r\n" },
		/* Ranges are for GET alone. */
		{ "Range: bytes=2-4", true, ANSWER_PERSIST,
		    "HTTP/1.1 200 OK\r\n" DATE TYPE BODY OTHER
		    "Content-Length: 10\r\n\r\n" },
	};
	char out[2048];

	(void)state;
	for (size_t i = 0; i < nitems(cases); i++) {
		answered(cases[i].field, cases[i].head, cases[i].connection,
		    out, sizeof(out));
		assert_string_equal(out, cases[i].answer);
	}
}

/* The length that the head says is that of the parts. */
static void
parts(void **state)
{
	char out[2048];
	const char *body;
	size_t length;

	(void)state;
	answered("Range: bytes=7-8,0-1,-1", false, ANSWER_PERSIST, out,
	    sizeof(out));
	body = strstr(out, "\r\n\r\n");
	assert_non_null(body);
	body += 4;
	assert_string_equal(body,
	    "\r\n--0000000000000abc\r\n" TYPE
	    "Content-Range: bytes 7-8/10\r\n\r\n78"
	    "\r\n--0000000000000abc\r\n" TYPE
	    "Content-Range: bytes 0-1/10\r\n\r\n01"
	    "\r\n--0000000000000abc\r\n" TYPE
	    "Content-Range: bytes 9-9/10\r\n\r\n9"
	    "\r\n--0000000000000abc--\r\n");
	assert_non_null(strstr(out,
	    "Content-Type: multipart/byteranges; "
	    "boundary=0000000000000abc\r\n" BODY OTHER));
	assert_int_equal(sscanf(strstr(out, "Content-Length: "),
			     "Content-Length: %zu", &length),
	    1);
	assert_int_equal(length, strlen(body));
}

static void
redirects(void **state)
{
	static struct answer a;
	const struct answer_ask ask = { .date = "today", .extra = "" };
	static const char target[] = "/a/b?c=d HTTP/1.1";

	(void)state;
	answer_redirect(&a, target, strlen("/a/b?c=d"), &ask);
	assert_int_equal(a.status, 301);
	assert_memory_equal(a.text,
	    "HTTP/1.1 301 Moved Permanently\r\n" DATE
	    "Location: /a/b/?c=d\r\nContent-Length: 0\r\n\r\n",
	    a.text_size);
	assert_false(answer_next(&a));
}

static void
a_field_twice_is_not_understood(void **state)
{
	static const char text[] = "Range: bytes=0-1\nrange: bytes=2-3";
	struct fields fs;
	struct asked asked;
	struct field f;

	(void)state;
	fields_clear(&fs);
	assert_true(field_parse(&f, text, 0, 16, FIELD_SPACE_REFUSED));
	assert_true(fields_add(&fs, &f, 10));
	assert_true(asked_find(&asked, &fs, text));
	assert_int_equal(asked.fields[ASKED_RANGE].len, 9);
	assert_true(
	    field_parse(&f, text, 17, sizeof(text) - 1, FIELD_SPACE_REFUSED));
	assert_true(fields_add(&fs, &f, 10));
	assert_false(asked_find(&asked, &fs, text));
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(heads),
		cmocka_unit_test(parts),
		cmocka_unit_test(redirects),
		cmocka_unit_test(a_field_twice_is_not_understood),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
