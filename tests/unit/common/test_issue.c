/* test_issue.c: what a certificate says comes from the registry alone. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sodium.h>

#include "common/base/io.h"
#include "common/enroll/issue.h"
#include "common/net/authority.h"
#include "common/registry/certs.h"
#include "common/registry/nodes.h"
#include "common/registry/operators.h"
#include "common/registry/roles.h"
#include "common/registry/settings.h"

#define NOW 1800000000
#define DAY (24L * 3600)

struct fixture {
	char dir[64], path[96];
	struct registry *r;
	uint8_t secret[AUTHORITY_SECRET_SIZE], public[KEY_SIZE];
	uint8_t key[KEY_SIZE];
	struct err e;
};

static int
setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct node n;

	assert_int_not_equal(sodium_init(), -1);
	snprintf(f->dir, sizeof(f->dir), "/tmp/muster-issue.XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	snprintf(f->path, sizeof(f->path), "%s/registry.db", f->dir);
	f->r = registry_create(f->path, "test", &f->e);
	assert_non_null(f->r);
	authority_generate(f->secret, f->public);
	memset(f->key, 7, sizeof(f->key));
	node_init(&n, "m1");
	snprintf(n.addr, sizeof(n.addr), "10.0.0.1");
	n.agent_port = 7400;
	assert_int_equal(nodes_add(f->r, &n, &f->e), 0);
	*state = f;
	return 0;
}

static int
teardown(void **state)
{
	static const char *const suffixes[] = { "", "-wal", "-shm" };
	struct fixture *f = *state;

	registry_close(f->r);
	for (size_t i = 0; i < nitems(suffixes); i++) {
		char path[128];

		snprintf(path, sizeof(path), "%s%s", f->path, suffixes[i]);
		unlink(path);
	}
	rmdir(f->dir);
	free(f);
	return 0;
}

/* What the certificate says, verified as any peer would. */
static struct cert
read_back(struct fixture *f, const struct issued *i)
{
	struct cert c;

	assert_int_equal(cert_verify(i->bytes, i->size, f->public, f->key, NOW,
			     &c, &f->e),
	    0);
	assert_int_equal(c.not_after_s, i->not_after_s);
	return c;
}

static bool
has_grant(const struct cert *c, const char *grant)
{
	for (size_t i = 0; i < c->n_grants; i++)
		if (strcmp(c->grants[i], grant) == 0)
			return true;
	return false;
}

static void
a_node(void **state)
{
	struct fixture *f = *state;
	struct issued i;
	struct node n;
	struct cert c;

	assert_int_equal(issue_node(f->r, "m1", f->key, f->secret, NOW, &i,
			     &f->e),
	    0);
	c = read_back(f, &i);
	assert_int_equal(c.kind, CERT_NODE);
	assert_string_equal(c.name, "m1");
	assert_int_equal(c.not_after_s, NOW + 90 * DAY);
	assert_true(has_grant(&c, "roster") && has_grant(&c, "renew"));
	assert_false(has_grant(&c, "sync") || has_grant(&c, "custody"));
	assert_true(issue_fits(&c, "storage worker_http"));
	assert_false(issue_fits(&c, "storage proxy"));
	assert_false(issue_fits(&c, "master"));
	assert_int_equal(nodes_get(f->r, "m1", &n, &f->e), 0);
	assert_int_equal(n.serial, c.serial);
}

static void
a_master_may_tell_the_others(void **state)
{
	struct fixture *f = *state;
	struct issued i;
	struct cert c;

	assert_int_equal(nodes_add_role(f->r, "m1", "master", &f->e), 0);
	assert_int_equal(issue_node(f->r, "m1", f->key, f->secret, NOW, &i,
			     &f->e),
	    0);
	c = read_back(f, &i);
	assert_true(has_grant(&c, "sync") && has_grant(&c, "custody"));
	assert_true(issue_fits(&c, "master proxy"));
}

static void
a_proxy_may_have_the_keys_of_sites(void **state)
{
	struct fixture *f = *state;
	struct issued i;
	struct node n;
	struct cert c;

	assert_int_equal(roles_add(f->r, "proxy", &f->e), 0);
	assert_int_equal(nodes_add_role(f->r, "m1", "proxy", &f->e), 0);
	assert_int_equal(issue_node(f->r, "m1", f->key, f->secret, NOW, &i,
			     &f->e),
	    0);
	c = read_back(f, &i);
	assert_true(has_grant(&c, "custody") && !has_grant(&c, "sync"));
	assert_int_equal(nodes_get(f->r, "m1", &n, &f->e), 0);
	assert_true(issue_node_may(&n, "custody"));
	assert_false(issue_node_may(&n, "sync"));
	assert_true(issue_node_may(&n, "roster"));
	assert_true(issue_roles_may("storage proxy", "custody"));
	assert_false(issue_roles_may("proxy2 storage", "custody"));
	assert_false(issue_roles_may("", "custody"));
}

static void
renewal_has_a_new_serial_and_the_set_life(void **state)
{
	struct fixture *f = *state;
	struct issued first, second;
	struct cert a, b;

	assert_int_equal(settings_set(f->r, "cluster.node_cert_ttl", "1h",
			     &f->e),
	    0);
	assert_int_equal(issue_node(f->r, "m1", f->key, f->secret, NOW, &first,
			     &f->e),
	    0);
	assert_int_equal(issue_node(f->r, "m1", f->key, f->secret, NOW, &second,
			     &f->e),
	    0);
	a = read_back(f, &first);
	b = read_back(f, &second);
	assert_true(b.serial > a.serial);
	assert_int_equal(b.not_after_s, NOW + 3600);
}

static void
another_key_is_a_conflict(void **state)
{
	struct fixture *f = *state;
	uint8_t other[KEY_SIZE] = { 9 };
	struct issued i;

	assert_int_equal(issue_node(f->r, "m1", f->key, f->secret, NOW, &i,
			     &f->e),
	    0);
	assert_int_equal(issue_node(f->r, "m1", other, f->secret, NOW, &i,
			     &f->e),
	    -1);
	assert_int_equal(f->e.code, ERR_CONFLICT);
}

static void
an_operator_never_outlives_its_grants(void **state)
{
	static const struct {
		int64_t until_s, not_after_s;
	} rows[] = {
		{ 0, NOW + 30 * DAY }, /* never: the set life */
		{ NOW + 90 * DAY, NOW + 30 * DAY },
		{ NOW + 5 * DAY, NOW + 5 * DAY },
	};
	const char *grants[] = { "exec:worker_http", "status" };
	struct fixture *f = *state;
	struct issued i;
	struct cert c;

	for (size_t n = 0; n < nitems(rows); n++) {
		char name[8];

		snprintf(name, sizeof(name), "op%zu", n);
		f->key[0] = (uint8_t)n;
		assert_int_equal(operators_add(f->r, name, grants, 2,
				     rows[n].until_s, &f->e),
		    0);
		assert_int_equal(issue_operator(f->r, name, f->key, f->secret,
				     NOW, &i, &f->e),
		    0);
		c = read_back(f, &i);
		assert_int_equal(c.not_after_s, rows[n].not_after_s);
		assert_int_equal(c.n_grants, 2);
		assert_true(has_grant(&c, "exec:worker_http"));
	}
}

static void
ended_grants_get_nothing(void **state)
{
	const char *grants[] = { "status" };
	struct fixture *f = *state;
	struct issued i;

	assert_int_equal(operators_add(f->r, "late", grants, 1, NOW - 1, &f->e),
	    0);
	assert_int_equal(issue_operator(f->r, "late", f->key, f->secret, NOW,
			     &i, &f->e),
	    -1);
	assert_int_equal(f->e.code, ERR_EXPIRED);
	assert_non_null(strstr(f->e.text, "clusterctl operator set late"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_node, setup, teardown),
		cmocka_unit_test_setup_teardown(a_master_may_tell_the_others,
		    setup, teardown),
		cmocka_unit_test_setup_teardown(
		    a_proxy_may_have_the_keys_of_sites, setup, teardown),
		cmocka_unit_test_setup_teardown(
		    renewal_has_a_new_serial_and_the_set_life, setup, teardown),
		cmocka_unit_test_setup_teardown(another_key_is_a_conflict,
		    setup, teardown),
		cmocka_unit_test_setup_teardown(
		    an_operator_never_outlives_its_grants, setup, teardown),
		cmocka_unit_test_setup_teardown(ended_grants_get_nothing, setup,
		    teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
