/*
 * test_limits.c: the table of clients (who shares a row, who is evicted, what
 * a crash leaves) and the limits of a site as the follower sets them.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/io.h"
#include "common/registry/sites.h"
#include "proxyd/limits/clients.h"
#include "proxyd/limits/site_limits.h"
#include "proxyd/process/scoreboard.h"

static struct scoreboard sb;
static uint32_t slot, other;

static int
make(void **state)
{
	struct err e;

	(void)state;
	if (scoreboard_create(&sb, 4, 8, 16, &e) == -1)
		return -1;
	slot = sb_slot_take(&sb, 100, 0);
	other = sb_slot_take(&sb, 101, 0);
	return 0;
}

static int
unmake(void **state)
{
	(void)state;
	scoreboard_unmap(&sb);
	return 0;
}

static uint64_t
key(int64_t site, const char *text)
{
	struct addr a;
	struct err e;

	assert_int_equal(addr_parse(text, 0, &a, &e), 0);
	return client_key(&sb, site, &a);
}

static uint64_t
nth_key(unsigned n)
{
	char text[64];

	snprintf(text, sizeof(text), "10.%u.%u.%u", n >> 16, n >> 8 & 255,
	    n & 255);
	return key(1, text);
}

/* --- who is who */

static void
addresses_are_clients(void **state)
{
	struct addr local = { .u.sa.sa_family = AF_UNIX };

	(void)state;
	assert_int_equal(key(1, "192.0.2.1"), key(1, "192.0.2.1"));
	assert_int_equal(key(1, "192.0.2.1"), key(1, "192.0.2.1:80"));
	assert_int_equal(key(1, "192.0.2.1"), key(1, "::ffff:192.0.2.1"));
	assert_int_not_equal(key(1, "192.0.2.1"), key(1, "192.0.2.2"));
	assert_int_not_equal(key(1, "::ffff:192.0.2.1"),
	    key(1, "::ffff:192.0.2.2"));
	assert_int_not_equal(key(1, "192.0.2.1"), key(2, "192.0.2.1"));
	assert_int_equal(key(1, "2001:db8::1"), key(1, "2001:db8::ffff:1"));
	assert_int_not_equal(key(1, "2001:db8::1"), key(1, "2001:db8:0:1::1"));
	assert_int_equal(client_key(&sb, 1, &local), 0);
}

static void
every_board_has_its_own_secret(void **state)
{
	uint64_t here = key(1, "192.0.2.1"), there;
	struct scoreboard kept = sb;
	struct err e;

	(void)state;
	assert_int_equal(scoreboard_create(&sb, 4, 8, 16, &e), 0);
	there = key(1, "192.0.2.1");
	scoreboard_unmap(&sb);
	sb = kept;
	assert_int_not_equal(here, there);
}

/* --- places */

static void
places_are_counted_over_workers(void **state)
{
	uint64_t k = key(1, "192.0.2.1");
	uint32_t a, b, c;

	(void)state;
	assert_true(client_hold(&sb, slot, k, 2, &a));
	assert_true(client_hold(&sb, other, k, 2, &b));
	assert_int_equal(a, b);
	assert_false(client_hold(&sb, slot, k, 2, &c));
	assert_false(client_hold(&sb, other, k, 2, &c));
	assert_true(client_hold(&sb, slot, key(1, "192.0.2.2"), 2, &c));
	assert_int_not_equal(a, c);
	assert_int_equal(client_held(&sb, a), 2);
	client_release(&sb, slot, a);
	assert_true(client_hold(&sb, other, k, 2, &b));
	assert_int_equal(client_held(&sb, a), 2);
}

static void
what_a_worker_held_is_free_after_it(void **state)
{
	uint64_t k = key(1, "192.0.2.1");
	uint32_t row;

	(void)state;
	assert_true(client_hold(&sb, slot, k, 3, &row));
	assert_true(client_hold(&sb, slot, k, 3, &row));
	assert_true(client_hold(&sb, other, k, 3, &row));
	client_row(&sb, row)->requests = 77;
	sb_hold(sb_limit_cell(&sb, slot, 5), 0);
	sb_hold(sb_limit_cell(&sb, other, 5), 0);
	sb.head->used_accounts = 6;

	sb_slot_heal(&sb, slot);
	assert_int_equal(client_held(&sb, row), 1);
	assert_int_equal(sb_limit_used(&sb, 5), 1);
	/* A crash buys nobody new tokens. */
	assert_int_equal(client_row(&sb, row)->requests, 77);
	assert_int_equal(client_row(&sb, row)->key, k);
}

/* It died between the mark and the new key. */
static void
a_row_is_not_lost_with_a_worker(void **state)
{
	uint64_t k = key(1, "192.0.2.1");
	uint32_t row;

	(void)state;
	assert_true(client_hold(&sb, slot, k, 0, &row));
	client_release(&sb, slot, row);
	client_row(&sb, row)->key = slot + 1;
	sb_worker(&sb, slot)->client_changed = row + 1;
	sb_slot_heal(&sb, slot);
	assert_int_equal(client_row(&sb, row)->key, 0);
	assert_int_equal(sb_slot_take(&sb, 102, 0), slot);
	assert_int_equal(sb_worker(&sb, slot)->client_changed, 0);
}

/* Another one's row, which it only looked at, is left alone. */
static void
another_workers_row_is_left_alone(void **state)
{
	(void)state;
	client_row(&sb, 9)->key = other + 1;
	sb_worker(&sb, slot)->client_changed = 10;
	sb_slot_heal(&sb, slot);
	assert_int_equal(client_row(&sb, 9)->key, other + 1);
}

/* --- who has to go */

/* Keys that share a set; the table's first row of it in *first. */
static void
crowd(uint64_t *keys, unsigned n)
{
	uint32_t set = UINT32_MAX, row;
	unsigned found = 0;

	for (unsigned i = 0; found < n; i++) {
		uint64_t k = nth_key(i);

		assert_true(client_hold(&sb, slot, k, 0, &row));
		client_release(&sb, slot, row);
		client_row(&sb, row)->key = 0; /* as if it had never come */
		if (set == UINT32_MAX)
			set = row / CLIENT_WAYS;
		if (row / CLIENT_WAYS == set)
			keys[found++] = k;
	}
}

static void
who_says_least_is_evicted(void **state)
{
	uint64_t keys[CLIENT_WAYS + 1];
	uint32_t rows[CLIENT_WAYS + 1];

	(void)state;
	crowd(keys, CLIENT_WAYS + 1);
	for (unsigned i = 0; i < CLIENT_WAYS; i++) {
		assert_true(client_hold(&sb, slot, keys[i], 0, &rows[i]));
		client_row(&sb, rows[i])->requests = 1000 + i;
		client_row(&sb, rows[i])->bandwidth = 5;
	}
	client_row(&sb, rows[1])->bandwidth = 5000;
	/* All but the first, which is in use, and the last three. */
	for (unsigned i = 1; i < CLIENT_WAYS - 3; i++)
		client_release(&sb, slot, rows[i]);
	assert_true(
	    client_hold(&sb, slot, keys[CLIENT_WAYS], 0, &rows[CLIENT_WAYS]));
	assert_int_equal(rows[CLIENT_WAYS], rows[2]);
	assert_int_equal(client_row(&sb, rows[2])->requests, 0);
	assert_int_equal(client_row(&sb, rows[2])->bandwidth, 0);
	/* The others are where they were. */
	assert_int_equal(client_row(&sb, rows[0])->requests, 1000);
	assert_int_equal(client_row(&sb, rows[1])->requests, 1001);
}

static void
where_all_are_in_use_nobody_is_counted(void **state)
{
	uint64_t keys[CLIENT_WAYS + 1];
	uint32_t row, rows[CLIENT_WAYS];

	(void)state;
	crowd(keys, CLIENT_WAYS + 1);
	for (unsigned i = 0; i < CLIENT_WAYS; i++)
		assert_true(client_hold(&sb, slot, keys[i], 1, &rows[i]));
	assert_true(client_hold(&sb, slot, keys[CLIENT_WAYS], 1, &row));
	assert_int_equal(row, CLIENT_NONE);
	assert_int_equal(sb_worker(&sb, slot)->uncounted, 1);
	client_release(&sb, slot, row);
	client_release(&sb, slot, rows[3]);
	assert_true(client_hold(&sb, slot, keys[CLIENT_WAYS], 1, &row));
	assert_int_equal(row, rows[3]);
}

/* Many more clients than there are rows come by; whoever stays is known. */
static void
memory_is_bounded(void **state)
{
	uint64_t stays = key(7, "192.0.2.1");
	uint32_t row, mine;

	(void)state;
	assert_true(client_hold(&sb, slot, stays, 1, &mine));
	for (unsigned i = 0; i < 3 * CLIENT_ROWS; i++) {
		assert_true(client_hold(&sb, slot, nth_key(i), 0, &row));
		assert_in_range(row, 0, CLIENT_ROWS - 1);
		client_row(&sb, row)->requests = i;
		client_release(&sb, slot, row);
	}
	assert_false(client_hold(&sb, other, stays, 1, &row));
	assert_int_equal(sb_worker(&sb, slot)->uncounted, 0);
}

/* Four processes, a small crowd of clients, no more than a few each: a bound
 * is never passed, and nothing is left held. */
static void
workers_share_the_table(void **state)
{
	enum { WORKERS = 4, CLIENTS = 2000, MOST = 2 };
	_Atomic uint64_t *over = &sb_account(&sb, 0)->requests;

	(void)state;
	sb_slot_take(&sb, 102, 0);
	sb_slot_take(&sb, 103, 0);
	for (uint32_t w = 0; w < WORKERS; w++) {
		if (fork() != 0)
			continue;
		for (unsigned i = 0; i < 50000; i++) {
			uint32_t row;

			if (!client_hold(&sb, w, nth_key(i * 7919 % CLIENTS),
				MOST, &row))
				continue;
			/* Refused ones are there for a moment, too. */
			if (client_held(&sb, row) > MOST + WORKERS)
				sb_add(over, 1);
			client_release(&sb, w, row);
		}
		_exit(0);
	}
	for (int i = 0; i < WORKERS; i++)
		assert_true(wait(NULL) > 0);
	assert_int_equal(*over, 0);
	for (uint32_t row = 0; row < CLIENT_ROWS; row++) {
		uint64_t k = client_row(&sb, row)->key;

		assert_int_equal(client_held(&sb, row), 0);
		assert_true(k == 0 || k >= 4096);
	}
}

/* --- a site's */

static struct site
limited(const char *option, const char *value)
{
	struct site s;
	struct err e;

	site_init(&s, "a.example");
	if (option != NULL)
		assert_int_equal(option_set(&site_options, &s, option, value,
				     &e),
		    0);
	return s;
}

static void
limits_are_set_and_gone(void **state)
{
	static const struct {
		const char *option, *value;
		enum limit limit;
		uint64_t n; /* at once */
	} cases[] = {
		{ "requests", "10/s", LIMIT_REQUESTS, 10 },
		{ "requests", "600/m,burst=3", LIMIT_REQUESTS, 3 },
		{ "client_requests", "7/h", LIMIT_CLIENT_REQUESTS, 7 },
		{ "bandwidth", "1M/s", LIMIT_BANDWIDTH, 104857 },
		{ "bandwidth", "10K/s", LIMIT_BANDWIDTH, 65536 },
		{ "client_bandwidth", "10K/s,burst=1K", LIMIT_CLIENT_BANDWIDTH,
		    1024 },
	};
	uint32_t row = sb_account_row(&sb, SB_SITE, 1);
	struct site_limits *l = sb_limits(&sb, row);
	_Atomic uint32_t *on = &sb_account(&sb, row)->limits;

	(void)state;
	for (size_t i = 0; i < nitems(cases); i++) {
		struct site s = limited(cases[i].option, cases[i].value);
		struct bucket_rate r;
		_Atomic uint64_t bucket = 0;

		site_limits_set(&sb, row, &s);
		assert_int_equal(*on, LIMIT_BIT(cases[i].limit));
		r = site_limits_rate(l, cases[i].limit);
		assert_in_range(bucket_take_some(&bucket, &r, 0,
				    BUCKET_TAKE_MAX, 1000000000),
		    cases[i].n - 1, cases[i].n);
	}
	struct site s = limited("client_connections", "5");

	site_limits_set(&sb, row, &s);
	assert_int_equal(*on, LIMIT_BIT(LIMIT_CLIENT_CONNECTIONS));
	assert_int_equal(site_limits_most(l, LIMIT_CLIENT_CONNECTIONS), 5);
	assert_int_equal(site_limits_most(l, LIMIT_CONNECTIONS), 0);
	s = limited(NULL, NULL);
	site_limits_set(&sb, row, &s);
	assert_int_equal(*on, 0);
}

static void
what_was_used_up_survives_a_change(void **state)
{
	uint32_t row = sb_account_row(&sb, SB_SITE, 1);
	struct site_limits *l = sb_limits(&sb, row);
	struct site s = limited("requests", "10/s");

	(void)state;
	site_limits_set(&sb, row, &s);
	l->buckets[LIMIT_REQUESTS] = 5;
	l->hits[LIMIT_REQUESTS] = 6;
	s = limited("requests", "20/s");
	site_limits_set(&sb, row, &s);
	assert_int_equal(l->buckets[LIMIT_REQUESTS], 5);
	assert_int_equal(l->hits[LIMIT_REQUESTS], 6);
	/* Another site with the same row begins anew. */
	assert_true(sb_account_forget(&sb, row));
	assert_int_equal(sb_account_row(&sb, SB_SITE, 2), row);
	assert_int_equal(sb_account(&sb, row)->limits, 0);
	site_limits_set(&sb, row, &s);
	assert_int_equal(l->buckets[LIMIT_REQUESTS], 0);
	assert_int_equal(l->hits[LIMIT_REQUESTS], 0);
}

static void
a_row_in_use_is_not_given_away(void **state)
{
	uint32_t row = sb_account_row(&sb, SB_SITE, 1);
	struct site s = limited("connections", "10");

	(void)state;
	site_limits_set(&sb, row, &s);
	sb_hold(sb_limit_cell(&sb, slot, row), 0);
	assert_false(sb_account_forget(&sb, row));
	sb_release(sb_limit_cell(&sb, slot, row), 0);
	assert_true(sb_account_forget(&sb, row));
}

#define T(test) cmocka_unit_test_setup_teardown(test, make, unmake)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(addresses_are_clients),
		T(every_board_has_its_own_secret),
		T(places_are_counted_over_workers),
		T(what_a_worker_held_is_free_after_it),
		T(a_row_is_not_lost_with_a_worker),
		T(another_workers_row_is_left_alone),
		T(who_says_least_is_evicted),
		T(where_all_are_in_use_nobody_is_counted),
		T(memory_is_bounded),
		T(workers_share_the_table),
		T(limits_are_set_and_gone),
		T(what_was_used_up_survives_a_change),
		T(a_row_in_use_is_not_given_away),
	};

	return cmocka_run_group_tests_name("limits", tests, NULL, NULL);
}
