/* test_balance.c: which node is picked, without a socket or a clock. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "proxyd/balance/balance.h"
#include "proxyd/process/snapshot_plan.h"

#define NODES 4

struct world {
	struct scoreboard sb;
	struct balance *b;
	struct snapshot *snap;
	struct balance_ask ask;
	struct plan_role role;
	struct snap_node nodes[NODES];
	struct balance_answer last;
};

static struct world w;

static void
build(void)
{
	struct err e;
	struct snapshot_plan *p = plan_new(1, &e);
	uint32_t role;
	int fd;

	assert_int_equal(plan_role(p, &w.role, &role, &e), 0);
	for (uint32_t i = 0; i < NODES; i++) {
		char name[8];
		struct plan_node n = { .name = name, .n = w.nodes[i] };

		snprintf(name, sizeof(name), "n%u", i);
		n.n.id = i + 1;
		n.n.target = sb_target_row(&w.sb, i + 1, 1);
		assert_int_equal(plan_node(p, role, &n, &e), 0);
	}
	assert_int_equal(plan_write(p, &fd, &e), 0);
	plan_free(p);
	snapshot_release(w.snap);
	w.snap = snapshot_map(fd, &e);
	close(fd);
	w.ask.snap = w.snap;
	w.ask.role = snapshot_role(w.snap, 0);
}

static int
start(void **state)
{
	struct err e;

	(void)state;
	memset(&w, 0, sizeof(w));
	assert_int_equal(scoreboard_create(&w.sb, 2, 16, 16, &e), 0);
	sb_slot_take(&w.sb, 1, 0);
	w.b = balance_new(&w.sb, 0, &e);
	w.role.name = "r";
	for (int i = 0; i < NODES; i++)
		w.nodes[i].weight = 100;
	w.ask.now_ms = 1000000;
	w.ask.sticky = SNAP_NONE;
	build();
	return 0;
}

static int
stop(void **state)
{
	(void)state;
	balance_free(w.b);
	snapshot_release(w.snap);
	scoreboard_unmap(&w.sb);
	return 0;
}

static uint32_t
pick(void)
{
	balance_pick(w.b, &w.ask, &w.last);
	return w.last.action == BALANCE_NODE ? w.last.node : SNAP_NONE;
}

static void
end(uint32_t node, enum balance_end how)
{
	balance_end(w.b, w.snap, 0, node, how,
	    how == BALANCE_FAILED ? WHY_CONNECT_REFUSED : WHY_NONE,
	    w.ask.now_ms);
}

static struct sb_target *
target(uint32_t node)
{
	return sb_target(&w.sb, snapshot_node(w.snap, node)->target);
}

static void
least_conn(void **state)
{
	uint32_t got[NODES] = { 0 };

	(void)state;
	for (int i = 0; i < 40; i++)
		got[pick()]++;
	for (int i = 0; i < NODES; i++)
		assert_int_equal(got[i], 10);
	end(2, BALANCE_OK);
	assert_int_equal(pick(), 2);
}

static void
least_conn_by_weight(void **state)
{
	uint32_t got[NODES] = { 0 };

	(void)state;
	w.nodes[0].weight = 300;
	build();
	for (int i = 0; i < 60; i++)
		got[pick()]++;
	assert_in_range(got[0], 29, 31);
	assert_in_range(got[1], 9, 11);
}

static void
idle_ties_go_round(void **state)
{
	uint32_t got[NODES] = { 0 };

	(void)state;
	for (int i = 0; i < 40; i++) {
		uint32_t n = pick();

		got[n]++;
		end(n, BALANCE_OK);
	}
	for (int i = 0; i < NODES; i++)
		assert_int_equal(got[i], 10);
}

static void
round_robin_is_smooth(void **state)
{
	uint32_t got[NODES] = { 0 }, runs = 0, before = 9;

	(void)state;
	w.role.r.balance = SNAP_ROUND_ROBIN;
	w.nodes[0].weight = 300;
	build();
	for (size_t i = 0; i < 60; i++) {
		uint32_t n = pick();

		got[n]++;
		runs += n == before;
		before = n;
	}
	assert_int_equal(got[0], 30);
	assert_int_equal(got[1], 10);
	assert_int_equal(got[3], 10);
	/* Half of all, and hardly ever twice in a row. */
	assert_true(runs <= 60 / 6);
}

static void
hashes_stay(void **state)
{
	uint32_t before[200], moved = 0, got[NODES] = { 0 };

	(void)state;
	w.role.r.balance = SNAP_HASH_IP;
	build();
	for (uint32_t i = 0; i < 200; i++) {
		w.ask.key = balance_hash(&i, sizeof(i));
		before[i] = pick();
		got[before[i]]++;
		assert_int_equal(pick(), before[i]);
	}
	for (int i = 0; i < NODES; i++)
		assert_in_range(got[i], 30, 70);
	target(1)->health = SB_DOWN; /* only its own keys move */
	for (uint32_t i = 0; i < 200; i++) {
		uint32_t now;

		w.ask.key = balance_hash(&i, sizeof(i));
		now = pick();
		assert_int_not_equal(now, 1);
		if (before[i] != 1)
			assert_int_equal(now, before[i]);
		moved += now != before[i];
	}
	assert_int_equal(moved, got[1]);
}

static void
sticky(void **state)
{
	(void)state;
	w.role.r.balance = SNAP_STICKY;
	build();
	w.ask.sticky = 2;
	for (int i = 0; i < 10; i++)
		assert_int_equal(pick(), 2);
	w.nodes[2].state = SNAP_NODE_DRAIN; /* keeps its own */
	build();
	assert_int_equal(pick(), 2);
	w.ask.sticky = SNAP_NONE; /* gets no new ones */
	for (int i = 0; i < 10; i++)
		assert_int_not_equal(pick(), 2);
	w.ask.sticky = 2;
	w.nodes[2].state = SNAP_NODE_MAINTENANCE;
	build();
	assert_int_not_equal(pick(), 2);
	w.ask.sticky = 1;
	target(1)->health = SB_DOWN;
	assert_int_not_equal(pick(), 1);
}

static void
bounds_are_kept(void **state)
{
	(void)state;
	for (int i = 0; i < NODES; i++)
		w.nodes[i].maxconn = 2;
	build();
	for (int i = 0; i < NODES * 2; i++)
		assert_int_not_equal(pick(), SNAP_NONE);
	assert_int_equal(pick(), SNAP_NONE);
	assert_int_equal(w.last.action, BALANCE_WAIT);
	assert_int_equal(w.last.why, WHY_NODE_FULL);
	for (uint32_t i = 0; i < NODES; i++)
		assert_int_equal(sb_active(&w.sb, target(i)->active), 2);
	end(3, BALANCE_OK);
	assert_int_equal(pick(), 3);
}

static void
full_hash_goes_to_the_next(void **state)
{
	uint32_t first, second;

	(void)state;
	w.role.r.balance = SNAP_HASH_URI;
	for (int i = 0; i < NODES; i++)
		w.nodes[i].maxconn = 1;
	build();
	w.ask.key = 12345;
	first = pick();
	second = pick();
	assert_int_not_equal(first, second);
	end(first, BALANCE_OK);
	assert_int_equal(pick(), first);
}

static void
tried_nodes_are_not_tried_again(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < NODES; i++) {
		uint32_t n = pick();

		assert_int_not_equal(n, SNAP_NONE);
		for (uint32_t j = 0; j < w.ask.n_tried; j++)
			assert_int_not_equal(n, w.ask.tried[j]);
		w.ask.tried[w.ask.n_tried++] = n;
	}
	assert_int_equal(pick(), SNAP_NONE);
	assert_int_equal(w.last.action, BALANCE_NONE);
}

static void
states_of_nodes(void **state)
{
	(void)state;
	w.nodes[0].state = SNAP_NODE_DRAIN;
	w.nodes[1].state = SNAP_NODE_MAINTENANCE;
	w.nodes[2].weight = 0;
	build();
	for (int i = 0; i < 5; i++)
		assert_int_equal(pick(), 3);
	assert_int_equal(w.last.why, WHY_ADMIN_DRAIN);
	/* The last one is down: it is tried all the same. */
	target(3)->health = SB_DOWN;
	target(3)->why = WHY_CHECK_CONNECT;
	assert_int_equal(pick(), 3);
	/* But never one the administrator took away. */
	w.nodes[3].state = SNAP_NODE_MAINTENANCE;
	build();
	assert_int_equal(pick(), SNAP_NONE);
	assert_int_equal(w.last.action, BALANCE_NONE);
}

static void
failures_eject_for_longer_and_longer(void **state)
{
	int64_t last = 0;

	(void)state;
	for (int times = 0; times < 10; times++) {
		int64_t ms;

		for (int i = 0; i < 5; i++) {
			assert_int_equal(target(1)->ejected_ms > w.ask.now_ms,
			    false);
			sb_hold(target(1)->active, 0);
			end(1, BALANCE_FAILED);
		}
		ms = target(1)->ejected_ms - w.ask.now_ms;
		assert_true(ms > last || ms == 300000);
		last = ms;
		for (int i = 0; i < 8; i++)
			assert_int_not_equal(pick(), 1);
		w.ask.now_ms += ms;
	}
	assert_int_equal(last, 300000);
	sb_hold(target(1)->active, 0);
	end(1, BALANCE_OK); /* one success, and it starts anew */
	assert_int_equal(target(1)->ejections, 0);
}

static void
the_last_node_is_never_ejected(void **state)
{
	(void)state;
	for (int i = 1; i < NODES; i++)
		w.nodes[i].state = SNAP_NODE_MAINTENANCE;
	build();
	for (int i = 0; i < 20; i++) {
		assert_int_equal(pick(), 0);
		end(0, BALANCE_FAILED);
	}
	assert_int_equal(target(0)->ejected_ms, 0);
	assert_int_equal(target(0)->why, WHY_LAST_NODE);
}

static void
slow_start(void **state)
{
	uint32_t last = 0;

	(void)state;
	w.role.r.slow_start_ms = 10000;
	build();
	target(0)->up_ms = w.ask.now_ms;
	for (int i = 0; i <= 10; i++) {
		uint32_t weight =
		    balance_weight(w.ask.role, snapshot_node(w.snap, 0),
			target(0), w.ask.now_ms + i * 1000);

		assert_true(weight > last);
		last = weight;
		if (i == 0)
			assert_int_equal(weight, 1000);
	}
	assert_int_equal(last, 10000);
}

static void
retries_have_a_budget(void **state)
{
	int spent = 0;

	(void)state;
	while (balance_retry(w.b, w.snap))
		spent++;
	assert_int_equal(spent, 1000);
	for (int i = 0; i < 100; i++)
		balance_request(w.b, w.snap);
	for (spent = 0; balance_retry(w.b, w.snap);)
		spent++;
	assert_int_equal(spent, 10); /* 10 % of 100 */
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define T(test) cmocka_unit_test_setup_teardown(test, start, stop)
		T(least_conn),
		T(least_conn_by_weight),
		T(idle_ties_go_round),
		T(round_robin_is_smooth),
		T(hashes_stay),
		T(sticky),
		T(bounds_are_kept),
		T(full_hash_goes_to_the_next),
		T(tried_nodes_are_not_tried_again),
		T(states_of_nodes),
		T(failures_eject_for_longer_and_longer),
		T(the_last_node_is_never_ejected),
		T(slow_start),
		T(retries_have_a_budget),
	};

	return cmocka_run_group_tests_name("balance", tests, NULL, NULL);
}
