/* test_compile.c: the registry as the workers see it. */
#include "tests/unit/common/scratch.h"

#include "common/base/io.h"
#include "common/registry/roles.h"
#include "common/registry/settings.h"
#include "proxyd/process/compile.h"
#include "proxyd/process/row_use.h"
#include "proxyd/process/snapshot.h"

struct world {
	struct scratch *s;
	struct scoreboard board;
	struct row_use *use;
	struct source *source;
	struct settings settings;
};

static void
begin(struct world *w, void **state, uint32_t n_targets, uint32_t n_accounts)
{
	struct state st;

	*w = (struct world){ .s = *state };
	assert_ok(w->s, state_open(&st, w->s->dir, &w->s->e));
	assert_ok(w->s,
	    scoreboard_create(&w->board, 4, n_targets, n_accounts, &w->s->e));
	w->use = row_use_new(&w->board, &w->s->e);
	w->source = source_new(&st, &w->s->e);
	assert_non_null(w->use);
	assert_non_null(w->source);
}

static void
end(struct world *w)
{
	source_free(w->source);
	row_use_free(w->use);
	scoreboard_unmap(&w->board);
}

static int
try(struct world *w, int *fd)
{
	int64_t revision;

	assert_ok(w->s, source_revision(w->source, &revision, &w->s->e));
	return compile_snapshot(w->source, &w->board, w->use, revision,
	    &w->settings, fd, &w->s->e);
}

static struct snapshot *
compiled(struct world *w)
{
	struct snapshot *snap;
	int fd;

	assert_ok(w->s, try(w, &fd));
	snap = snapshot_map(fd, &w->s->e);
	close(fd);
	if (snap == NULL)
		fail_msg("%s", w->s->e.text);
	assert_int_equal(snap->head->revision, scratch_revision(w->s));
	return snap;
}

static void
set(struct world *w, const char *key, const char *value)
{
	assert_ok(w->s, settings_set(w->s->r, key, value, &w->s->e));
}

static void
set_role(struct world *w, const char *option, const char *value)
{
	assert_ok(w->s,
	    roles_set(w->s->r, "worker_http", option, value, &w->s->e));
}

static void
add_site(struct world *w, const char *name, const char *alias,
    const char *owner)
{
	struct site site;

	site_init(&site, name);
	snprintf(site.owner, sizeof(site.owner), "%s", owner);
	if (alias != NULL)
		assert_ok(w->s, site_add_alias(&site, alias, &w->s->e));
	assert_ok(w->s, sites_add(w->s->r, &site, &w->s->e));
	site_fini(&site);
}

static const struct snap_role *
role_named(const struct snapshot *snap, const char *name)
{
	for (uint32_t i = 0; i < snap->head->n_roles; i++) {
		const struct snap_role *r = snapshot_role(snap, i);

		if (strcmp(snapshot_text(snap, r->name), name) == 0)
			return r;
	}
	fail_msg("no role %s", name);
	return NULL;
}

static const struct snap_site *
site_of(const struct snapshot *snap, const char *host)
{
	return snapshot_find(snap, host, strlen(host));
}

static void
settings_become_numbers(void **state)
{
	struct snapshot *snap;
	const struct snap_settings *s;
	struct addr a;
	struct world w;

	begin(&w, state, 64, 64);
	set(&w, "proxy.header_timeout", "7s");
	set(&w, "proxy.keepalive", "90s");
	set(&w, "proxy.connect_timeout", "250ms");
	set(&w, "proxy.response_timeout", "2m");
	set(&w, "proxy.send_timeout", "9s");
	set(&w, "proxy.tunnel_idle", "3h");
	set(&w, "proxy.pool_idle_timeout", "3s");
	set(&w, "proxy.pool_idle", "7");
	set(&w, "proxy.body_min_rate", "1K");
	set(&w, "proxy.body_timeout", "8s");
	set(&w, "proxy.header_size", "32K");
	set(&w, "proxy.header_fields", "50");
	set(&w, "proxy.target_size", "4K");
	set(&w, "proxy.keepalive_requests", "99");
	set(&w, "proxy.http10_keepalive", "on");
	set(&w, "proxy.retries", "5");
	set(&w, "proxy.retry_budget", "25");
	set(&w, "proxy.eject_failures", "4");
	set(&w, "proxy.eject_time", "6s");
	set(&w, "proxy.eject_max", "7m");
	set(&w, "proxy.max_connections", "1234");
	set(&w, "proxy.trusted", "10.0.0.0/8 fd00::/8");
	snap = compiled(&w);
	s = &snap->head->settings;
	assert_int_equal(s->header_ms, 7000);
	assert_int_equal(s->keepalive_ms, 90000);
	assert_int_equal(s->connect_ms, 250);
	assert_int_equal(s->response_ms, 120000);
	assert_int_equal(s->send_ms, 9000);
	assert_int_equal(s->tunnel_ms, 3 * 3600000);
	assert_int_equal(s->pool_ms, 3000);
	assert_int_equal(s->pool_max, 7);
	assert_int_equal(s->body_rate, 1024);
	assert_int_equal(s->body_grace_ms, 8000);
	assert_int_equal(s->fields_size, 32768);
	assert_int_equal(s->fields_max, 50);
	assert_int_equal(s->target_size, 4096);
	assert_int_equal(s->keepalive_requests, 99);
	assert_int_equal(s->keepalive_http10, 1);
	assert_int_equal(s->retries, 5);
	assert_int_equal(s->retry_percent, 25);
	assert_int_equal(s->eject_after, 4);
	assert_int_equal(s->eject_ms, 6000);
	assert_int_equal(s->eject_max_ms, 420000);
	assert_int_equal(s->max_clients, 1234);
	assert_int_equal(s->log_format, SNAP_LOG_OFF);
	assert_string_equal(snapshot_text(snap, s->via), "muster");
	assert_ok(w.s, addr_parse("10.9.8.7", 1, &a, &w.s->e));
	assert_true(snapshot_trusts(snap, &a));
	assert_ok(w.s, addr_parse("[fd00::1]", 1, &a, &w.s->e));
	assert_true(snapshot_trusts(snap, &a));
	assert_ok(w.s, addr_parse("11.0.0.1", 1, &a, &w.s->e));
	assert_false(snapshot_trusts(snap, &a));
	snapshot_release(snap);
	end(&w);
}

static void
the_log_has_a_form_when_it_is_on(void **state)
{
	static const struct {
		const char *form;
		uint32_t expected;
	} cases[] = {
		{ "common", SNAP_LOG_COMMON },
		{ "combined", SNAP_LOG_COMBINED },
		{ "json", SNAP_LOG_JSON },
	};
	struct world w;

	begin(&w, state, 64, 64);
	set(&w, "proxy.access_log", "/tmp/x");
	for (size_t i = 0; i < nitems(cases); i++) {
		struct snapshot *snap;

		set(&w, "proxy.access_log_format", cases[i].form);
		snap = compiled(&w);
		assert_int_equal(snap->head->settings.log_format,
		    cases[i].expected);
		snapshot_release(snap);
	}
	end(&w);
}

static void
roles_and_their_nodes(void **state)
{
	char text[ADDR_TEXT_MAX];
	const struct snap_role *r;
	const struct snap_node *n;
	struct snapshot *snap;
	struct world w;

	begin(&w, state, 64, 64);
	set_role(&w, "port", "8080");
	set_role(&w, "balance", "hash:cookie=SID");
	set_role(&w, "health", "http GET /up 200-204");
	set_role(&w, "interval", "5s");
	set_role(&w, "check_timeout", "700ms");
	set_role(&w, "rise", "4");
	set_role(&w, "fall", "6");
	set_role(&w, "queue", "17");
	set_role(&w, "queue_timeout", "3s");
	set_role(&w, "slow_start", "30s");
	set_role(&w, "maxconn", "40");
	assert_ok(w.s, scratch_add_node(w.s, "w1", "10.0.0.2", "worker_http"));
	assert_ok(w.s, scratch_add_node(w.s, "w2", "10.0.0.3", "worker_http"));
	assert_ok(w.s, nodes_set(w.s->r, "w2", "weight", "3", &w.s->e));
	assert_ok(w.s, nodes_set(w.s->r, "w2", "maxconn", "9", &w.s->e));
	assert_ok(w.s,
	    nodes_set_port(w.s->r, "w2", "worker_http", 9000, &w.s->e));
	assert_ok(w.s, nodes_set_state(w.s->r, "w2", NODE_DRAIN, &w.s->e));
	snap = compiled(&w);
	r = role_named(snap, "worker_http");
	assert_int_equal(r->balance, SNAP_HASH_COOKIE);
	assert_string_equal(snapshot_text(snap, r->cookie), "SID");
	assert_int_equal(r->check, SNAP_CHECK_HTTP);
	assert_string_equal(snapshot_text(snap, r->check_text), "/up");
	assert_int_equal(r->check_low, 200);
	assert_int_equal(r->check_high, 204);
	assert_int_equal(r->check_ms, 5000);
	assert_int_equal(r->check_limit_ms, 700);
	assert_int_equal(r->rise, 4);
	assert_int_equal(r->fall, 6);
	assert_int_equal(r->queue_max, 17);
	assert_int_equal(r->queue_ms, 3000);
	assert_int_equal(r->slow_start_ms, 30000);
	assert_int_equal(r->n_nodes, 2);
	n = snapshot_node(snap, r->first_node);
	assert_string_equal(snapshot_text(snap, n->name), "w1");
	addr_format(&n->addr, text);
	assert_string_equal(text, "10.0.0.2:8080");
	assert_int_equal(n->weight, 1);
	assert_int_equal(n->maxconn, 40);
	assert_int_equal(n->state, SNAP_NODE_UP);
	n = snapshot_node(snap, r->first_node + 1);
	addr_format(&n->addr, text);
	assert_string_equal(text, "10.0.0.3:9000");
	assert_int_equal(n->weight, 3);
	assert_int_equal(n->maxconn, 9);
	assert_int_equal(n->state, SNAP_NODE_DRAIN);
	/* The master's own role has no port: nothing to balance. */
	assert_int_equal(role_named(snap, "master")->n_nodes, 0);
	snapshot_release(snap);
	end(&w);
}

/* Where it is and what a connection begins with are the way to a node. */
static void
unix_sockets_and_ways(void **state)
{
	const struct snap_node *n;
	const struct snap_role *r;
	struct snapshot *snap;
	struct world w;
	uint64_t tcp, path;

	begin(&w, state, 20, 20);
	assert_ok(w.s, scratch_add_node(w.s, "w1", "10.0.0.2", "worker_http"));
	assert_ok(w.s,
	    scratch_add_node(w.s, "w2", "unix:/run/app", "worker_http"));
	snap = compiled(&w);
	r = role_named(snap, "worker_http");
	assert_int_equal(r->proxy, SNAP_PROXY_OFF);
	n = snapshot_node(snap, r->first_node);
	assert_int_equal(n->path.len, 0);
	tcp = n->way;
	n++;
	assert_string_equal(snapshot_text(snap, n->path), "/run/app");
	assert_int_equal(n->addr.len, 0);
	path = n->way;
	assert_true(path != tcp);
	snapshot_release(snap);
	/* The same again, but for a header. */
	set_role(&w, "proxy_protocol", "v2");
	snap = compiled(&w);
	r = role_named(snap, "worker_http");
	assert_int_equal(r->proxy, SNAP_PROXY_V2);
	n = snapshot_node(snap, r->first_node);
	assert_true(n->way != tcp && n[1].way != path);
	snapshot_release(snap);
	/* Without a port a socket still says where it is. */
	set_role(&w, "proxy_protocol", "off");
	set_role(&w, "port", "none");
	snap = compiled(&w);
	r = role_named(snap, "worker_http");
	assert_int_equal(r->n_nodes, 1);
	snapshot_release(snap);
	end(&w);
}

static void
peers_by_address(void **state)
{
	struct addr tcp, local = { .u.sa.sa_family = AF_UNIX };
	const struct snap_head *h;
	struct snapshot *snap;
	struct world w;

	begin(&w, state, 20, 20);
	assert_ok(w.s, addr_parse("10.9.8.7", 1, &tcp, &w.s->e));
	snap = compiled(&w);
	assert_false(snapshot_has_peers(&snap->head->senders));
	assert_false(snapshot_is_peer(snap, &snap->head->senders, &local));
	snapshot_release(snap);
	set(&w, "proxy.proxy_protocol", "unix 10.9.0.0/16");
	set(&w, "proxy.trusted", "unix");
	snap = compiled(&w);
	h = snap->head;
	assert_true(snapshot_has_peers(&h->senders));
	assert_true(snapshot_is_peer(snap, &h->senders, &local));
	assert_true(snapshot_is_peer(snap, &h->senders, &tcp));
	assert_true(snapshot_trusts(snap, &local));
	assert_false(snapshot_trusts(snap, &tcp));
	snapshot_release(snap);
	set(&w, "proxy.proxy_protocol", "10.9.0.0/16");
	snap = compiled(&w);
	assert_false(snapshot_is_peer(snap, &snap->head->senders, &local));
	snapshot_release(snap);
	end(&w);
}

static void
sites_and_their_hosts(void **state)
{
	char page[PATH_MAX];
	const struct snap_site *s;
	struct snapshot *snap;
	struct world w;

	begin(&w, state, 64, 64);
	set(&w, "proxy.body_size", "5M");
	set(&w, "proxy.default_site", "b.example");
	add_site(&w, "a.example", "*.a.example", "joe");
	add_site(&w, "b.example", NULL, "");
	assert_ok(w.s,
	    sites_set(w.s->r, "a.example", "max_body", "1M", &w.s->e));
	assert_ok(w.s, sites_set(w.s->r, "a.example", "share", "7", &w.s->e));
	assert_ok(w.s,
	    sites_set(w.s->r, "a.example", "max_active", "8", &w.s->e));
	scratch_path(w.s, "page.html", page);
	assert_ok(w.s, io_write_file(page, "<p>gone", 7, 0600, &w.s->e));
	assert_ok(w.s, sites_set(w.s->r, "b.example", "page", page, &w.s->e));
	assert_ok(w.s, sites_enable(w.s->r, "b.example", false, &w.s->e));
	snap = compiled(&w);
	s = site_of(snap, "www.a.example");
	assert_ptr_equal(s, site_of(snap, "a.example"));
	assert_string_equal(snapshot_text(snap, s->owner), "joe");
	assert_int_equal(s->max_body, 1 << 20);
	assert_int_equal(s->share, 7);
	assert_int_equal(s->max_active, 8);
	assert_int_equal(s->flags & SNAP_SITE_DISABLED, 0);
	assert_ptr_equal(snapshot_role(snap, s->role),
	    role_named(snap, "worker_http"));
	assert_int_not_equal(s->account, SB_NONE);
	assert_int_not_equal(s->owner_account, SB_NONE);
	s = site_of(snap, "b.example");
	assert_ptr_equal(s, snapshot_default_site(snap));
	assert_int_equal(s->max_body, 5 << 20);
	assert_int_equal(s->share, 1);
	assert_true(s->flags & SNAP_SITE_DISABLED);
	assert_string_equal(snapshot_text(snap, s->disabled_page), "<p>gone");
	assert_int_equal(s->owner_account, SB_NONE);
	snapshot_release(snap);
	end(&w);
}

/* A page that is gone shows the built-in one; the site stays disabled. */
static void
a_page_that_cannot_be_read(void **state)
{
	const struct snap_site *s;
	struct snapshot *snap;
	struct world w;

	begin(&w, state, 64, 64);
	add_site(&w, "a.example", NULL, "");
	assert_ok(w.s,
	    sites_set(w.s->r, "a.example", "page", "/nowhere/x", &w.s->e));
	assert_ok(w.s, sites_enable(w.s->r, "a.example", false, &w.s->e));
	snap = compiled(&w);
	s = site_of(snap, "a.example");
	assert_true(s->flags & SNAP_SITE_DISABLED);
	assert_int_equal(s->disabled_page.len, 0);
	snapshot_release(snap);
	end(&w);
}

static void
rows_stay_with_what_they_count(void **state)
{
	uint32_t account, target;
	struct snapshot *snap;
	struct world w;

	begin(&w, state, 64, 64);
	set_role(&w, "port", "80");
	assert_ok(w.s, scratch_add_node(w.s, "w1", "10.0.0.2", "worker_http"));
	add_site(&w, "a.example", NULL, "joe");
	snap = compiled(&w);
	account = site_of(snap, "a.example")->account;
	target = snapshot_node(snap, 0)->target;
	sb_account(&w.board, account)->requests = 5;
	sb_target(&w.board, target)->total = 6;
	snapshot_release(snap);
	/* A node keeps its row under another name and address. */
	assert_ok(w.s, nodes_rename(w.s->r, "w1", "web1", &w.s->e));
	assert_ok(w.s,
	    nodes_set(w.s->r, "web1", "address", "10.0.0.9", &w.s->e));
	add_site(&w, "0.example", NULL, "joe");
	snap = compiled(&w);
	assert_int_equal(site_of(snap, "a.example")->account, account);
	assert_int_equal(site_of(snap, "a.example")->owner_account,
	    site_of(snap, "0.example")->owner_account);
	assert_int_equal(snapshot_node(snap, 0)->target, target);
	assert_int_equal(sb_account(&w.board, account)->requests, 5);
	snapshot_release(snap);
	end(&w);
}

static void
since_when_a_node_is_drained(void **state)
{
	struct sb_target *t;
	struct snapshot *snap;
	struct world w;
	int64_t since;

	begin(&w, state, 64, 64);
	set_role(&w, "port", "80");
	assert_ok(w.s, scratch_add_node(w.s, "w1", "10.0.0.2", "worker_http"));
	snap = compiled(&w);
	t = sb_target(&w.board, snapshot_node(snap, 0)->target);
	since = t->since_ms;
	assert_true(since > 0);
	t->since_ms = 1;
	snapshot_release(snap);
	set(&w, "proxy.keepalive", "9s");
	snapshot_release(compiled(&w));
	assert_int_equal(t->since_ms, 1);
	assert_ok(w.s, nodes_set_state(w.s->r, "w1", NODE_DRAIN, &w.s->e));
	snapshot_release(compiled(&w));
	assert_true(t->since_ms >= since);
	end(&w);
}

/* What does not fit is said; sites go on without a row. */
static void
a_full_scoreboard(void **state)
{
	struct snapshot *snap;
	struct world w;
	int fd;

	begin(&w, state, 5, 1);
	set_role(&w, "port", "80");
	add_site(&w, "a.example", NULL, "joe");
	snap = compiled(&w);
	assert_int_not_equal(site_of(snap, "a.example")->account, SB_NONE);
	assert_int_equal(site_of(snap, "a.example")->owner_account, SB_NONE);
	snapshot_release(snap);
	assert_ok(w.s, scratch_add_node(w.s, "w1", "10.0.0.2", "worker_http"));
	assert_ok(w.s, scratch_add_node(w.s, "w2", "10.0.0.3", "worker_http"));
	assert_refused(w.s, try(&w, &fd), ERR_LOCAL, "no room for node w2");
	end(&w);
}

static void
rows_of_what_is_gone_are_given_back(void **state)
{
	uint32_t account, target, slot;
	struct snapshot *snap;
	struct world w;

	begin(&w, state, 64, 64);
	slot = sb_slot_take(&w.board, 77, 0);
	set_role(&w, "port", "80");
	assert_ok(w.s, scratch_add_node(w.s, "w1", "10.0.0.2", "worker_http"));
	add_site(&w, "a.example", NULL, "joe");
	snap = compiled(&w);
	account = site_of(snap, "a.example")->account;
	target = snapshot_node(snap, 0)->target;
	snapshot_release(snap);
	assert_ok(w.s, nodes_remove(w.s->r, "w1", &w.s->e));
	assert_ok(w.s, sites_remove(w.s->r, "a.example", &w.s->e));
	snapshot_release(compiled(&w));
	/* A worker may still use the image before. */
	row_use_sweep(w.use, scratch_revision(w.s));
	assert_int_not_equal(sb_account(&w.board, account)->kind, 0);
	/* Nor is what is held there forgotten. */
	sb_worker(&w.board, slot)->revision = scratch_revision(w.s);
	sb_hold(sb_account(&w.board, account)->active, slot);
	row_use_sweep(w.use, scratch_revision(w.s));
	assert_int_not_equal(sb_account(&w.board, account)->kind, 0);
	assert_int_equal(sb_target(&w.board, target)->role_id, 0);
	sb_release(sb_account(&w.board, account)->active, slot);
	row_use_sweep(w.use, scratch_revision(w.s));
	assert_int_equal(sb_account(&w.board, account)->kind, 0);
	end(&w);
}

static void
ids_of_names(void **state)
{
	(void)state;
	assert_int_equal(compile_id("joe"), compile_id("joe"));
	assert_int_not_equal(compile_id("joe"), compile_id("jo"));
	assert_true(compile_id("") > 0);
	assert_true(compile_id("joe") > 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		scratch_test(settings_become_numbers),
		scratch_test(the_log_has_a_form_when_it_is_on),
		scratch_test(roles_and_their_nodes),
		scratch_test(unix_sockets_and_ways),
		scratch_test(peers_by_address),
		scratch_test(sites_and_their_hosts),
		scratch_test(a_page_that_cannot_be_read),
		scratch_test(rows_stay_with_what_they_count),
		scratch_test(since_when_a_node_is_drained),
		scratch_test(a_full_scoreboard),
		scratch_test(rows_of_what_is_gone_are_given_back),
		scratch_test(ids_of_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
