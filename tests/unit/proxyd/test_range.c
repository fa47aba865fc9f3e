/* test_range.c: Range fields, cases I1, I2 and I4. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>

#include "common/base/io.h"
#include "proxyd/static/range.h"

static const struct {
	const char *text;
	uint64_t size;
	enum range_result result;
	unsigned n;
	struct range first;
} cases[] = {
	{ "bytes=0-3", 100, RANGE_PARTS, 1, { 0, 4 } },
	{ "BYTES=0-3", 100, RANGE_PARTS, 1, { 0, 4 } },
	{ "bytes=-2", 100, RANGE_PARTS, 1, { 98, 2 } },
	{ "bytes=4-", 100, RANGE_PARTS, 1, { 4, 96 } },
	{ "bytes=0-99999", 100, RANGE_PARTS, 1, { 0, 100 } },
	{ "bytes=-99999", 100, RANGE_PARTS, 1, { 0, 100 } },
	{ "bytes=99-99", 100, RANGE_PARTS, 1, { 99, 1 } },
	{ "bytes= 0-3 , 5-6 ", 100, RANGE_PARTS, 2, { 0, 4 } },
	{ "bytes=9-9,200-,5-6", 100, RANGE_PARTS, 2, { 9, 1 } },
	{ "bytes=0-99999999999999999999999999", 100, RANGE_PARTS, 1,
	    { 0, 100 } },
	{ "bytes=99999-", 100, RANGE_UNSATISFIABLE, 0, { 0, 0 } },
	{ "bytes=100-", 100, RANGE_UNSATISFIABLE, 0, { 0, 0 } },
	{ "bytes=99999999999999999999999-", 100, RANGE_UNSATISFIABLE, 0,
	    { 0, 0 } },
	{ "bytes=-0", 100, RANGE_UNSATISFIABLE, 0, { 0, 0 } },
	{ "bytes=0-", 0, RANGE_UNSATISFIABLE, 0, { 0, 0 } },
	{ "bytes=-5", 0, RANGE_UNSATISFIABLE, 0, { 0, 0 } },
	{ "bytes=5-3", 100, RANGE_WHOLE, 0, { 0, 0 } },
	{ "bytes=", 100, RANGE_WHOLE, 0, { 0, 0 } },
	{ "bytes=-", 100, RANGE_WHOLE, 0, { 0, 0 } },
	{ "bytes=,", 100, RANGE_WHOLE, 0, { 0, 0 } },
	{ "bytes=0-1,", 100, RANGE_WHOLE, 0, { 0, 0 } },
	{ "bytes=a-b", 100, RANGE_WHOLE, 0, { 0, 0 } },
	{ "bytes=0x0-1", 100, RANGE_WHOLE, 0, { 0, 0 } },
	{ "bytes=+0-1", 100, RANGE_WHOLE, 0, { 0, 0 } },
	{ "bytes=0-1 2-3", 100, RANGE_WHOLE, 0, { 0, 0 } },
	{ "bytes=0-1-2", 100, RANGE_WHOLE, 0, { 0, 0 } },
	{ "lines=0-1", 100, RANGE_WHOLE, 0, { 0, 0 } },
	{ "bytes 0-1", 100, RANGE_WHOLE, 0, { 0, 0 } },
	{ "", 100, RANGE_WHOLE, 0, { 0, 0 } },
	/* Overlaps, and more parts than anybody needs. */
	{ "bytes=0-,0-", 100, RANGE_WHOLE, 0, { 0, 0 } },
	{ "bytes=0-5,5-6", 100, RANGE_WHOLE, 0, { 0, 0 } },
	{ "bytes=5-6,0-9", 100, RANGE_WHOLE, 0, { 0, 0 } },
	{ "bytes=50-,-51", 100, RANGE_WHOLE, 0, { 0, 0 } },
	{ "bytes=0-0,2-2,4-4,6-6,8-8,10-10,12-12,14-14", 100, RANGE_PARTS, 8,
	    { 0, 1 } },
	{ "bytes=0-0,2-2,4-4,6-6,8-8,10-10,12-12,14-14,16-16", 100, RANGE_WHOLE,
	    0, { 0, 0 } },
	{ "bytes=200-,200-,200-,200-,200-,200-,200-,200-,200-", 100,
	    RANGE_WHOLE, 0, { 0, 0 } },
};

static void
ranges(void **state)
{
	(void)state;
	for (size_t i = 0; i < nitems(cases); i++) {
		struct range_set set;
		enum range_result r = range_parse(cases[i].text,
		    strlen(cases[i].text), cases[i].size, &set);

		if (r != cases[i].result)
			fail_msg("wrong: %s", cases[i].text);
		if (r != RANGE_PARTS)
			continue;
		assert_int_equal(set.n, cases[i].n);
		assert_int_equal(set.parts[0].first, cases[i].first.first);
		assert_int_equal(set.parts[0].size, cases[i].first.size);
	}
}

static void
a_thousand_ranges(void **state)
{
	char text[4000] = "bytes=0-";
	struct range_set set;

	(void)state;
	for (size_t n = strlen(text); n + 4 <= sizeof(text); n += 3)
		memcpy(text + n, ",0-", 4);
	assert_int_equal(range_parse(text, strlen(text), 10, &set),
	    RANGE_WHOLE);
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(ranges),
		cmocka_unit_test(a_thousand_ranges),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
