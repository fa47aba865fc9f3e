/* test_nodeset_resolve.c: expressions against a cluster: roles, wildcards,
 * addresses, and names that nobody has. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/io.h"
#include "common/nodeset/nodeset.h"

static const struct {
	const char *role, *nodes;
} roles[] = {
	{ "mds", "example[4-5]" },
	{ "oss", "example[6-9]" },
	{ "io", "example[4-9]" },
	{ "chassis1", "node[0-9]" },
	{ "chassis2", "node[10-19]" },
	{ "chassis3", "node[20-29]" },
	{ "chassis5", "node[40-49]" },
	{ "deep", "foo[1-2],foo1-ib0,foo2-ib0,foo1-ib1,foo2-ib1" },
	{ "empty", "" },
	{ "rest", "node0541,web05,app1" },
};

static int n_asked; /* for all nodes */

static int
members(void *arg, const char *role, struct nodeset *s, struct err *e)
{
	bool found = false;

	(void)arg;
	n_asked += role == NULL;
	for (size_t i = 0; i < nitems(roles); i++) {
		struct nodeset *nodes;

		if (role != NULL && strcmp(role, roles[i].role) != 0)
			continue;
		found = true;
		assert_int_equal(nodeset_parse(roles[i].nodes, NULL, &nodes, e),
		    0);
		assert_int_equal(nodeset_combine(s, NODESET_UNION, nodes, e),
		    0);
		nodeset_free(nodes);
	}
	/* Names with signs in them are data, and never read as expressions. */
	if (role == NULL && nodeset_add(s, "odd*", e) == -1)
		return -1;
	return found ? 0 : err_set(e, ERR_NO_TARGET, "no such role %s", role);
}

static const char *
address(void *arg, const char *text)
{
	(void)arg;
	if (strcmp(text, "10.0.0.5") == 0 || strcmp(text, "2a03::5") == 0 ||
	    strcmp(text, "[2a03::5]:7400") == 0 ||
	    strcmp(text, "10.0.0.5:7400") == 0)
		return "web05";
	return NULL;
}

static const struct nodeset_resolver cluster = { NULL, members, address,
	false };
static const struct nodeset_resolver lenient = { NULL, members, address, true };

static void
expect(const struct nodeset_resolver *r, const char *text, const char *want)
{
	struct nodeset *s;
	struct err e;
	char *got;

	if (nodeset_parse(text, r, &s, &e) == -1)
		fail_msg("'%s': %s", text, e.text);
	assert_int_equal(nodeset_fold(s, ",", &got, &e), 0);
	if (strcmp(got, want) != 0)
		fail_msg("'%s' is '%s', not '%s'", text, got, want);
	free(got);
	nodeset_free(s);
}

static void
resolves(void **state)
{
	static const char *const rows[][2] = {
		/* C10 */
		{ "@chassis[1-3,5]&@chassis[2-3]", "node[10-29]" },
		{ "@io!@mds", "example[6-9]" },
		{ "@io!@mds^@oss", "" },
		{ "@empty", "" },
		{ "@io!example4", "example[5-9]" },
		{ " @mds , web05 ", "example[4-5],web05" },
		/* C12: a mask is one operand */
		{ "foo*!foo[1-2]-ib0", "foo[1-2],foo[1-2]-ib1" },
		{ "foo*-ib*!foo[1-2]-ib0", "foo[1-2]-ib1" },
		{ "*!*", "" },
		{ "*^*", "" },
		{ "foo?", "foo[1-2]" },
		{ "foo[1-2]-*", "foo[1-2]-ib[0-1]" },
		{ "*5", "example5,node[5,15,25,45],web05" },
		{ "web05,*1-*,web05", "foo1-ib[0-1],web05" },
		/* C13: wildcards in names are not read again */
		{ "@*&odd*", "odd*" },
		{ "*!@io!@chassis[1-3,5]!@deep!@rest", "odd*" },
		/* An address names the node that has it. */
		{ "10.0.0.5", "web05" },
		{ "2a03::5,app1", "app1,web05" },
		{ "[2a03::5]:7400", "web05" },
		{ "10.0.0.5:7400", "web05" },
		{ "@rest!10.0.0.5", "app1,node0541" },
		{ "", "" },
	};

	(void)state;
	for (size_t i = 0; i < nitems(rows); i++)
		expect(&cluster, rows[i][0], rows[i][1]);
}

static void
reports_the_unknown(void **state)
{
	static const struct {
		const char *text;
		int code;
		const char *says;
	} rows[] = {
		/* C23 to C26 */
		{ "web5", ERR_NO_TARGET,
		    "no such node web5; did you mean web05?" },
		{ "minino021", ERR_NO_TARGET, "no such node minino021" },
		{ "app1,host1a:host2b:host3", ERR_NO_TARGET,
		    "no such node host1a:host2b:host3" },
		{ "@io!poduction", ERR_NO_TARGET,
		    "cannot exclude: no such node poduction" },
		{ "node541", ERR_NO_TARGET,
		    "no such node node541; did you mean node0541?" },
		{ "node[8-12,30-32]", ERR_NO_TARGET,
		    "no such nodes: node[30-32] (3); did you mean node0?" },
		{ "@nope", ERR_NO_TARGET, "no such role nope" },
		{ "@io!@mdss", ERR_NO_TARGET, "no such role mdss" },
		{ "zz*", ERR_NO_TARGET, "no node matches 'zz*'" },
		{ "@io!zz*", ERR_NO_TARGET, "no node matches 'zz*'" },
		{ "io", ERR_NO_TARGET,
		    "no such node io; io is a role: write @io" },
		{ "web05 app1", ERR_NO_TARGET,
		    "no such node web05 app1; names are parted by commas" },
		{ "10.0.0.6", ERR_NO_TARGET, "no such node 10.0.0.6" },
		{ "app1&web4", ERR_NO_TARGET,
		    "no such node web4; did you mean web05?" },
		{ "app[1-2", ERR_USAGE,
		    "bad node set 'app[1-2': a '[' has no ']'" },
		{ "[1-2000]*", ERR_USAGE,
		    "a range with a wildcard makes more than 1000 masks" },
		{ "@r[1-20000]", ERR_USAGE, "more than 10000 roles at once" },
	};
	struct nodeset *s;
	struct err e;

	(void)state;
	for (size_t i = 0; i < nitems(rows); i++) {
		if (nodeset_parse(rows[i].text, &cluster, &s, &e) == 0)
			fail_msg("'%s' was taken", rows[i].text);
		assert_string_equal(e.text, rows[i].says);
		assert_int_equal(e.code, rows[i].code);
	}
}

static void
unknown_may_be_allowed(void **state)
{
	(void)state;
	expect(&lenient, "app[1-3],10.0.0.5,10.0.0.6",
	    "10.0.0.6,app[1-3],web05");
	expect(&lenient, "zz*", "");
	expect(&lenient, "a[1-200000]!app1", "a[1-200000]");
}

static void
asks_for_all_nodes_once(void **state)
{
	(void)state;
	n_asked = 0;
	expect(&cluster, "app1,foo*,@*!node*,web05!foo*!example*!odd*",
	    "app1,web05");
	assert_int_equal(n_asked, 1);
	n_asked = 0;
	expect(&cluster, "@mds", "example[4-5]");
	assert_int_equal(n_asked, 0);
}

/* C21: 10,001 hosts, all of them known, filtered. */
static int
big_members(void *arg, const char *role, struct nodeset *s, struct err *e)
{
	char name[32];

	(void)arg;
	(void)role;
	for (int i = 0; i <= 10000; i++) {
		/* As text sorts: n1, n10, n100, ... is no order of numbers. */
		snprintf(name, sizeof(name), "n%d", i * 7 % 10001);
		if (nodeset_add(s, name, e) == -1)
			return -1;
	}
	return 0;
}

static void
filters_10001_hosts(void **state)
{
	static const struct nodeset_resolver big = { NULL, big_members, NULL,
		false };

	(void)state;
	expect(&big, "n*!n[1-9999]", "n[0,10000]");
	expect(&big, "@*&n[5-9999/5000],n7", "n[5,7,5005]");
}

/* C15 */
static void
folds_into_roles(void **state)
{
	static const char *const rows[][2] = {
		{ "example[4-5]", "@mds" },
		{ "example[4-9]", "@io" },
		{ "example[4-9,12]", "@io,example12" },
		{ "example[4-8]", "@mds,example[6-8]" },
		{ "node[0-29]", "@chassis[1-3]" },
		{ "node[0-9,20-29],example[6-9],x", "@chassis[1,3],@oss,x" },
		{ "web1", "web1" },
		{ "", "" },
	};
	const char *names[nitems(roles)];

	(void)state;
	for (size_t i = 0; i < nitems(roles); i++)
		names[i] = roles[i].role;
	for (size_t i = 0; i < nitems(rows); i++) {
		struct nodeset *s;
		struct err e;
		char *text;

		assert_int_equal(nodeset_parse(rows[i][0], NULL, &s, &e), 0);
		assert_int_equal(nodeset_fold_roles(s, &cluster, names,
				     nitems(names), ",", &text, &e),
		    0);
		assert_string_equal(text, rows[i][1]);
		free(text);
		nodeset_free(s);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(resolves),
		cmocka_unit_test(reports_the_unknown),
		cmocka_unit_test(unknown_may_be_allowed),
		cmocka_unit_test(asks_for_all_nodes_once),
		cmocka_unit_test(filters_10001_hosts),
		cmocka_unit_test(folds_into_roles),
	};

	return cmocka_run_group_tests_name("nodeset_resolve", tests, NULL,
	    NULL);
}
