/* test_health.c: when a node is up, and what counts as an answer. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>

#include "common/base/io.h"
#include "proxyd/process/check.h"
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

static void
only_http_is_an_answer(void **state)
{
	static const struct {
		const char *bytes;
		int status;
	} cases[] = {
		{ "HTTP/1.1 200", 200 },
		{ "HTTP/1.0 404", 404 },
		{ "HTTP/1.1 503 x", 503 },
		{ "", 0 },
		{ "HTT", 0 },
		{ "HTTP/1.1 20", 0 },
		{ "SSH-2.0", -1 },
		{ "HTTP/2.0 200", -1 },
		{ "HTTP/1.1\t200", -1 },
		{ "HTTP/1.1 2x0", -1 },
		{ "HTTP/1.1 999", -1 },
		{ "HTTP/1.1 000", -1 },
	};

	(void)state;
	for (size_t i = 0; i < nitems(cases); i++)
		assert_int_equal(check_status(cases[i].bytes,
				     strlen(cases[i].bytes)),
		    cases[i].status);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_result_decides),
		cmocka_unit_test(rise_and_fall_count_in_a_row),
		cmocka_unit_test(only_http_is_an_answer),
	};

	return cmocka_run_group_tests_name("health", tests, NULL, NULL);
}
