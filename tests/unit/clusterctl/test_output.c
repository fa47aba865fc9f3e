/* test_output.c: one table in its forms, widths, JSON texts, quoted lines. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clusterctl/context.h"
#include "clusterctl/json_text.h"
#include "common/base/text.h"
#include "clusterctl/output.h"
#include "common/base/io.h"

static const struct column columns[] = {
	{ .title = "NODE", .key = "node" },
	{ .title = "N", .key = "n", .kind = COLUMN_NUMBER },
	{ .title = "ROLES", .key = "roles", .kind = COLUMN_LIST },
	{ .title = "UP", .key = "up", .kind = COLUMN_BOOL, .where = ON_JSON },
	{ .title = "WHY", .key = "why" },
};

/* What a table of two rows prints; the test's standard output is no
 * terminal. */
static char *
printed(bool json)
{
	static const char *const roles[] = { "a", "b" };
	FILE *real = stdout;
	struct table *t;
	char *text = NULL;
	size_t size;

	output_open(json, true);
	stdout = open_memstream(&text, &size);
	t = table_new(columns, nitems(columns));
	table_put(t, "web1");
	table_put_number(t, -7);
	table_put_list(t, roles, nitems(roles));
	table_put_bool(t, true);
	table_put(t, NULL);
	table_put(t, "web2");
	table_putf(t, "%.1f", 1.5);
	table_put_list(t, NULL, 0);
	table_put_bool(t, false);
	table_put(t, "evil\tcell\nhere\033[2J");
	table_end(t);
	fclose(stdout);
	stdout = real;
	return text;
}

static void
plain_lines(void **state)
{
	char *text = printed(false);

	(void)state;
	assert_string_equal(text,
	    "web1\t-7\ta,b\t-\n"
	    "web2\t1.5\t\tevil?cell?here?[2J\n");
	free(text);
}

static void
json_lines(void **state)
{
	char *text = printed(true);

	(void)state;
	assert_string_equal(text,
	    "{\"node\":\"web1\",\"n\":-7,\"roles\":[\"a\",\"b\"],\"up\":true,"
	    "\"why\":null}\n"
	    "{\"node\":\"web2\",\"n\":1.5,\"roles\":[],\"up\":false,"
	    "\"why\":\"evil?cell?here?[2J\"}\n");
	free(text);
}

static void
widths(void **state)
{
	static const struct {
		const char *text;
		size_t width;
	} cases[] = {
		{ "", 0 }, { "web1", 4 },
		{ "Gr\xc3\xbc\xc3\x9f"
		  "e",
		    5 },
		{ "\xe6\x97\xa5\xe6\x9c\xac", 4 }, /* two wide characters */
		{ "e\xcc\x81", 1 },		   /* a combining accent */
		{ "\xff\xfe", 2 },		   /* no UTF-8 */
	};

	(void)state;
	output_open(false, true);
	for (size_t i = 0; i < nitems(cases); i++)
		assert_int_equal(output_width(cases[i].text), cases[i].width);
}

static void
utf8_is_told(void **state)
{
	static const struct {
		const char *bytes;
		bool valid;
	} cases[] = {
		{ "", true },
		{ "abc\n\x7f", true },
		{ "\xc3\xbc", true },
		{ "\xe2\x82\xac", true },
		{ "\xf0\x9f\x98\x80", true },
		{ "\xf4\x8f\xbf\xbf", true },
		{ "\xff", false },
		{ "\x80", false },
		{ "\xc3", false },
		{ "\xc0\xaf", false }, /* over-long */
		{ "\xe0\x80\xaf", false },
		{ "\xf0\x80\x80\xaf", false },
		{ "\xed\xa0\x80", false },     /* a surrogate */
		{ "\xf4\x90\x80\x80", false }, /* above U+10FFFF */
		{ "a\xe2\x82", false },
	};

	(void)state;
	for (size_t i = 0; i < nitems(cases); i++)
		assert_int_equal(text_is_utf8(cases[i].bytes,
				     strlen(cases[i].bytes)),
		    cases[i].valid);
}

static void
json_members(void **state)
{
	static const struct {
		const char *bytes;
		size_t n;
		const char *member;
	} cases[] = {
		{ "ok\n", 3, ",\"x\":\"ok\\n\"" },
		{ "a\"b\\c\t\001", 7, ",\"x\":\"a\\\"b\\\\c\\t\\u0001\"" },
		{ "\0z", 2, ",\"x\":\"\\u0000z\"" },
		{ "\xc3\xbc", 2, ",\"x\":\"\xc3\xbc\"" },
		{ "\xff", 1, ",\"x_base64\":\"/w==\"" },
		{ "", 0, ",\"x\":\"\"" },
	};

	(void)state;
	for (size_t i = 0; i < nitems(cases); i++) {
		char *text = NULL;
		size_t size;
		FILE *f = open_memstream(&text, &size);

		json_text_member(f, "x", cases[i].bytes, cases[i].n);
		fclose(f);
		assert_string_equal(text, cases[i].member);
		free(text);
	}
}

/* The line as typed, for the audit log: readable, and no secret in it. */
static void
quoted_lines(void **state)
{
	static const struct {
		const char *words[6];
		const char *line;
	} cases[] = {
		{ { "exec", "web[1-3]", "uptime" }, "exec web[1-3] uptime" },
		{ { "exec", "a", "echo 'x' | wc" },
		    "exec a 'echo '\\''x'\\'' | wc'" },
		{ { "a", "" }, "a ''" },
		{ { "exec", "-e", "KEY=secret", "id" }, "exec -e KEY=*** id" },
		{ { "exec", "--env", "KEY=secret", "id" },
		    "exec --env KEY=*** id" },
		{ { "exec", "--env=KEY=secret", "id" },
		    "exec --env=KEY=*** id" },
		{ { "exec", "-eKEY=a", "-qe", "B=b", "--en", "C=c" },
		    "exec -eKEY=*** -qe B=*** --en C=***" },
		{ { "exec", "a", "sed", "-e", "s/a=b/c/" },
		    "exec a sed -e s/a=b/c/" },
		{ { "exec", "a", "grep", "-e", "x" }, "exec a grep -e x" },
		{ { "a", "\xff" }, "a '?'" },
	};

	(void)state;
	for (size_t i = 0; i < nitems(cases); i++) {
		char *words[6];
		char *line;
		int n = 0;

		while (n < 6 && cases[i].words[n] != NULL) {
			words[n] = (char *)cases[i].words[n];
			n++;
		}
		line = context_quote(n, words);
		assert_string_equal(line, cases[i].line);
		free(line);
	}
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(plain_lines),
		cmocka_unit_test(json_lines),
		cmocka_unit_test(widths),
		cmocka_unit_test(utf8_is_told),
		cmocka_unit_test(json_members),
		cmocka_unit_test(quoted_lines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
