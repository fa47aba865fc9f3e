/* test_chunked.c: rows E of http_cases.md, cut at every byte. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/io.h"
#include "proxyd/http/chunked.h"

#define L(s) s, sizeof(s) - 1
#define E    "\r\n\r\n"

struct outcome {
	enum chunk_result result;
	size_t taken, len;
	char body[70000];
};

/* Feeds pieces that end at `cut` and at the end. */
static void
decode(const char *bytes, size_t len, size_t cut, struct outcome *o)
{
	struct chunked c;
	size_t from = 0;

	chunked_init(&c);
	o->len = o->taken = 0;
	o->result = CHUNK_MORE;
	while (from < len && o->result == CHUNK_MORE) {
		size_t to = from < cut ? cut : len, taken;
		struct chunk_piece piece;
		char *copy = malloc(to - from);

		memcpy(copy, bytes + from, to - from);
		o->result = chunked_decode(&c, copy, to - from, &piece, &taken);
		assert_true(piece.start + piece.len <= to - from);
		memcpy(o->body + o->len, copy + piece.start, piece.len);
		o->len += piece.len;
		o->taken += taken;
		if (o->result == CHUNK_MORE)
			assert_int_equal(taken, to - from);
		if (o->result == CHUNK_DONE)
			assert_memory_equal(copy + taken, bytes + from + taken,
			    to - from - taken);
		free(copy);
		from = to;
	}
}

static void
bodies(void **state)
{
	static const struct {
		const char *row, *bytes;
		size_t len;
		enum chunk_result result;
		const char *body;
	} cases[] = {
		{ "E1", L("5\r\nhello\r\n0" E), CHUNK_DONE, "hello" },
		{ "E1", L("A\r\n0123456789\r\n000" E), CHUNK_DONE,
		    "0123456789" },
		{ "E1", L("3\r\nabc\r\n2\r\nde\r\n1\r\nf\r\n0" E), CHUNK_DONE,
		    "abcdef" },
		{ "E2", L("5\nhello\r\n0" E), CHUNK_BAD, NULL },
		{ "E2", L("5\r\nhello\n0" E), CHUNK_BAD, NULL },
		{ "E2", L("5\r\nhello0" E), CHUNK_BAD, NULL },
		{ "E2", L("0\n\r\n"), CHUNK_BAD, NULL },
		{ "E2", L("0\r\n\n"), CHUNK_BAD_TRAILER, NULL },
		{ "E2", L("5\r\r\nhello"), CHUNK_BAD, NULL },
		{ "E2", L(" 5\r\nhello"), CHUNK_BAD, NULL },
		{ "E2", L("5 \r\nhello"), CHUNK_BAD, NULL },
		{ "E2", L("5 junk\r\nhello"), CHUNK_BAD, NULL },
		{ "E2", L("\r\n5\r\nhello"), CHUNK_BAD, NULL },
		{ "E2", L("0x5\r\nhello"), CHUNK_BAD, NULL },
		{ "E2", L("+5\r\nhello"), CHUNK_BAD, NULL },
		{ "E2", L("-5\r\nhello"), CHUNK_BAD, NULL },
		{ "E2", L("g\r\n"), CHUNK_BAD, NULL },
		{ "E4", L("5;\nx\r\nhello\r\n0" E), CHUNK_BAD, NULL },
		{ "E4", L("5;a\nx\r\nhello\r\n0" E), CHUNK_BAD, NULL },
		{ "E4", L("5;a=\"\n\"\r\nhello\r\n0" E), CHUNK_BAD, NULL },
		{ "E6", L("5;a=\"x\r\n0\r\n\r\n\"\r\nhello\r\n0" E), CHUNK_BAD,
		    NULL },
		{ "E7", L("5;foo=bar;q=\"z\"\r\nhello\r\n0" E), CHUNK_DONE,
		    "hello" },
		{ "E7", L("5 ; foo = bar ;q=\"\\\"\t;z\";x\r\nhello\r\n0;y" E),
		    CHUNK_DONE, "hello" },
		{ "E7", L("5;\r\nhello"), CHUNK_BAD, NULL },
		{ "E7", L("5;a=\r\nhello"), CHUNK_BAD, NULL },
		{ "E7", L("5;a\x00\r\nhello"), CHUNK_BAD, NULL },
		{ "E11", L("10000000000000005\r\nhello"), CHUNK_BAD, NULL },
		{ "E11", L("ffffffffffffffff\r\nhello"), CHUNK_BAD, NULL },
		{ "E11", L("8000000000000000\r\nhello"), CHUNK_BAD, NULL },
		{ "E11", L("00000000000000005\r\nhello"), CHUNK_BAD, NULL },
		{ "E11", L("0000000000000005\r\nhello\r\n0" E), CHUNK_DONE,
		    "hello" },
		{ "E11", L("7fffffffffffffff\r\nhello"), CHUNK_MORE, "hello" },
		{ "E12", L("0\r\nX-Sum: 1" E), CHUNK_DONE, "" },
		{ "E12", L("0\r\nX-Sum: 1\r\nY: \x80 2" E), CHUNK_DONE, "" },
		{ "E12", L("0\r\n X-Sum: 1" E), CHUNK_BAD_TRAILER, NULL },
		{ "E12", L("0\r\nX-Sum : 1" E), CHUNK_BAD_TRAILER, NULL },
		{ "E12", L("0\r\nX-Sum" E), CHUNK_BAD_TRAILER, NULL },
		{ "E12", L("0\r\n: 1" E), CHUNK_BAD_TRAILER, NULL },
		{ "E12", L("0\r\nX: a\x00" E), CHUNK_BAD_TRAILER, NULL },
		{ "E12", L("0\r\nX: a\r\n b" E), CHUNK_BAD_TRAILER, NULL },
		{ "E12", L("0\r\nX: a\nY: b" E), CHUNK_BAD_TRAILER, NULL },
		{ "E14", L("0\r\nX:POST / HTTP/1.1" E), CHUNK_DONE, "" },
		{ "E16", L("5\r\nhello"), CHUNK_MORE, "hello" },
	};
	static struct outcome o;

	(void)state;
	for (size_t i = 0; i < nitems(cases); i++) {
		for (size_t cut = 0; cut < cases[i].len; cut++) {
			decode(cases[i].bytes, cases[i].len, cut, &o);
			if (o.result != cases[i].result)
				print_message("%s: %s cut at %zu\n",
				    cases[i].row, cases[i].bytes, cut);
			assert_int_equal(o.result, cases[i].result);
			if (cases[i].body == NULL)
				continue;
			assert_int_equal(o.len, strlen(cases[i].body));
			assert_memory_equal(o.body, cases[i].body, o.len);
			assert_int_equal(o.taken, cases[i].len);
		}
	}
}

static void
the_next_request_is_left(void **state)
{
	static const char bytes[] =
	    "3\r\nabc\r\n2\r\nde\r\n0" E "GET /2 HTTP/1.1\r\n";
	static struct outcome o;

	(void)state;
	for (size_t cut = 0; cut < sizeof(bytes) - 1; cut++) { /* E17 */
		decode(bytes, sizeof(bytes) - 1, cut, &o);
		assert_int_equal(o.result, CHUNK_DONE);
		assert_string_equal(bytes + o.taken, "GET /2 HTTP/1.1\r\n");
	}
}

static void
limits(void **state)
{
	static char bytes[70000];
	static struct outcome o;
	int n;

	(void)state;
	/* E9: one long extension; many short ones. */
	n = snprintf(bytes, sizeof(bytes), "5;a=%04096d\r\nhello\r\n0" E, 0);
	decode(bytes, (size_t)n, 0, &o);
	assert_int_equal(o.result, CHUNK_BAD);
	n = 0;
	for (int i = 0; i < 17; i++)
		n += snprintf(bytes + n, sizeof(bytes) - (size_t)n,
		    "1;a=%01000d\r\nh\r\n", 0);
	decode(bytes, (size_t)n, 0, &o);
	assert_int_equal(o.result, CHUNK_BAD);
	/* E15: a long trailer section; many lines. */
	n = snprintf(bytes, sizeof(bytes), "0\r\nX: %08192d" E, 0);
	decode(bytes, (size_t)n, 0, &o);
	assert_int_equal(o.result, CHUNK_BAD_TRAILER);
	for (int lines = 32; lines <= 33; lines++) {
		n = snprintf(bytes, sizeof(bytes), "0\r\n");
		for (int i = 0; i < lines; i++)
			n += snprintf(bytes + n, sizeof(bytes) - (size_t)n,
			    "X: %d\r\n", i);
		n += snprintf(bytes + n, sizeof(bytes) - (size_t)n, "\r\n");
		decode(bytes, (size_t)n, 0, &o);
		assert_int_equal(o.result,
		    lines == 32 ? CHUNK_DONE : CHUNK_BAD_TRAILER);
	}
}

static void
encoder(void **state)
{
	static const struct {
		uint64_t size;
		const char *head;
	} cases[] = {
		{ 5, "5\r\n" },
		{ 0x10, "10\r\n" },
		{ 5368709120, "140000000\r\n" }, /* E18 */
		{ UINT64_MAX, "ffffffffffffffff\r\n" },
	};
	char buf[CHUNK_HEAD_MAX];

	(void)state;
	for (size_t i = 0; i < nitems(cases); i++) {
		size_t n = chunked_head(buf + sizeof(buf), cases[i].size);

		assert_int_equal(n, strlen(cases[i].head));
		assert_memory_equal(buf + sizeof(buf) - n, cases[i].head, n);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bodies),
		cmocka_unit_test(the_next_request_is_left),
		cmocka_unit_test(limits),
		cmocka_unit_test(encoder),
	};

	return cmocka_run_group_tests_name("chunked", tests, NULL, NULL);
}
