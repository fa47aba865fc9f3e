/* test_queue.c: turns between sites. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "proxyd/balance/queue.h"

#define N 60

struct waiting {
	struct queue_entry q;
	int site;
};

static int
serve(struct queue *q)
{
	struct waiting *w = (struct waiting *)queue_next(q, NULL);

	queue_leave(q, &w->q, true);
	return w->site;
}

static void
one_site_cannot_fill_it(void **state)
{
	struct queue *q = queue_new();
	struct waiting w[N];

	(void)state;
	for (int i = 0; i < N; i++) { /* 50 of site 1, then 10 of site 2 */
		w[i].site = i < 50 ? 1 : 2;
		assert_true(queue_push(q, &w[i].q, w[i].site, 1, N, 1000));
	}
	for (int i = 0; i < 10; i++)
		assert_int_equal(serve(q) + serve(q), 3);
	for (int i = 0; i < 40; i++)
		assert_int_equal(serve(q), 1);
	assert_int_equal(queue_length(q), 0);
	assert_null(queue_next(q, NULL));
	queue_free(q);
}

static void
shares_weigh(void **state)
{
	struct queue *q = queue_new();
	struct waiting w[N];
	int served[3] = { 0, 0, 0 };

	(void)state;
	for (int i = 0; i < N; i++) {
		w[i].site = i % 2 + 1;
		assert_true(queue_push(q, &w[i].q, w[i].site,
		    w[i].site == 1 ? 1 : 3, N, 1000));
	}
	for (int i = 0; i < 24; i++)
		served[serve(q)]++;
	assert_in_range(served[1], 5, 7);
	assert_in_range(served[2], 17, 19);
	while (queue_length(q) > 0)
		serve(q);
	queue_free(q);
}

/* Site 2 always has one waiting and comes back at once. */
static void
coming_back_is_not_free(void **state)
{
	struct queue *q = queue_new();
	struct waiting w[N], two = { .site = 2 };
	int served[3] = { 0, 0, 0 };

	(void)state;
	for (int i = 0; i < N; i++) {
		w[i].site = 1;
		assert_true(queue_push(q, &w[i].q, 1, 1, 2 * N, 1000));
	}
	for (int i = 0; i < 40; i++) {
		if (two.q.site == NULL)
			assert_true(queue_push(q, &two.q, 2, 1, 2 * N, 1000));
		served[serve(q)]++;
	}
	assert_in_range(served[1], 19, 21);
	while (queue_length(q) > 0)
		serve(q);
	queue_free(q);
}

static void
bounds_and_deadlines(void **state)
{
	struct queue *q = queue_new();
	struct waiting w[3];

	(void)state;
	assert_true(queue_push(q, &w[0].q, 1, 1, 2, 100));
	assert_true(queue_push(q, &w[1].q, 2, 1, 2, 200));
	assert_false(queue_push(q, &w[2].q, 3, 1, 2, 300));
	assert_null(queue_expired(q, 99));
	assert_ptr_equal(queue_expired(q, 100), &w[0].q);
	queue_leave(q, &w[0].q, false);
	assert_null(queue_expired(q, 100));
	assert_ptr_equal(queue_next(q, NULL), &w[1].q);
	assert_null(queue_next(q, &w[1].q));
	queue_leave(q, &w[1].q, false);
	queue_free(q);
}

/* When the first site may not go (its own bound), the next one may. */
static void
a_blocked_site_is_passed_over(void **state)
{
	struct queue *q = queue_new();
	struct waiting w[3];
	struct queue_entry *first, *second, *third;

	(void)state;
	for (int i = 0; i < 3; i++)
		assert_true(queue_push(q, &w[i].q, i, 1, 9, 100));
	first = queue_next(q, NULL);
	second = queue_next(q, first);
	third = queue_next(q, second);
	assert_true(first != second && second != third && first != third);
	assert_null(queue_next(q, third));
	for (int i = 0; i < 3; i++)
		queue_leave(q, &w[i].q, false);
	queue_free(q);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_site_cannot_fill_it),
		cmocka_unit_test(shares_weigh),
		cmocka_unit_test(coming_back_is_not_free),
		cmocka_unit_test(bounds_and_deadlines),
		cmocka_unit_test(a_blocked_site_is_passed_over),
	};

	return cmocka_run_group_tests_name("queue", tests, NULL, NULL);
}
