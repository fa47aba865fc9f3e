/* test_scoreboard.c: rows, held places, healing, latencies; the log ring. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/base/io.h"
#include "proxyd/process/log_ring.h"
#include "proxyd/process/scoreboard.h"

static int
make(void **state)
{
	static struct scoreboard sb;
	struct err e;

	*state = &sb;
	return scoreboard_create(&sb, 4, 32, 64, &e);
}

static int
unmake(void **state)
{
	scoreboard_unmap(*state);
	return 0;
}

static void
rows_are_found_again(void **state)
{
	struct scoreboard *sb = *state;
	uint32_t rows[32], slot = sb_slot_take(sb, 100, 0);

	for (int i = 0; i < 32; i++)
		rows[i] = sb_target_row(sb, i / 4 + 1, i % 4 + 1);
	for (int i = 0; i < 32; i++)
		assert_int_equal(sb_target_row(sb, i / 4 + 1, i % 4 + 1),
		    rows[i]);
	assert_int_equal(sb_target_row(sb, 99, 99), SB_NONE);

	sb_hold(sb_target(sb, rows[3])->active, slot);
	assert_false(sb_target_forget(sb, rows[3]));
	sb_release(sb_target(sb, rows[3])->active, slot);
	sb_target(sb, rows[3])->total = 5;
	assert_true(sb_target_forget(sb, rows[3]));
	assert_int_equal(sb_target_row(sb, 99, 99), rows[3]);
	assert_int_equal(sb_target(sb, rows[3])->total, 0);
	for (int i = 4; i < 32; i++)
		assert_int_equal(sb_target_row(sb, i / 4 + 1, i % 4 + 1),
		    rows[i]);
}

static void
rows_come_and_go(void **state)
{
	struct scoreboard *sb = *state;

	for (int64_t i = 1; i < 5000; i++) {
		uint32_t row = sb_account_row(sb, SB_SITE, i);

		assert_int_not_equal(row, SB_NONE);
		if (i > 40) /* forty are there at a time */
			assert_true(sb_account_forget(sb,
			    sb_account_row(sb, SB_SITE, i - 40)));
		for (int64_t j = i > 40 ? i - 39 : 1; j <= i; j++)
			assert_int_equal(sb_account(sb,
					     sb_account_row(sb, SB_SITE, j))
					     ->id,
			    j);
		assert_in_range(sb->head->used_accounts, 1, 41);
	}
}

static void
sites_and_owners_differ(void **state)
{
	struct scoreboard *sb = *state;
	uint32_t site = sb_account_row(sb, SB_SITE, 1);
	uint32_t owner = sb_account_row(sb, SB_OWNER, 1);

	assert_int_not_equal(site, owner);
	assert_int_equal(sb_account_row(sb, SB_SITE, 1), site);
	assert_int_equal(sb_account(sb, owner)->kind, SB_OWNER);
}

static void
a_dead_worker_gives_back(void **state)
{
	struct scoreboard *sb = *state;
	uint32_t a = sb_slot_take(sb, 100, 0), b = sb_slot_take(sb, 101, 0);
	struct sb_target *t = sb_target(sb, sb_target_row(sb, 1, 1));

	sb_hold(t->active, a);
	sb_hold(t->active, a);
	sb_hold(t->active, b);
	assert_int_equal(sb_active(sb, t->active), 3);
	sb_slot_heal(sb, a);
	assert_int_equal(sb_active(sb, t->active), 1);
	assert_int_equal(sb_slot_take(sb, 102, 0), a);
	assert_int_equal(sb_worker(sb, a)->pid, 102);
	sb_slot_heal(sb, a);
	sb_slot_heal(sb, b);
}

static void
a_bound_is_kept_over_workers(void **state)
{
	struct scoreboard *sb = *state;
	uint32_t a = sb_slot_take(sb, 100, 0), b = sb_slot_take(sb, 101, 0);
	struct sb_target *t = sb_target(sb, sb_target_row(sb, 1, 1));

	assert_true(sb_hold_below(sb, t->active, a, 2));
	assert_true(sb_hold_below(sb, t->active, b, 2));
	assert_false(sb_hold_below(sb, t->active, a, 2));
	assert_true(sb_hold_below(sb, t->active, a, 0));
	assert_int_equal(sb_active(sb, t->active), 3);
}

static void
slots_run_out(void **state)
{
	struct scoreboard *sb = *state;

	for (int i = 0; i < 4; i++)
		assert_int_equal(sb_slot_take(sb, i + 1, 0), i);
	assert_int_equal(sb_slot_take(sb, 9, 0), SB_NONE);
}

static void
another_process_maps_it(void **state)
{
	struct scoreboard *sb = *state, other;
	struct err e;

	sb_target_row(sb, 1, 1);
	assert_int_equal(scoreboard_map(&other, dup(sb->fd), &e), 0);
	sb_add(&sb_target(sb, 0)->total, 3);
	assert_int_equal(sb_target(&other, 0)->total, 3);
	sb->head->version++;
	scoreboard_unmap(&other);
	assert_int_equal(scoreboard_map(&other, dup(sb->fd), &e), -1);
	assert_int_equal(e.code, ERR_VERSION);
	sb->head->version--;
}

static void
latencies(void **state)
{
	struct scoreboard *sb = *state;
	struct sb_target *t = sb_target(sb, sb_target_row(sb, 1, 1));
	uint64_t counts[SB_LATENCY_STEPS];

	for (int i = 0; i < 98; i++)
		sb_latency(t, 1000);
	sb_latency(t, 100000);
	sb_latency(t, 1ULL << 50);
	for (int i = 0; i < SB_LATENCY_STEPS; i++)
		counts[i] = t->steps[i];
	/* A quarter of an octave: at most 25 % above. */
	assert_in_range(sb_percentile(counts, 50), 1000, 1250);
	assert_in_range(sb_percentile(counts, 99), 100000, 125000);
	assert_true(sb_percentile(counts, 100) > 100000000);
	memset(counts, 0, sizeof(counts));
	assert_int_equal(sb_percentile(counts, 99), 0);
	for (uint64_t us = 1; us < 1ULL << 27; us += us / 3 + 1) {
		struct sb_target *one;

		assert_true(sb_target_forget(sb, 0));
		one = sb_target(sb, sb_target_row(sb, 1, 1));
		sb_latency(one, us);
		for (int i = 0; i < SB_LATENCY_STEPS; i++)
			counts[i] = one->steps[i];
		assert_true(sb_percentile(counts, 50) >= us);
		if (us > 16)
			assert_true(sb_percentile(counts, 50) <= us + us / 4);
	}
}

static void
log_ring(void **state)
{
	struct log_ring w, r;
	struct err e;
	const char *got;
	char *room, line[300];
	size_t size, lines = 0;

	(void)state;
	assert_int_equal(log_ring_create(&w, -1, &e), 0);
	assert_int_equal(log_ring_map(&r, dup(w.fd), -1, &e), 0);
	memset(line, 'x', sizeof(line));
	line[sizeof(line) - 1] = '\n';
	for (int round = 0; round < 3; round++) {
		while ((room = log_ring_room(&w, sizeof(line))) != NULL) {
			memcpy(room, line, sizeof(line));
			log_ring_put(&w, sizeof(line));
			lines++;
		}
		got = log_ring_get(&r, &size);
		assert_int_equal(size, lines * sizeof(line));
		for (size_t i = 0; i < lines; i++)
			assert_memory_equal(got + i * sizeof(line), line,
			    sizeof(line));
		log_ring_taken(&r, size);
		lines = 0;
	}
	log_ring_unmap(&w);
	log_ring_unmap(&r);
}

/* One who gives a connection up for each who asks, whoever they are. */
static void
pleas(void **state)
{
	struct scoreboard sb;
	struct sb_target *t;
	struct err e;

	(void)state;
	assert_int_equal(scoreboard_create(&sb, 4, 8, 8, &e), 0);
	t = sb_target(&sb, sb_target_row(&sb, 1, 2));
	assert_false(sb_hear(t));
	sb_plead(t);
	sb_plead(t);
	assert_true(sb_hear(t));
	assert_true(sb_hear(t));
	assert_false(sb_hear(t));

	/* An open connection keeps the row, and dies with its worker. */
	assert_int_equal(sb_slot_take(&sb, 100, 0), 0);
	sb_hold(sb_conns(&sb, t), 0);
	assert_int_equal(sb_active(&sb, t->active), 0);
	assert_false(sb_target_forget(&sb, sb_target_row(&sb, 1, 2)));
	sb_slot_heal(&sb, 0);
	assert_int_equal(sb_active(&sb, sb_conns(&sb, t)), 0);
	assert_true(sb_target_forget(&sb, sb_target_row(&sb, 1, 2)));
	scoreboard_unmap(&sb);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define SB(test) cmocka_unit_test_setup_teardown(test, make, unmake)
		SB(rows_are_found_again),
		SB(rows_come_and_go),
		SB(sites_and_owners_differ),
		SB(a_dead_worker_gives_back),
		SB(a_bound_is_kept_over_workers),
		SB(slots_run_out),
		SB(another_process_maps_it),
		SB(latencies),
		cmocka_unit_test(log_ring),
		cmocka_unit_test(pleas),
	};

	return cmocka_run_group_tests_name("scoreboard", tests, NULL, NULL);
}
