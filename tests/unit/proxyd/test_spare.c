/* test_spare.c: blocks that are kept, and given back. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>

#include "proxyd/http/spare.h"

#define MANY 3000
#define SIZE 400

static void *blocks[MANY];

static void
come_and_go(struct spare *s, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		assert_non_null(blocks[i] = spare_take(s, SIZE));
		memset(blocks[i], 'x', SIZE);
	}
	while (n > 0)
		spare_put(s, blocks[--n]);
}

static void
the_last_one_put_is_the_next_one_taken(void **state)
{
	struct spare s = { 0 };
	void *a = spare_take(&s, SIZE), *b = spare_take(&s, SIZE);

	(void)state;
	spare_put(&s, a);
	spare_put(&s, b);
	assert_ptr_equal(spare_take(&s, SIZE), b);
	assert_ptr_equal(spare_take(&s, SIZE), a);
	assert_int_equal(s.n, 0);
	spare_put(&s, a);
	spare_put(&s, b);
	spare_fini(&s);
	assert_int_equal(s.n, 0);
}

static void
what_is_used_every_second_stays(void **state)
{
	struct spare s = { 0 };

	(void)state;
	come_and_go(&s, MANY);
	spare_tidy(&s);
	for (int second = 0; second < 100; second++) {
		come_and_go(&s, MANY);
		assert_int_equal(s.n, MANY);
		assert_int_equal(spare_tidy(&s), 0);
	}
	spare_fini(&s);
}

static void
after_a_crowd_few_are_left(void **state)
{
	struct spare s = { 0 };
	uint32_t given, least = MANY;

	(void)state;
	come_and_go(&s, MANY);
	spare_tidy(&s); /* they were needed in this second */
	assert_int_equal(s.n, MANY);
	for (int second = 0; second < 30; second++) {
		come_and_go(&s, 10);
		given = spare_tidy(&s);
		assert_true(given <= 512 && s.n <= least);
		least = s.n;
	}
	assert_true(s.n <= 80);
	spare_tidy(&s); /* of a second in which nobody came */
	assert_int_equal(spare_tidy(&s), 0);
	assert_true(s.n > 0);
	spare_fini(&s);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_last_one_put_is_the_next_one_taken),
		cmocka_unit_test(what_is_used_every_second_stays),
		cmocka_unit_test(after_a_crowd_few_are_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
