/* report.c: see report.h. */
#include "proxyd/admin/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/io.h"
#include "proxyd/admin/report_certs.h"
#include "proxyd/balance/balance.h"
#include "proxyd/limits/site_limits.h"

/* An account with what names it. */
struct ranked {
	const struct snap_site *site;
	uint32_t row;
	uint64_t requests;
};

/* Counters of an account, or of many. */
struct usage {
	uint64_t requests, active, bytes_in, bytes_out, node_us, tunnels;
	uint64_t status[6], limited;
};

static json_t *node_row(const struct report *, const struct snap_role *,
    const struct snap_node *);
static json_t *worker_row(const struct report *, const struct sb_worker *);
static void add_bodies(json_t *, const struct sb_worker *);
static void add_compression(json_t *, const struct sb_worker *);
static void add_tls(json_t *, const struct sb_worker *);
static void add_reason(json_t *, const char *prefix, const char *word,
    uint64_t total);
static void add_usage(json_t *, pid_t);
static json_t *account_row(const struct report *, const struct ranked *,
    bool owner);
static void add_account(const struct report *, const struct ranked *,
    struct usage *);
static json_t *usage_row(const struct usage *);
static size_t collect(const struct report *, struct ranked *, bool owner);
static int by_requests(const void *, const void *);
static int by_row(const void *, const void *);
static const char *text(const struct report *, struct snap_text);

json_t *
report_nodes(const struct report *r)
{
	json_t *out = json_array();

	for (uint32_t i = 0; i < r->snapshot->head->n_roles; i++) {
		const struct snap_role *role = snapshot_role(r->snapshot, i);

		for (uint32_t j = 0; j < role->n_nodes; j++)
			json_array_append_new(out,
			    node_row(r, role,
				snapshot_node(r->snapshot,
				    role->first_node + j)));
	}
	return out;
}

json_t *
report_workers(const struct report *r)
{
	uint32_t n = atomic_load(&r->board->head->used_slots);
	json_t *out = json_array();

	for (uint32_t i = 0; i < n; i++) {
		const struct sb_worker *w = sb_worker(r->board, i);

		if (atomic_load(&w->state) != SB_FREE)
			json_array_append_new(out, worker_row(r, w));
	}
	return out;
}

json_t *
report_reasons(const struct report *r)
{
	uint64_t total[WHY_N] = { 0 }, tls[TLS_FAILURES] = { 0 };
	uint32_t n = atomic_load(&r->board->head->used_slots);
	json_t *out = json_array();

	for (uint32_t i = 0; i < n; i++) {
		const struct sb_worker *w = sb_worker(r->board, i);

		for (int why = 0; why < WHY_N; why++)
			total[why] += atomic_load(&w->why[why]);
		for (int why = 0; why < TLS_FAILURES; why++)
			tls[why] += atomic_load(&w->tls_failed[why]);
	}
	for (int why = WHY_NONE + 1; why < WHY_N; why++)
		add_reason(out, "", why_word((enum why)why), total[why]);
	for (int why = 0; why < TLS_FAILURES; why++)
		add_reason(out, "tls_", tls_failure_word((enum tls_failure)why),
		    tls[why]);
	return out;
}

json_t *
report_sites(const struct report *r, size_t top, bool owners, json_t **rest)
{
	size_t n = r->snapshot->head->n_sites;
	struct ranked *rows = calloc(n + 1, sizeof(*rows));
	struct usage others = { 0 };
	json_t *out = json_array();

	if (rows == NULL) {
		json_decref(out);
		return NULL;
	}
	n = collect(r, rows, owners);
	qsort(rows, n, sizeof(*rows), by_requests);
	if (top == 0 || top > n)
		top = n;
	for (size_t i = 0; i < top; i++)
		json_array_append_new(out, account_row(r, &rows[i], owners));
	if (rest != NULL) {
		for (size_t i = top; i < n; i++)
			add_account(r, &rows[i], &others);
		*rest = usage_row(&others);
	}
	free(rows);
	return out;
}

json_t *
report_limits(const struct report *r, const struct snap_site *site)
{
	static const char *const words[N_LIMITS] = {
		[LIMIT_REQUESTS] = "requests",
		[LIMIT_CONNECTIONS] = "connections",
		[LIMIT_BANDWIDTH] = "bandwidth",
		[LIMIT_CLIENT_REQUESTS] = "client_requests",
		[LIMIT_CLIENT_CONNECTIONS] = "client_connections",
		[LIMIT_CLIENT_BANDWIDTH] = "client_bandwidth",
	};
	bool on = site->account != SB_NONE &&
	    atomic_load(&sb_account(r->board, site->account)->limits) != 0;
	json_t *hits = json_object();

	for (enum limit l = 0; l < N_LIMITS; l++)
		json_object_set_new(hits, words[l],
		    json_integer(on ?
			    (json_int_t)atomic_load(
				&sb_limits(r->board, site->account)->hits[l]) :
			    0));
	return json_pack("{s:I s:o}", "connections",
	    (json_int_t)(on ? sb_limit_used(r->board, site->account) : 0),
	    "hits", hits);
}

int64_t
report_revision(const struct report *r)
{
	uint32_t n = atomic_load(&r->board->head->used_slots);
	int64_t lowest = r->snapshot->head->revision;

	for (uint32_t i = 0; i < n; i++) {
		const struct sb_worker *w = sb_worker(r->board, i);
		int64_t revision = atomic_load(&w->revision);

		if (atomic_load(&w->state) == SB_SERVING && revision < lowest)
			lowest = revision;
	}
	return lowest;
}

const char *
report_state(const struct report *r, const struct snap_node *n, enum why *why)
{
	const struct sb_target *t = sb_target(r->board, n->target);

	if (balance_usable(n, t, r->now_ms, why)) {
		*why = (enum why)atomic_load(&t->why);
		return "up";
	}
	switch (*why) {
	case WHY_ADMIN_DRAIN:
		return "drain";
	case WHY_ADMIN_MAINTENANCE:
		return "maintenance";
	case WHY_EJECTED:
		*why = (enum why)atomic_load(&t->why);
		return "ejected";
	default:
		*why = (enum why)atomic_load(&t->why);
		return "down";
	}
}

static json_t *
node_row(const struct report *r, const struct snap_role *role,
    const struct snap_node *n)
{
	struct sb_target *t = sb_target(r->board, n->target);
	struct sb_target *queue = sb_target(r->board, role->target);
	int64_t since = atomic_load(&t->since_ms);
	char addr[ADDR_PLACE_MAX];
	const char *state;
	enum why why;

	if (n->path.len > 0)
		snprintf(addr, sizeof(addr), "unix:%s", text(r, n->path));
	else
		addr_format(&n->addr, addr);
	state = report_state(r, n, &why);
	return json_pack("{s:s s:s s:s s:s s:s s:I s:I s:I s:I s:I s:I s:I "
			 "s:f s:f s:I s:I s:I s:I s:I s:I}",
	    "node", text(r, n->name), "role", text(r, role->name), "address",
	    addr, "state", state, "why", why_word(why), "since_ms",
	    (json_int_t)(since != 0 ? r->now_ms - since : 0), "active",
	    (json_int_t)sb_active(r->board, t->active), "queued",
	    (json_int_t)sb_active(r->board, queue->active), "total",
	    (json_int_t)atomic_load(&t->total), "failed",
	    (json_int_t)atomic_load(&t->failed), "retried",
	    (json_int_t)atomic_load(&t->retried), "connects",
	    (json_int_t)atomic_load(&t->connects), "requests_s",
	    rates_requests(r->rates, n->target), "connects_s",
	    rates_connects(r->rates, n->target), "latency_us",
	    (json_int_t)atomic_load(&t->average_us), "p99_us",
	    (json_int_t)rates_p99_us(r->rates, n->target), "bytes_in",
	    (json_int_t)atomic_load(&t->bytes_in), "bytes_out",
	    (json_int_t)atomic_load(&t->bytes_out), "weight",
	    (json_int_t)n->weight, "maxconn", (json_int_t)n->maxconn);
}

static json_t *
worker_row(const struct report *r, const struct sb_worker *w)
{
	static const char *const states[] = {
		[SB_FREE] = "free",
		[SB_STARTING] = "starting",
		[SB_SERVING] = "serving",
		[SB_DRAINING] = "draining",
	};
	pid_t pid = atomic_load(&w->pid);
	json_t *row =
	    json_pack("{s:i s:s s:I s:I s:I s:I s:I s:I s:I s:I s:I s:I s:I "
		      "s:I s:I}",
		"pid", (int)pid, "state", states[atomic_load(&w->state) & 3],
		"since_ms",
		(json_int_t)(r->now_ms - atomic_load(&w->started_ms)),
		"silent_ms", (json_int_t)(r->now_ms - atomic_load(&w->beat_ms)),
		"clients", (json_int_t)atomic_load(&w->clients), "active",
		(json_int_t)atomic_load(&w->exchanges), "tunnels",
		(json_int_t)atomic_load(&w->tunnels), "node_connections",
		(json_int_t)atomic_load(&w->node_conns), "queued",
		(json_int_t)atomic_load(&w->queued), "accepted",
		(json_int_t)atomic_load(&w->accepted), "requests",
		(json_int_t)atomic_load(&w->requests), "log_dropped",
		(json_int_t)atomic_load(&w->log_dropped), "refused",
		(json_int_t)atomic_load(&w->refused), "uncounted",
		(json_int_t)atomic_load(&w->uncounted), "revision",
		(json_int_t)atomic_load(&w->revision));

	if (row != NULL) {
		add_bodies(row, w);
		add_compression(row, w);
		add_tls(row, w);
		add_usage(row, pid);
	}
	return row;
}

/* What it holds for slow clients. */
static void
add_bodies(json_t *row, const struct sb_worker *w)
{
	json_t *more = json_pack("{s:I s:I s:I s:I s:I}", "collecting",
	    (json_int_t)atomic_load(&w->collecting), "delivering",
	    (json_int_t)atomic_load(&w->delivering), "spool_bytes",
	    (json_int_t)atomic_load(&w->spool_used), "spool_full",
	    (json_int_t)atomic_load(&w->spool_full), "spool_errors",
	    (json_int_t)atomic_load(&w->spool_errors));

	json_object_update(row, more);
	json_decref(more);
}

static void
add_compression(json_t *row, const struct sb_worker *w)
{
	const struct {
		const char *name;
		const _Atomic uint64_t *count;
	} counts[] = {
		{ "compressed", &w->compressed },
		{ "compress_in", &w->compress_in },
		{ "compress_out", &w->compress_out },
		{ "compress_full", &w->compress_full },
		{ "compress_held", &w->compress_held },
	};

	for (size_t i = 0; i < nitems(counts); i++)
		json_object_set_new(row, counts[i].name,
		    json_integer((json_int_t)atomic_load(counts[i].count)));
}

static void
add_reason(json_t *out, const char *prefix, const char *word, uint64_t total)
{
	char name[64];

	if (total == 0)
		return;
	snprintf(name, sizeof(name), "%s%s", prefix, word);
	json_array_append_new(out,
	    json_pack("{s:s s:I}", "reason", name, "total", (json_int_t)total));
}

static void
add_tls(json_t *row, const struct sb_worker *w)
{
	uint64_t failed = 0;
	json_t *more;

	for (int why = 0; why < TLS_FAILURES; why++)
		failed += atomic_load(&w->tls_failed[why]);
	more = json_pack("{s:I s:I s:I s:I}", "handshaking",
	    (json_int_t)atomic_load(&w->tls_handshaking), "handshakes",
	    (json_int_t)atomic_load(&w->tls_handshakes), "resumed",
	    (json_int_t)atomic_load(&w->tls_resumed), "handshakes_failed",
	    (json_int_t)failed);
	json_object_update(row, more);
	json_decref(more);
}

/* CPU seconds and resident memory, from proc(5); left out when it is gone. */
static void
add_usage(json_t *row, pid_t pid)
{
	unsigned long user, system;
	long pages;
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	if ((f = fopen(path, "re")) == NULL)
		return;
	/* The name may hold spaces and ')': ours holds neither. */
	if (fscanf(f,
		"%*d (%*[^)]) %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u "
		"%lu %lu %*d %*d %*d %*d %*d %*d %*u %*u %ld",
		&user, &system, &pages) == 3) {
		json_object_set_new(row, "cpu_s",
		    json_real((double)(user + system) /
			(double)sysconf(_SC_CLK_TCK)));
		json_object_set_new(row, "rss_kb",
		    json_integer(pages * (sysconf(_SC_PAGESIZE) / 1024)));
	}
	fclose(f);
}

/* One entry an account: many sites share an owner's. */
static size_t
collect(const struct report *r, struct ranked *rows, bool owner)
{
	size_t n = 0, kept = 0;

	for (uint32_t i = 0; i < r->snapshot->head->n_sites; i++) {
		const struct snap_site *s = snapshot_site(r->snapshot, i);
		uint32_t row = owner ? s->owner_account : s->account;

		if (row == SB_NONE)
			continue;
		rows[n++] = (struct ranked){ .site = s,
			.row = row,
			.requests =
			    atomic_load(&sb_account(r->board, row)->requests) };
	}
	if (!owner)
		return n;
	qsort(rows, n, sizeof(*rows), by_row);
	for (size_t i = 0; i < n; i++)
		if (kept == 0 || rows[kept - 1].row != rows[i].row)
			rows[kept++] = rows[i];
	return kept;
}

static json_t *
account_row(const struct report *r, const struct ranked *a, bool owner)
{
	struct usage u = { 0 };
	json_t *row = owner ?
	    json_pack("{s:s}", "owner", text(r, a->site->owner)) :
	    json_pack("{s:s s:s s:b}", "site", text(r, a->site->name), "owner",
		text(r, a->site->owner), "enabled",
		!(a->site->flags & SNAP_SITE_DISABLED));
	json_t *counters;

	add_account(r, a, &u);
	counters = usage_row(&u);
	json_object_update(row, counters);
	json_decref(counters);
	if (!owner)
		json_object_set_new(row, "cert_days",
		    report_cert_days(r, text(r, a->site->name),
			clock_wall_ms() / 1000));
	return row;
}

static void
add_account(const struct report *r, const struct ranked *a, struct usage *u)
{
	struct sb_account *acc = sb_account(r->board, a->row);

	u->requests += a->requests;
	u->active += sb_active(r->board, acc->active);
	u->bytes_in += atomic_load(&acc->bytes_in);
	u->bytes_out += atomic_load(&acc->bytes_out);
	u->node_us += atomic_load(&acc->node_us);
	u->tunnels += atomic_load(&acc->tunnels);
	u->limited += atomic_load(&acc->limited);
	for (size_t i = 0; i < nitems(u->status); i++)
		u->status[i] += atomic_load(&acc->status[i]);
}

static json_t *
usage_row(const struct usage *u)
{
	return json_pack("{s:I s:I s:I s:I s:I s:I s:I s:I s:I s:I s:I s:I}",
	    "requests", (json_int_t)u->requests, "active",
	    (json_int_t)u->active, "bytes_in", (json_int_t)u->bytes_in,
	    "bytes_out", (json_int_t)u->bytes_out, "node_us",
	    (json_int_t)u->node_us, "tunnels", (json_int_t)u->tunnels, "s2xx",
	    (json_int_t)u->status[2], "s3xx", (json_int_t)u->status[3], "s4xx",
	    (json_int_t)u->status[4], "s5xx", (json_int_t)u->status[5],
	    "aborted", (json_int_t)u->status[0], "limited",
	    (json_int_t)u->limited);
}

static int
by_requests(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;

	if (x->requests != y->requests)
		return x->requests < y->requests ? 1 : -1;
	return by_row(a, b);
}

static int
by_row(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;

	return (x->row > y->row) - (x->row < y->row);
}

static const char *
text(const struct report *r, struct snap_text t)
{
	return snapshot_text(r->snapshot, t);
}
