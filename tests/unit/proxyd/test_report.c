/* test_report.c: what an administrator is told: reports, answers, metrics,
 * rates. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <event2/buffer.h>

#include "common/base/io.h"
#include "proxyd/admin/admin.h"
#include "proxyd/admin/metrics.h"
#include "proxyd/admin/report.h"
#include "proxyd/process/snapshot_plan.h"

#define NOW_MS	100000
#define N_SITES 150

/* One role with three nodes, N_SITES sites of three owners. */
static struct {
	struct scoreboard board;
	struct report report;
	struct notices notices;
	struct rates *rates;
	uint32_t slot, targets[3], role_target;
} w;

static void
add_nodes(struct snapshot_plan *p)
{
	static const char *const names[] = { "n1", "n2", "n3" };
	struct plan_role role = { .name = "worker_http" };
	struct err e;
	uint32_t index;

	role.r.id = 9;
	role.r.target = w.role_target = sb_target_row(&w.board, 0, 9);
	assert_int_equal(plan_role(p, &role, &index, &e), 0);
	for (int i = 0; i < 3; i++) {
		struct plan_node n = { .name = names[i] };

		assert_int_equal(addr_parse("10.0.0.1", 80, &n.n.addr, &e), 0);
		n.n.id = i + 1;
		n.n.weight = 1;
		n.n.target = w.targets[i] = sb_target_row(&w.board, i + 1, 9);
		n.n.state = i == 2 ? SNAP_NODE_DRAIN : SNAP_NODE_UP;
		assert_int_equal(plan_node(p, index, &n, &e), 0);
	}
}

static void
add_sites(struct snapshot_plan *p)
{
	char name[32], owner[32];
	struct err e;
	uint32_t index;

	for (int i = 0; i < N_SITES; i++) {
		struct plan_site s = { .name = name, .owner = owner };

		snprintf(name, sizeof(name), "s%d", i);
		snprintf(owner, sizeof(owner), "o\"%d", i % 3);
		s.s.id = i + 1;
		s.s.account = sb_account_row(&w.board, SB_SITE, i + 1);
		s.s.owner_account =
		    sb_account_row(&w.board, SB_OWNER, i % 3 + 1);
		sb_account(&w.board, s.s.account)->requests = (uint64_t)i;
		sb_account(&w.board, s.s.account)->status[5] = 1;
		sb_add(&sb_account(&w.board, s.s.owner_account)->requests,
		    (uint64_t)i);
		assert_int_equal(plan_site(p, &s, &index, &e), 0);
	}
}

static int
setup(void **state)
{
	struct snapshot_plan *p;
	struct err e;
	int fd;

	(void)state;
	memset(&w, 0, sizeof(w));
	assert_int_equal(scoreboard_create(&w.board, 4, 16, 256, &e), 0);
	w.slot = sb_slot_take(&w.board, (int32_t)getpid(), NOW_MS - 5000);
	sb_worker(&w.board, w.slot)->state = SB_SERVING;
	sb_worker(&w.board, w.slot)->revision = 7;
	sb_worker(&w.board, w.slot)->requests = 33;
	assert_non_null(p = plan_new(7, &e));
	add_nodes(p);
	add_sites(p);
	assert_int_equal(plan_write(p, &fd, &e), 0);
	plan_free(p);
	assert_non_null(w.rates = rates_new(&w.board, &e));
	w.report = (struct report){ .board = &w.board,
		.snapshot = snapshot_map(fd, &e),
		.rates = w.rates,
		.notices = &w.notices,
		.now_ms = NOW_MS };
	close(fd);
	assert_non_null(w.report.snapshot);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	snapshot_release((struct snapshot *)(uintptr_t)w.report.snapshot);
	rates_free(w.rates);
	scoreboard_unmap(&w.board);
	return 0;
}

static json_t *
ask(const char *question)
{
	json_t *q = json_loads(question, 0, NULL), *answer;

	assert_non_null(q);
	answer = admin_answer(&w.report, q);
	assert_non_null(answer);
	json_decref(q);
	return answer;
}

static json_int_t
number(json_t *o, const char *field)
{
	json_t *v = json_object_get(o, field);

	if (!json_is_integer(v))
		fail_msg("%s is no number", field);
	return json_integer_value(v);
}

static const char *
word(json_t *o, const char *field)
{
	json_t *v = json_object_get(o, field);

	if (!json_is_string(v))
		fail_msg("%s is no text", field);
	return json_string_value(v);
}

static void
states_of_nodes(void **state)
{
	struct sb_target *t = sb_target(&w.board, w.targets[0]);
	static const struct {
		uint32_t health;
		int64_t ejected_ms;
		enum why why;
		const char *state, *word;
	} cases[] = {
		{ SB_UNKNOWN, 0, WHY_NONE, "up", "-" },
		{ SB_UP, 0, WHY_CHECK_OK, "up", "check_ok" },
		{ SB_UP, 0, WHY_LAST_NODE, "up", "last_node_kept" },
		{ SB_DOWN, 0, WHY_CHECK_TIMEOUT, "down", "check_timeout" },
		{ SB_UP, NOW_MS + 1, WHY_NODE_RESET, "ejected", "node_reset" },
		{ SB_UP, NOW_MS, WHY_NODE_RESET, "up", "node_reset" },
	};

	(void)state;
	for (size_t i = 0; i < nitems(cases); i++) {
		json_t *a, *row;

		t->health = cases[i].health;
		t->ejected_ms = cases[i].ejected_ms;
		t->why = cases[i].why;
		a = ask("{\"ask\":\"nodes\"}");
		row = json_array_get(json_object_get(a, "nodes"), 0);
		assert_string_equal(word(row, "node"), "n1");
		assert_string_equal(word(row, "state"), cases[i].state);
		assert_string_equal(word(row, "why"), cases[i].word);
		row = json_array_get(json_object_get(a, "nodes"), 2);
		assert_string_equal(word(row, "state"), "drain");
		assert_string_equal(word(row, "why"), "drain");
		json_decref(a);
	}
}

static void
numbers_of_nodes(void **state)
{
	struct sb_target *t = sb_target(&w.board, w.targets[1]);
	json_t *a, *row;

	(void)state;
	t->total = 10;
	t->failed = 2;
	t->retried = 3;
	t->connects = 4;
	t->since_ms = NOW_MS - 1234;
	sb_hold(t->active, w.slot);
	sb_hold(sb_target(&w.board, w.role_target)->active, w.slot);
	for (int i = 0; i < 100; i++)
		sb_latency(t, i < 99 ? 1000 : 50000);
	a = ask("{\"ask\":\"nodes\"}");
	assert_int_equal(json_array_size(json_object_get(a, "nodes")), 3);
	row = json_array_get(json_object_get(a, "nodes"), 1);
	assert_string_equal(word(row, "role"), "worker_http");
	assert_string_equal(word(row, "address"), "10.0.0.1:80");
	assert_int_equal(number(row, "total"), 10);
	assert_int_equal(number(row, "failed"), 2);
	assert_int_equal(number(row, "retried"), 3);
	assert_int_equal(number(row, "connects"), 4);
	assert_int_equal(number(row, "since_ms"), 1234);
	assert_int_equal(number(row, "active"), 1);
	assert_int_equal(number(row, "queued"), 1);
	assert_in_range(number(row, "p99_us"), 1000, 1300);
	assert_in_range(number(row, "latency_us"), 1000, 5000);
	json_decref(a);
}

/* What all workers have; one that drains does not count. */
static void
the_revision_in_force(void **state)
{
	uint32_t other = sb_slot_take(&w.board, 2, 0);
	json_t *a;

	(void)state;
	sb_worker(&w.board, other)->state = SB_DRAINING;
	sb_worker(&w.board, other)->revision = 3;
	a = ask("{\"ask\":\"workers\"}");
	assert_int_equal(number(a, "revision"), 7);
	assert_int_equal(json_array_size(json_object_get(a, "workers")), 2);
	json_decref(a);
	sb_worker(&w.board, other)->state = SB_SERVING;
	a = ask("{\"ask\":\"status\"}");
	assert_int_equal(number(a, "revision"), 3);
	assert_int_equal(number(a, "compiled"), 7);
	json_decref(a);
}

static void
workers(void **state)
{
	json_t *a = ask("{\"ask\":\"workers\"}"), *row;

	(void)state;
	row = json_array_get(json_object_get(a, "workers"), 0);
	assert_int_equal(number(row, "pid"), getpid());
	assert_string_equal(word(row, "state"), "serving");
	assert_int_equal(number(row, "since_ms"), 5000);
	assert_int_equal(number(row, "requests"), 33);
	assert_true(number(row, "rss_kb") > 100);
	assert_true(json_is_real(json_object_get(row, "cpu_s")));
	json_decref(a);
	/* One that is gone is told of without what only it could tell. */
	sb_worker(&w.board, w.slot)->pid = INT32_MAX;
	a = ask("{\"ask\":\"workers\"}");
	row = json_array_get(json_object_get(a, "workers"), 0);
	assert_null(json_object_get(row, "rss_kb"));
	json_decref(a);
}

static void
the_busiest_sites(void **state)
{
	json_t *a = ask("{\"ask\":\"sites\",\"top\":2}"), *rows, *rest;

	(void)state;
	rows = json_object_get(a, "sites");
	assert_int_equal(json_array_size(rows), 2);
	assert_string_equal(word(json_array_get(rows, 0), "site"), "s149");
	assert_string_equal(word(json_array_get(rows, 1), "site"), "s148");
	rest = json_object_get(a, "rest");
	assert_int_equal(number(rest, "requests"), 149 * 150 / 2 - 149 - 148);
	assert_int_equal(number(rest, "s5xx"), N_SITES - 2);
	json_decref(a);
	a = ask("{\"ask\":\"sites\"}");
	assert_int_equal(json_array_size(json_object_get(a, "sites")), N_SITES);
	assert_int_equal(number(json_object_get(a, "rest"), "requests"), 0);
	json_decref(a);
}

static void
owners_are_counted_once(void **state)
{
	json_t *a = ask("{\"ask\":\"sites\",\"owners\":true}"), *rows;
	json_int_t sum = 0;

	(void)state;
	rows = json_object_get(a, "owners");
	assert_int_equal(json_array_size(rows), 3);
	for (size_t i = 0; i < 3; i++)
		sum += number(json_array_get(rows, i), "requests");
	assert_int_equal(sum, 149 * 150 / 2);
	assert_string_equal(word(json_array_get(rows, 0), "owner"), "o\"2");
	json_decref(a);
}

static void
refusals(void **state)
{
	static const char *const bad[] = {
		"{}",
		"{\"ask\":7}",
		"{\"ask\":\"stop\"}",
		"{\"ask\":\"sites\",\"top\":-1}",
		"{\"ask\":\"sites\",\"top\":\"x\"}",
		"{\"ask\":\"sites\",\"owners\":1}",
	};

	(void)state;
	for (size_t i = 0; i < nitems(bad); i++) {
		json_t *a = ask(bad[i]);

		assert_true(json_is_false(json_object_get(a, "ok")));
		assert_true(strlen(word(a, "text")) > 5);
		assert_true(number(a, "code") > 0);
		json_decref(a);
	}
}

static char *
metrics(void)
{
	struct evbuffer *b = evbuffer_new();
	char *text;
	size_t n;
	struct err e;

	assert_int_equal(metrics_write(&w.report, b, &e), 0);
	n = evbuffer_get_length(b);
	assert_non_null(text = malloc(n + 1));
	evbuffer_remove(b, text, n);
	text[n] = '\0';
	evbuffer_free(b);
	return text;
}

static unsigned
count(const char *text, const char *part)
{
	unsigned n = 0;

	while ((text = strstr(text, part)) != NULL) {
		text += strlen(part);
		n++;
	}
	return n;
}

static void
metrics_are_bounded_and_well_formed(void **state)
{
	char *text;

	(void)state;
	sb_target(&w.board, w.targets[0])->total = 1ULL << 52;
	text = metrics();
	assert_int_equal(count(text, "\nmuster_site_requests_total{"),
	    METRICS_SITES + 1);
	assert_int_equal(count(text,
			     "# TYPE muster_site_requests_total counter\n"),
	    1);
	assert_non_null(strstr(text,
	    "muster_site_requests_total{site=\"s149\",owner=\"o\\\"2\"} "
	    "149\n"));
	assert_non_null(strstr(text,
	    "muster_site_requests_total{site=\"other\",owner=\"\"} 1225\n"));
	assert_non_null(strstr(text,
	    "muster_node_requests_total{node=\"n1\",role=\"worker_http\"} "
	    "4503599627370496\n"));
	assert_non_null(strstr(text,
	    "muster_node_up{node=\"n3\",role=\"worker_http\",state=\"drain\"} "
	    "0\n"));
	assert_int_equal(text[strlen(text) - 1], '\n');
	free(text);
}

/* What was a while ago does not show: neither the good nor the bad. */
static void
p99_is_of_the_last_minutes(void **state)
{
	uint32_t row = w.targets[1];
	struct sb_target *t = sb_target(&w.board, row);
	struct rates *successor;
	struct err e;

	(void)state;
	rates_tick(w.rates, 1000);
	assert_int_equal(rates_p99_us(w.rates, row), 0);
	for (int i = 0; i < 1000000; i++)
		sb_latency(t, 1000);
	assert_in_range(rates_p99_us(w.rates, row), 1000, 1300);
	for (int i = 2; i <= 122; i++)
		rates_tick(w.rates, i * 1000);
	assert_int_equal(rates_p99_us(w.rates, row), 0);
	for (int i = 0; i < 10; i++)
		sb_latency(t, 50000);
	assert_in_range(rates_p99_us(w.rates, row), 50000, 65000);
	for (int i = 122; i < 182; i++)
		rates_tick(w.rates, i * 1000);
	assert_in_range(rates_p99_us(w.rates, row), 50000, 65000);
	/* After an upgrade the past is not of the last minutes either. */
	assert_non_null(successor = rates_new(&w.board, &e));
	assert_int_equal(rates_p99_us(successor, row), 0);
	rates_free(successor);
	/* A row of another node, or one that began anew. */
	t->node_id += 100;
	assert_in_range(rates_p99_us(w.rates, row), 1000, 1300);
	t->node_id -= 100;
	for (unsigned i = 0; i < SB_LATENCY_STEPS; i++)
		t->steps[i] = 0;
	sb_latency(t, 2000);
	assert_in_range(rates_p99_us(w.rates, row), 2000, 2600);
}

static void
rates(void **state)
{
	struct sb_target *t = sb_target(&w.board, w.targets[0]);

	(void)state;
	rates_tick(w.rates, 1000);
	assert_true(rates_requests(w.rates, w.targets[0]) == 0);
	for (int i = 2; i < 60; i++) {
		t->total += 100;
		t->connects += 10;
		rates_tick(w.rates, i * 1000);
	}
	assert_true(rates_requests(w.rates, w.targets[0]) > 99.9);
	assert_true(rates_requests(w.rates, w.targets[0]) < 100.1);
	assert_true(rates_connects(w.rates, w.targets[0]) > 9.9);
	for (int i = 60; i < 120; i++)
		rates_tick(w.rates, i * 1000);
	assert_true(rates_requests(w.rates, w.targets[0]) == 0);
	/* A row that changed hands counts from less than before. */
	t->total = 1;
	rates_tick(w.rates, 200000);
	assert_true(rates_requests(w.rates, w.targets[0]) == 0);
}

#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(states_of_nodes),
		T(numbers_of_nodes),
		T(the_revision_in_force),
		T(workers),
		T(the_busiest_sites),
		T(owners_are_counted_once),
		T(refusals),
		T(metrics_are_bounded_and_well_formed),
		T(p99_is_of_the_last_minutes),
		T(rates),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
