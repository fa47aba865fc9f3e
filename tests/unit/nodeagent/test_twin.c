/* test_twin.c: one machine that starts again and again, and two at once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "nodeagent/twin.h"

static struct twin t;
static struct addr other;

static bool
called(const char *word, const char *from, int64_t now_ms)
{
	struct addr a;
	struct err e;

	assert_int_equal(addr_parse(from, 1, &a, &e), 0);
	return twin_called(&t, word, &a, now_ms, &other);
}

static int
setup(void **unused)
{
	(void)unused;
	t = (struct twin){ 0 };
	return 0;
}

static void
a_machine_that_is_started_again_is_one(void **unused)
{
	(void)unused;
	for (int i = 0; i < 3; i++)
		assert_false(called("a", "10.0.0.1", 1));
	for (int i = 0; i < 3; i++)
		assert_false(called("b", "10.0.0.2", 2));
	assert_false(called("c", "10.0.0.1", 3));
	assert_false(called("d", "10.0.0.1", 4));
}

static void
one_that_is_back_is_another(void **unused)
{
	char text[ADDR_TEXT_MAX];

	(void)unused;
	assert_false(called("a", "10.0.0.1", 1));
	assert_false(called("b", "10.0.0.2", 2));
	assert_false(called("b", "10.0.0.2", 3));
	assert_true(called("a", "10.0.0.1", 4));
	addr_format_ip(&other, text);
	assert_string_equal(text, "10.0.0.2");
}

static void
it_is_said_once_an_hour(void **unused)
{
	int n = 0;

	(void)unused;
	for (int minute = 0; minute < 180; minute++)
		n += called(minute % 2 == 0 ? "a" : "b", "10.0.0.1",
		    minute * INT64_C(60000));
	assert_int_equal(n, 3);
}

static void
an_agent_that_says_no_word_is_left_alone(void **unused)
{
	(void)unused;
	assert_false(called("a", "10.0.0.1", 1));
	assert_false(called("", "10.0.0.1", 2));
	assert_false(called("b", "10.0.0.1", 3));
	assert_false(called("", "10.0.0.1", 4));
	assert_true(called("a", "10.0.0.1", 5));
}

#define T(test) cmocka_unit_test_setup(test, setup)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_machine_that_is_started_again_is_one),
		T(one_that_is_back_is_another),
		T(it_is_said_once_an_hour),
		T(an_agent_that_says_no_word_is_left_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
