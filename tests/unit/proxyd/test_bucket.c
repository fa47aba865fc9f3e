/*
 * test_bucket.c: the bucket against a plain model, many takers at once, and
 * rates that change.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proxyd/limits/bucket.h"

#define SECOND 1000000000ULL

static uint64_t
random_below(uint64_t n)
{
	static uint64_t x = 88172645463325252;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return x % n;
}

/* A bucket that is filled, as one would explain it. */
struct model {
	uint64_t step_ns, burst;
	uint64_t level_ns; /* worth of tokens in it */
	uint64_t last_ns;
};

static bool
model_take(struct model *m, uint64_t n, uint64_t now_ns)
{
	uint64_t whole = m->burst * m->step_ns;

	m->level_ns += now_ns - m->last_ns;
	m->last_ns = now_ns;
	if (m->level_ns > whole)
		m->level_ns = whole;
	if (m->level_ns < n * m->step_ns)
		return false;
	m->level_ns -= n * m->step_ns;
	return true;
}

static void
it_does_what_the_model_does(void **state)
{
	(void)state;
	for (int round = 0; round < 200; round++) {
		uint64_t per_s = 1 + random_below(2000);
		uint64_t burst = 1 + random_below(50);
		struct bucket_rate r = bucket_rate(per_s, SECOND, burst);
		struct model m = { (SECOND + per_s - 1) / per_s, burst,
			burst * ((SECOND + per_s - 1) / per_s), 0 };
		_Atomic uint64_t word = 0;
		uint64_t now = 0;

		for (int i = 0; i < 2000; i++) {
			uint64_t n = 1 + random_below(3), wait;

			now += random_below(2 * SECOND / per_s);
			wait = bucket_take(&word, &r, n, now);
			assert_int_equal(wait == 0, model_take(&m, n, now));
			if (wait == 0 || n > burst)
				continue;
			/* What it says is when it would be there. */
			assert_false(model_take(&m, n, now + wait - 1));
			m.level_ns -= wait - 1;
			m.last_ns = now;
		}
	}
}

static void
a_burst_and_then_the_rate(void **state)
{
	struct bucket_rate r = bucket_rate(3, SECOND, 7);
	_Atomic uint64_t word = 0;
	unsigned taken = 0;

	(void)state;
	for (int i = 0; i < 20; i++)
		taken += bucket_take(&word, &r, 1, SECOND) == 0;
	assert_int_equal(taken, 7);
	for (int ms = 0; ms < 10000; ms++)
		taken +=
		    bucket_take(&word, &r, 1, SECOND + ms * 1000000ULL) == 0;
	assert_in_range(taken, 7 + 29, 7 + 30);
}

/* Bytes: never more than the rate and the burst, and not much less. */
static void
some_are_taken_exactly(void **state)
{
	static const uint64_t rates[] = { 1024, 123457, 1 << 20, 1ULL << 33,
		1ULL << 40 };

	(void)state;
	for (size_t i = 0; i < sizeof(rates) / sizeof(*rates); i++) {
		struct bucket_rate r =
		    bucket_rate(rates[i], SECOND, 65536 + rates[i] / 10);
		_Atomic uint64_t word = 0;
		uint64_t now = SECOND, all = 0, most;

		for (int turn = 0; turn < 5000; turn++) {
			uint64_t n = bucket_take_some(&word, &r, 1,
			    1 + random_below(BUCKET_TAKE_MAX), now);
			uint64_t used = random_below(n + 1);

			bucket_give(&word, &r, n, used);
			all += used;
			most = (now - SECOND) / 1000 * rates[i] / 1000000 +
			    65536 + rates[i] / 10;
			assert_true(all <= most + most / 1000 + 1);
			now += random_below(1000000);
		}
	}
}

static void
less_than_the_least_is_none(void **state)
{
	struct bucket_rate r = bucket_rate(1000, SECOND, 1000);
	_Atomic uint64_t word = 0;

	(void)state;
	assert_int_equal(bucket_take_some(&word, &r, 1, 900, SECOND), 900);
	assert_int_equal(bucket_take_some(&word, &r, 101, 900, SECOND), 0);
	assert_int_equal(bucket_take_some(&word, &r, 100, 900, SECOND), 100);
	bucket_give(&word, &r, 100, 0);
	assert_int_equal(bucket_take_some(&word, &r, 1, 900, SECOND), 100);
}

/* An hour's worth is owed, then the rate becomes a fast one. */
static void
a_new_rate_is_not_held_up_by_an_old_one(void **state)
{
	struct bucket_rate slow = bucket_rate(1, 3600 * SECOND, 1);
	struct bucket_rate fast = bucket_rate(10, SECOND, 5);
	_Atomic uint64_t word = 0;
	uint64_t now = 100 * SECOND, wait;

	(void)state;
	assert_int_equal(bucket_take(&word, &slow, 1, now), 0);
	assert_true(bucket_take(&word, &slow, 1, now) > 3599 * SECOND);
	wait = bucket_take(&word, &fast, 1, now);
	assert_in_range(wait, 1, SECOND / 10);
	assert_int_equal(bucket_take(&word, &fast, 1, now + wait), 0);
}

static void
extremes_do_not_wrap(void **state)
{
	struct bucket_rate slow = bucket_rate(1, 3600 * SECOND, 1000000);
	struct bucket_rate fast = bucket_rate(1ULL << 40, SECOND, 1ULL << 40);
	struct bucket_rate odd = bucket_rate(1024, SECOND, 1ULL << 40);
	_Atomic uint64_t a = 0, b = 0, c = 0;

	(void)state;
	for (int i = 0; i < 1000000; i++)
		assert_int_equal(bucket_take(&a, &slow, 1, 1), 0);
	assert_true(bucket_take(&a, &slow, 1, 1) > 0);
	assert_int_equal(bucket_take_some(&b, &fast, 1, BUCKET_TAKE_MAX,
			     SECOND),
	    BUCKET_TAKE_MAX);
	assert_int_equal(bucket_take_some(&c, &odd, 1, BUCKET_TAKE_MAX, SECOND),
	    BUCKET_TAKE_MAX);
	bucket_give(&c, &odd, BUCKET_TAKE_MAX, 0);
	bucket_give(&c, &odd, BUCKET_TAKE_MAX, 0); /* it was emptied */
	assert_in_range(c, 0, SECOND);
}

/* Four processes at once, on one clock that stands still: exactly the burst
 * is taken. */
static void
processes_share_it_exactly(void **state)
{
	struct shared {
		_Atomic uint64_t word, taken, given;
	} *s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct bucket_rate r = bucket_rate(1000, SECOND, 100000);

	(void)state;
	assert_ptr_not_equal(s, MAP_FAILED);
	for (int i = 0; i < 4; i++) {
		if (fork() != 0)
			continue;
		for (int j = 0; j < 60000; j++) {
			if (bucket_take(&s->word, &r, 1, SECOND) != 0)
				continue;
			if (j % 7 == 0)
				bucket_give(&s->word, &r, 1, 0);
			else
				s->taken++;
		}
		_exit(0);
	}
	for (int i = 0; i < 4; i++)
		assert_true(wait(NULL) > 0);
	assert_int_equal(s->taken +
		bucket_take_some(&s->word, &r, 0, BUCKET_TAKE_MAX, SECOND),
	    100000);
	munmap(s, sizeof(*s));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_does_what_the_model_does),
		cmocka_unit_test(a_burst_and_then_the_rate),
		cmocka_unit_test(some_are_taken_exactly),
		cmocka_unit_test(less_than_the_least_is_none),
		cmocka_unit_test(a_new_rate_is_not_held_up_by_an_old_one),
		cmocka_unit_test(extremes_do_not_wrap),
		cmocka_unit_test(processes_share_it_exactly),
	};

	return cmocka_run_group_tests_name("bucket", tests, NULL, NULL);
}
