/* test_targets.c: names, roles and addresses of a small cluster. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clusterctl/directory.h"
#include "common/base/io.h"

static const struct {
	const char *name, *addr, *role;
	enum node_state state;
	bool agent;
} nodes[] = {
	{ "web10", "10.0.0.10", "worker_http", NODE_UP, true },
	{ "web2", "10.0.0.2", "worker_http", NODE_UP, true },
	{ "web1", "10.0.0.1", "worker_http", NODE_MAINTENANCE, true },
	{ "db1", "fd00::1", "worker_mysql", NODE_UP, false },
};

static struct directory *
small_cluster(void)
{
	struct directory *d = directory_new();
	struct err e;

	directory_add_role(d, "worker_http");
	directory_add_role(d, "worker_mysql");
	for (size_t i = 0; i < nitems(nodes); i++) {
		struct node n = { 0 };

		snprintf(n.name, sizeof(n.name), "%s", nodes[i].name);
		snprintf(n.addr, sizeof(n.addr), "%s", nodes[i].addr);
		n.agent_port = nodes[i].agent ? 7400 : 0;
		n.has_key = nodes[i].agent;
		n.state = nodes[i].state;
		n.n_roles = 1;
		snprintf(n.roles[0].name, sizeof(n.roles[0].name), "%s",
		    nodes[i].role);
		assert_int_equal(directory_add_node(d, &n, &e), 0);
	}
	directory_seal(d);
	return d;
}

static void
nodes_are_found(void **state)
{
	struct directory *d = small_cluster();
	const struct dir_node *n = directory_find(d, "db1");
	struct err e;

	(void)state;
	assert_non_null(n);
	assert_false(n->has_agent);
	assert_null(directory_find(d, "web3"));
	assert_null(directory_get(d, "web3", &e));
	assert_int_equal(e.code, ERR_NO_TARGET);
	assert_non_null(strstr(e.text, "no such node web3; did you mean web"));
	assert_int_equal(directory_check_role(d, "worker_htp", &e), -1);
	assert_string_equal(e.text,
	    "no such role worker_htp; did you mean worker_http?");
	directory_free(d);
}

static void
expressions_resolve(void **state)
{
	static const struct {
		const char *text, *folded; /* NULL: refused */
	} cases[] = {
		{ "web[1-2]", "web[1-2]" },
		{ "@worker_http", "web[1-2,10]" },
		{ "@worker_http!web2", "web[1,10]" },
		{ "10.0.0.2", "web2" },
		{ "fd00::1", "db1" },
		{ "[fd00::1]:7443", "db1" },
		{ "web*", "web[1-2,10]" },
		{ "@*", "db1,web[1-2,10]" },
		{ "web3", NULL },
		{ "@nosuch", NULL },
		{ "web1!wbe2", NULL }, /* a misspelt exclusion is no joke */
		{ "10.0.0.3", NULL },
	};
	struct directory *d = small_cluster();
	struct nodeset_resolver r = directory_resolver(d);
	struct err e;

	(void)state;
	for (size_t i = 0; i < nitems(cases); i++) {
		struct nodeset *set = NULL;
		char *folded = NULL;
		int rv = nodeset_parse(cases[i].text, &r, &set, &e);

		assert_int_equal(rv, cases[i].folded != NULL ? 0 : -1);
		if (rv == -1) {
			assert_int_equal(e.code, ERR_NO_TARGET);
			continue;
		}
		assert_int_equal(nodeset_fold(set, ",", &folded, &e), 0);
		assert_string_equal(folded, cases[i].folded);
		free(folded);
		nodeset_free(set);
	}
	directory_free(d);
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(nodes_are_found),
		cmocka_unit_test(expressions_resolve),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
