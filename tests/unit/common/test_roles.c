/* test_roles.c: roles, and the texts of balancing and health checks. */
#include "tests/unit/common/scratch.h"

#include "common/registry/roles.h"
#include "common/registry/sites.h"

static void
predefined_roles_are_there(void **state)
{
	struct scratch *s = *state;
	struct role role;

	assert_ok(s, roles_get(s->r, ROLE_WORKER_MYSQL, &role, &s->e));
	assert_true(role.predefined);
	assert_int_equal(role.port, 3306);
	assert_string_equal(role.health, "mysql");
	assert_ok(s, roles_get(s->r, ROLE_WORKER_HTTP, &role, &s->e));
	assert_int_equal(role.port, 80);
	assert_refused(s, roles_remove(s->r, ROLE_STORAGE, &s->e), ERR_USAGE,
	    "predefined");
}

static void
a_role_is_made_set_and_removed(void **state)
{
	struct scratch *s = *state;
	struct site site;
	struct role role;

	assert_ok(s, roles_add(s->r, "cache", &s->e));
	assert_refused(s, roles_add(s->r, "cache", &s->e), ERR_CONFLICT,
	    "exists already");
	assert_refused(s, roles_add(s->r, "a.b", &s->e), ERR_USAGE,
	    "role name");
	assert_ok(s,
	    roles_set(s->r, "cache", "queue_timeout", "1500ms", &s->e));
	assert_ok(s,
	    roles_set(s->r, "cache", "balance", "hash:cookie=SID", &s->e));
	assert_ok(s, roles_get(s->r, "cache", &role, &s->e));
	assert_int_equal(role.queue_timeout_ms, 1500);
	assert_int_equal(role.interval_ms, 2000);
	assert_string_equal(role.balance, "hash:cookie=SID");
	assert_refused(s, roles_set(s->r, "cache", "fall", "0", &s->e),
	    ERR_USAGE, "fall '0' is not 1..100");
	assert_refused(s, roles_set(s->r, "cache", "health", "icmp", &s->e),
	    ERR_USAGE, "health: 'icmp' is not none, tcp");
	assert_refused(s, roles_set(s->r, "cahce", "fall", "1", &s->e),
	    ERR_NO_TARGET, "did you mean 'cache'");

	assert_ok(s, nodes_add_role(s->r, "m1", "cache", &s->e));
	assert_refused(s, roles_remove(s->r, "cache", &s->e), ERR_USAGE,
	    "still that of 1 node(s)");
	assert_ok(s, nodes_remove_role(s->r, "m1", "cache", &s->e));
	site_init(&site, "a.example");
	snprintf(site.role, sizeof(site.role), "cache");
	assert_ok(s, sites_add(s->r, &site, &s->e));
	assert_refused(s, roles_remove(s->r, "cache", &s->e), ERR_USAGE,
	    "still that of 1 site(s)");
	assert_ok(s,
	    sites_set(s->r, "a.example", "role", "worker_http", &s->e));
	assert_ok(s, roles_remove(s->r, "cache", &s->e));
	assert_refused(s, roles_get(s->r, "cache", &role, &s->e), ERR_NO_TARGET,
	    "no such role");
}

static void
balance_texts(void **state)
{
	static const struct {
		const char *text, *cookie;
		int kind; /* -1: refused */
	} cases[] = {
		{ "least_conn", "", BALANCE_LEAST_CONN },
		{ "round_robin", "", BALANCE_ROUND_ROBIN },
		{ "hash:ip", "", BALANCE_HASH_IP },
		{ "hash:uri", "", BALANCE_HASH_URI },
		{ "hash:cookie=PHPSESSID", "PHPSESSID", BALANCE_HASH_COOKIE },
		{ "sticky", "MUSTERID", BALANCE_STICKY },
		{ "sticky=B", "B", BALANCE_STICKY },
		{ "", "", -1 },
		{ "hash", "", -1 },
		{ "hash:cookie", "", -1 },
		{ "hash:cookie=", "", -1 },
		{ "hash:ip=x", "", -1 },
		{ "sticky=a;b", "", -1 },
		{ "sticky=a b", "", -1 },
		{ "sticky=a\xff", "", -1 },
		{ "least_connx", "", -1 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct balance b = { .kind = BALANCE_HASH_IP };
		struct err e;
		int rv = balance_parse(cases[i].text, &b, &e);

		assert_int_equal(rv, cases[i].kind == -1 ? -1 : 0);
		if (rv == -1)
			continue;
		assert_int_equal(b.kind, cases[i].kind);
		assert_string_equal(b.cookie, cases[i].cookie);
	}
}

static void
health_texts(void **state)
{
	static const struct {
		const char *text, *path;
		int kind; /* -1: refused */
		unsigned min, max;
	} cases[] = {
		{ "none", "", HEALTH_NONE, 0, 0 },
		{ "tcp", "", HEALTH_TCP, 0, 0 },
		{ "mysql", "", HEALTH_MYSQL, 0, 0 },
		{ "mysql user=muster", "", HEALTH_MYSQL, 0, 0 },
		{ "mysql user=", "", -1, 0, 0 },
		{ "mysql user=a b", "", -1, 0, 0 },
		{ "mysql muster", "", -1, 0, 0 },
		{ "mysql "
		  "user=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
		  "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
		    "", -1, 0, 0 },
		{ "http GET /", "/", HEALTH_HTTP, 200, 399 },
		{ "http GET /up?x=1 200", "/up?x=1", HEALTH_HTTP, 200, 200 },
		{ "http GET /up 200-299", "/up", HEALTH_HTTP, 200, 299 },
		{ "http GET /up 299-200", "", -1, 0, 0 },
		{ "http GET /up 200-", "", -1, 0, 0 },
		{ "http GET /up 200-999", "", -1, 0, 0 },
		{ "http GET /up 200-299 x", "", -1, 0, 0 },
		{ "http GET /up 99", "", -1, 0, 0 },
		{ "http POST /up", "", -1, 0, 0 },
		{ "http GET up", "", -1, 0, 0 },
		{ "http GET /a\tb", "", -1, 0, 0 },
		{ "http GET /a#b", "", -1, 0, 0 },
		{ "http", "", -1, 0, 0 },
		{ "ping", "", -1, 0, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct health h = { .kind = HEALTH_NONE };
		struct err e;
		int rv = health_parse(cases[i].text, &h, &e);

		if (rv != (cases[i].kind == -1 ? -1 : 0))
			fail_msg("%s: %d", cases[i].text, rv);
		if (rv == -1)
			continue;
		assert_int_equal(h.kind, cases[i].kind);
		assert_string_equal(h.path, cases[i].path);
		assert_string_equal(h.user,
		    strstr(cases[i].text, "user=") != NULL ? "muster" : "");
		assert_int_equal(h.status_min, cases[i].min);
		assert_int_equal(h.status_max, cases[i].max);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		scratch_test(predefined_roles_are_there),
		scratch_test(a_role_is_made_set_and_removed),
		cmocka_unit_test(balance_texts),
		cmocka_unit_test(health_texts),
	};

	return cmocka_run_group_tests_name("roles", tests, NULL, NULL);
}
