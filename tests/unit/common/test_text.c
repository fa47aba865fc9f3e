/* test_text.c: durations, sizes, numbers and shares, in and out. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "common/base/io.h"
#include "common/base/text.h"

#define BAD UINT64_MAX

static void
numbers(void **state)
{
	static const struct {
		const char *text;
		uint64_t value;
	} cases[] = {
		{ "0", 0 },
		{ "1", 1 },
		{ "100", 100 },
		{ "101", BAD },
		{ "", BAD },
		{ "-1", BAD },
		{ "+1", BAD },
		{ " 1", BAD },
		{ "1 ", BAD },
		{ "0x10", BAD },
		{ "1e2", BAD },
		{ "18446744073709551617", BAD },
	};
	struct err e;

	(void)state;
	for (size_t i = 0; i < nitems(cases); i++) {
		uint64_t v = BAD;
		int rv = text_parse_u64("n", cases[i].text, 0, 100, &v, &e);

		assert_int_equal(rv, cases[i].value == BAD ? -1 : 0);
		assert_true(v == cases[i].value); /* untouched on failure */
	}
}

static void
durations(void **state)
{
	static const struct {
		const char *text;
		int64_t ms;
	} cases[] = {
		{ "500ms", 500 },
		{ "30s", 30000 },
		{ "30", 30000 },
		{ "5m", 300000 },
		{ "1h", 3600000 },
		{ "90d", 7776000000 },
		{ "0", 0 },
		{ "101d", -1 },
		{ "1w", -1 },
		{ "1h30m", -1 },
		{ "h", -1 },
		{ "", -1 },
		{ "-5s", -1 },
		{ "99999999999999999999d", -1 },
		{ "18446744073709551615h", -1 },
	};
	struct err e;

	(void)state;
	for (size_t i = 0; i < nitems(cases); i++) {
		int64_t ms = -1;

		text_parse_duration("ttl", cases[i].text, 8640000000, &ms, &e);
		assert_true(ms == cases[i].ms);
	}
}

static void
sizes_and_shares(void **state)
{
	struct err e;
	uint64_t v;

	(void)state;
	assert_int_equal(text_parse_size("size", "100M", BAD, &v, &e), 0);
	assert_true(v == 104857600);
	assert_int_equal(text_parse_size("size", "64k", BAD, &v, &e), 0);
	assert_true(v == 65536);
	assert_int_equal(text_parse_size("size", "17179869184G", BAD, &v, &e),
	    -1);
	assert_int_equal(text_parse_size("size", "1.5M", BAD, &v, &e), -1);
	assert_int_equal(text_parse_share("batch", "25%", 10, &v, &e), 0);
	assert_true(v == 2);
	assert_int_equal(text_parse_share("batch", "1%", 10, &v, &e), 0);
	assert_true(v == 0);
	assert_int_equal(text_parse_share("batch", "0%", 10, &v, &e), 0);
	assert_true(v == 0);
	assert_int_equal(text_parse_share("batch", "7", 10, &v, &e), 0);
	assert_true(v == 7);
	assert_int_equal(text_parse_share("batch", "101%", 10, &v, &e), -1);
	assert_int_equal(text_parse_share("batch", "x", 10, &v, &e), -1);
	assert_true(text_is_env_name("_A1", 3));
	assert_false(text_is_env_name("1A", 2));
	assert_false(text_is_env_name("A-", 2));
	assert_false(text_is_env_name("", 0));
}

static void
formats(void **state)
{
	static const struct {
		int64_t ms;
		const char *text;
	} durations_out[] = {
		{ 12, "12ms" },
		{ 1500, "1.5s" },
		{ 59999, "59s" },
		{ 130000, "2m10s" },
		{ 3660000, "1h1m" },
		{ 273600000, "3d4h" },
		{ -1, "-" },
	};
	static const struct {
		uint64_t bytes;
		const char *text;
	} sizes_out[] = {
		{ 0, "0" },
		{ 1023, "1023" },
		{ 1536, "1.5K" },
		{ 1048575, "1.0M" },
		{ 24117248, "23M" },
		{ UINT64_MAX, "16E" },
	};
	char buf[32];

	(void)state;
	for (size_t i = 0; i < nitems(durations_out); i++) {
		text_format_duration(durations_out[i].ms, buf, sizeof(buf));
		assert_string_equal(buf, durations_out[i].text);
	}
	for (size_t i = 0; i < nitems(sizes_out); i++) {
		text_format_size(sizes_out[i].bytes, buf, sizeof(buf));
		assert_string_equal(buf, sizes_out[i].text);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers),
		cmocka_unit_test(durations),
		cmocka_unit_test(sizes_and_shares),
		cmocka_unit_test(formats),
	};

	return cmocka_run_group_tests_name("text", tests, NULL, NULL);
}
