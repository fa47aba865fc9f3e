/* test_conditional.c: preconditions, dates, codings, media types. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>

#include "common/base/io.h"
#include "proxyd/http/coding.h"
#include "proxyd/static/conditional.h"
#include "proxyd/static/http_date.h"
#include "proxyd/static/mime.h"

#define NOW	 1000000000
#define MODIFIED 784111777 /* Sun, 06 Nov 1994 08:49:37 GMT */
#define AT	 "Sun, 06 Nov 1994 08:49:37 GMT"
#define BEFORE	 "Sun, 06 Nov 1994 08:49:36 GMT"
#define AFTER	 "Mon, 07 Nov 1994 08:49:37 GMT"
#define FUTURE	 "Mon, 07 Nov 2044 08:49:37 GMT"

enum {
	NONE = PRECONDITION_NONE,
	WHOLE = PRECONDITION_WHOLE,
	SAME = PRECONDITION_UNCHANGED,
	FAILED = PRECONDITION_FAILED
};

static const struct {
	const char *match, *none_match, *modified, *unmodified, *range;
	int result;
} cases[] = {
	{ NULL, NULL, NULL, NULL, NULL, NONE },
	{ NULL, "\"x\"", NULL, NULL, NULL, SAME },
	{ NULL, "W/\"x\"", NULL, NULL, NULL, SAME },
	{ NULL, "*", NULL, NULL, NULL, SAME },
	{ NULL, "\"a\", \"x\"", NULL, NULL, NULL, SAME },
	{ NULL, "\"a,\", \"x\"", NULL, NULL, NULL, SAME },
	{ NULL, "\"y\"", NULL, NULL, NULL, NONE },
	{ NULL, "x", NULL, NULL, NULL, NONE },
	{ NULL, "\"x", NULL, NULL, NULL, NONE },
	{ NULL, "", NULL, NULL, NULL, NONE },
	/* I5: the tag is asked, the date is not. */
	{ NULL, "\"y\"", AFTER, NULL, NULL, NONE },
	{ NULL, "\"x\"", BEFORE, NULL, NULL, SAME },
	{ NULL, NULL, AT, NULL, NULL, SAME },
	{ NULL, NULL, AFTER, NULL, NULL, SAME },
	{ NULL, NULL, BEFORE, NULL, NULL, NONE },
	/* I6 */
	{ NULL, NULL, "garbage", NULL, NULL, NONE },
	{ NULL, NULL, FUTURE, NULL, NULL, NONE },
	{ "\"x\"", NULL, NULL, NULL, NULL, NONE },
	{ "*", NULL, NULL, NULL, NULL, NONE },
	{ "W/\"x\"", NULL, NULL, NULL, NULL, FAILED },
	{ "\"y\"", NULL, NULL, NULL, NULL, FAILED },
	{ "\"x\"", "\"x\"", NULL, NULL, NULL, SAME },
	{ "\"y\"", "\"x\"", NULL, NULL, NULL, FAILED },
	{ NULL, NULL, NULL, AT, NULL, NONE },
	{ NULL, NULL, NULL, BEFORE, NULL, FAILED },
	{ NULL, NULL, NULL, "garbage", NULL, NONE },
	{ "\"x\"", NULL, NULL, BEFORE, NULL, NONE },
	{ NULL, NULL, NULL, NULL, "\"x\"", NONE },
	{ NULL, NULL, NULL, NULL, "W/\"x\"", WHOLE },
	{ NULL, NULL, NULL, NULL, "\"y\"", WHOLE },
	{ NULL, NULL, NULL, NULL, AT, NONE },
	{ NULL, NULL, NULL, NULL, AFTER, WHOLE },
	{ NULL, NULL, NULL, NULL, "garbage", WHOLE },
};

static void
set(struct asked *a, enum asked_field f, const char *text)
{
	if (text != NULL)
		a->fields[f] = (struct member){ text, strlen(text) };
}

static void
preconditions(void **state)
{
	static const struct validators v = { MODIFIED, "\"x\"" };

	(void)state;
	for (size_t i = 0; i < nitems(cases); i++) {
		struct asked a = { 0 };

		set(&a, ASKED_IF_MATCH, cases[i].match);
		set(&a, ASKED_IF_NONE_MATCH, cases[i].none_match);
		set(&a, ASKED_IF_MODIFIED_SINCE, cases[i].modified);
		set(&a, ASKED_IF_UNMODIFIED_SINCE, cases[i].unmodified);
		set(&a, ASKED_IF_RANGE, cases[i].range);
		set(&a, ASKED_RANGE, "bytes=0-1");
		if ((int)precondition(&a, &v, NOW) != cases[i].result)
			fail_msg("case %zu", i);
	}
}

/* A file of this very second may still change: its date proves nothing. */
static void
a_fresh_date_is_weak(void **state)
{
	static const struct validators v = { MODIFIED, "\"x\"" };
	struct asked a = { 0 };

	(void)state;
	set(&a, ASKED_RANGE, "bytes=0-1");
	set(&a, ASKED_IF_RANGE, AT);
	assert_int_equal(precondition(&a, &v, MODIFIED + 1), WHOLE);
	assert_int_equal(precondition(&a, &v, MODIFIED + 2), NONE);
}

static void
dates(void **state)
{
	static const struct {
		const char *text;
		int64_t at; /* -1: none */
	} rows[] = {
		{ AT, MODIFIED },
		{ "Sunday, 06-Nov-94 08:49:37 GMT", MODIFIED },
		{ "Sun Nov  6 08:49:37 1994", MODIFIED },
		{ "Thu, 01 Jan 1970 00:00:00 GMT", 0 },
		{ "Sun, 06 Nov 1994 08:49:37", -1 },
		{ "Sun, 06 Nov 1994 08:49:37 GMTx", -1 },
		{ "Sun, 31 Feb 1994 08:49:37 GMT", -1 },
		{ "Sun, 06 Nov 1994 25:49:37 GMT", -1 },
		{ "784111777", -1 },
		{ "", -1 },
	};
	char out[HTTP_DATE_MAX];

	(void)state;
	for (size_t i = 0; i < nitems(rows); i++) {
		int64_t at = -1;

		assert_int_equal(http_date_parse(rows[i].text,
				     strlen(rows[i].text), NOW, &at),
		    rows[i].at != -1);
		assert_int_equal(at, rows[i].at);
	}
	http_date_format(MODIFIED, out);
	assert_string_equal(out, AT);
}

static void
tags_differ(void **state)
{
	char a[ETAG_MAX], b[ETAG_MAX];

	(void)state;
	etag_format(a, 10, MODIFIED, 1, CODING_NONE);
	etag_format(b, 10, MODIFIED, 2, CODING_NONE);
	assert_string_not_equal(a, b);
	etag_format(b, 10, MODIFIED, 1, CODING_BR);
	assert_string_not_equal(a, b);
	assert_true(a[0] == '"' && a[strlen(a) - 1] == '"');
	etag_format(a, UINT64_MAX, INT64_MAX, UINT32_MAX, CODING_GZIP);
	assert_true(a[strlen(a) - 1] == '"');
}

static void
codings(void **state)
{
	static const struct {
		const char *text;
		enum coding first, second;
	} rows[] = {
		{ "", CODING_NONE, CODING_NONE },
		{ "identity", CODING_NONE, CODING_NONE },
		{ "gzip", CODING_GZIP, CODING_NONE },
		{ "GZIP, deflate", CODING_GZIP, CODING_NONE },
		{ "x-gzip", CODING_GZIP, CODING_NONE },
		{ "gzip, br", CODING_BR, CODING_GZIP },
		{ "br;q=0.5, gzip;q=0.9", CODING_GZIP, CODING_BR },
		{ "br ; q=0.5 , gzip", CODING_GZIP, CODING_BR },
		{ "br;q=0", CODING_NONE, CODING_NONE },
		{ "br;q=0.000, gzip;q=0.001", CODING_GZIP, CODING_NONE },
		{ "*", CODING_BR, CODING_GZIP },
		{ "*;q=0, gzip", CODING_GZIP, CODING_NONE },
		{ "gzip;q=0, *", CODING_BR, CODING_NONE },
		{ "gzip;q=2", CODING_NONE, CODING_NONE },
		{ "gzip;q=", CODING_NONE, CODING_NONE },
		{ "gzip;q=0.1234", CODING_NONE, CODING_NONE },
		{ "gzip;x", CODING_NONE, CODING_NONE },
		{ ",,;,", CODING_NONE, CODING_NONE },
	};

	(void)state;
	for (size_t i = 0; i < nitems(rows); i++) {
		struct coding_wish w =
		    coding_parse(rows[i].text, strlen(rows[i].text));

		if (w.order[0] != rows[i].first || w.order[1] != rows[i].second)
			fail_msg("wrong: %s", rows[i].text);
	}
}

static void
media_types(void **state)
{
	static const char text[] = "# comment\n"
				   "text/odd\t\todd ODDER # more\n"
				   "application/x-css css\n"
				   "application/second css odd\n"
				   "no-slash foo\n"
				   "text/bad\x01type bad\n"
				   "alone/type\n"
				   "text/last last";
	struct mime *m = mime_new(text, sizeof(text) - 1);

	(void)state;
	assert_string_equal(mime_type(m, "odd"), "text/odd");
	assert_string_equal(mime_type(m, "Odder"), "text/odd");
	assert_string_equal(mime_type(m, "css"), "application/x-css");
	assert_string_equal(mime_type(m, "last"), "text/last");
	assert_string_equal(mime_type(m, "PNG"), "image/png");
	assert_string_equal(mime_type(m, "foo"), "application/octet-stream");
	assert_string_equal(mime_type(m, "bad"), "application/octet-stream");
	assert_string_equal(mime_type(m, ""), "application/octet-stream");
	mime_free(m);
	m = mime_new(NULL, 0);
	assert_string_equal(mime_type(m, "css"), "text/css");
	mime_free(m);
	mime_free(NULL);
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(preconditions),
		cmocka_unit_test(a_fresh_date_is_weak),
		cmocka_unit_test(dates),
		cmocka_unit_test(tags_differ),
		cmocka_unit_test(codings),
		cmocka_unit_test(media_types),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
