/* test_pull.c: how long an agent rests between two looks for a roster. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "nodeagent/pull.h"

#define MINUTE_MS INT64_C(60000)

static void
a_failure_is_tried_again_soon_and_then_each_minute(void **unused)
{
	(void)unused;
	assert_int_equal(pull_rest_ms(0, true), MINUTE_MS);
	assert_int_equal(pull_rest_ms(1, true), 5000);
	for (unsigned n = 2; n < 5; n++)
		assert_true(pull_rest_ms(n, true) > pull_rest_ms(n - 1, true));
	for (unsigned n = 5; n < 1000; n++)
		assert_int_equal(pull_rest_ms(n, true), MINUTE_MS);
}

static void
a_removed_node_asks_seldomer_and_seldomer(void **unused)
{
	(void)unused;
	for (unsigned n = 1; n < 7; n++)
		assert_true(
		    pull_rest_ms(n, false) > pull_rest_ms(n - 1, false));
	for (unsigned n = 6; n < 1000; n++)
		assert_int_equal(pull_rest_ms(n, false), 60 * MINUTE_MS);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
		    a_failure_is_tried_again_soon_and_then_each_minute),
		cmocka_unit_test(a_removed_node_asks_seldomer_and_seldomer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
