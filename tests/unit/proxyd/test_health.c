/* test_health.c: when a node is up. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>

#include "common/base/io.h"
#include "proxyd/process/health.h"

static void
the_first_result_decides(void **state)
{
	struct health_count up = { 0 }, down = { 0 };

	(void)state;
	assert_true(health_decide(&up, true, 2, 3));
	assert_true(up.up);
	assert_true(health_decide(&down, false, 2, 3));
	assert_false(down.up);
}

static void
rise_and_fall_count_in_a_row(void **state)
{
	static const struct {
		const char *results; /* after a first good one */
		bool up;
	} cases[] = {
		{ "--", true },
		{ "---", false },
		{ "--+--", true },
		{ "---+", false },
		{ "---++", true },
		{ "---+-+", false },
		{ "---+-++", true },
	};

	(void)state;
	for (size_t i = 0; i < nitems(cases); i++) {
		struct health_count c = { 0 };

		health_decide(&c, true, 2, 3);
		for (const char *r = cases[i].results; *r != '\0'; r++)
			health_decide(&c, *r == '+', 2, 3);
		assert_int_equal(c.up, cases[i].up);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_result_decides),
		cmocka_unit_test(rise_and_fall_count_in_a_row),
	};

	return cmocka_run_group_tests_name("health", tests, NULL, NULL);
}
