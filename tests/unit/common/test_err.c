/* test_err.c: sentences, their codes and exit statuses. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>

#include "common/base/err.h"

static void
wrap_keeps_code(void **state)
{
	struct err e;

	(void)state;
	assert_int_equal(err_set(&e, ERR_BUSY, "%s runs", "n17"), -1);
	assert_int_equal(err_wrap(&e, "drain %s", "n17"), -1);
	assert_int_equal(e.code, ERR_BUSY);
	assert_string_equal(e.text, "drain n17: n17 runs");
}

static void
control_bytes_are_neutralised(void **state)
{
	struct err e;

	(void)state;
	err_set(&e, ERR_USAGE, "bad name '%s'", "a\nb\033[2J");
	assert_string_equal(e.text, "bad name 'a?b?[2J'");
}

static void
long_text_is_cut_not_overrun(void **state)
{
	char big[1000];
	struct err e;

	(void)state;
	memset(big, 'x', sizeof(big) - 1);
	big[sizeof(big) - 1] = '\0';
	err_set(&e, ERR_LOCAL, "%s", big);
	err_wrap(&e, "%s", big);
	assert_int_equal(strlen(e.text), sizeof(e.text) - 1);
}

static void
exit_statuses(void **state)
{
	(void)state;
	assert_int_equal(err_exit_status(ERR_NO_TARGET), 3);
	assert_int_equal(err_exit_status(ERR_EXPIRED), 7);
	assert_int_equal(err_exit_status(9999), 8);
	assert_string_equal(err_word(ERR_REVOKED), "revoked");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wrap_keeps_code),
		cmocka_unit_test(control_bytes_are_neutralised),
		cmocka_unit_test(long_text_is_cut_not_overrun),
		cmocka_unit_test(exit_statuses),
	};

	return cmocka_run_group_tests_name("err", tests, NULL, NULL);
}
