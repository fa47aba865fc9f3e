/* test_verbs.c: who may call what: every row, against every kind of peer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/io.h"
#include "common/net/proto.h"
#include "nodeagent/verbs.h"
#include "nodeagent/view.h"

#define NOW_S	1800000000
#define REVOKED 666

enum {
	JOINER = 1,
	NODE = 2,
	MASTER = 4,
	NOBODY_OP = 8,
	EVERY_OP = 16,
	PROXY = 32
};

/* What the table must say, written down a second time on purpose: a verb
 * that is added or widened fails here until somebody has thought twice. */
static const struct {
	const char *verb;
	unsigned allowed;
} expected[] = {
	{ "join", JOINER },
	{ "ping", NODE | MASTER | PROXY | NOBODY_OP | EVERY_OP },
	{ "status", EVERY_OP },
	{ "exec", EVERY_OP },
	{ "have", EVERY_OP },
	{ "push", EVERY_OP },
	{ "pull", EVERY_OP },
	{ "roster", NODE | MASTER | PROXY | NOBODY_OP | EVERY_OP },
	{ "sync", MASTER | EVERY_OP },
	{ "renew", NODE | MASTER | PROXY | NOBODY_OP | EVERY_OP },
	{ "seen", EVERY_OP },
	/* Keys: no operator, whatever was granted. */
	{ "custody", PROXY },
	{ "proxy", EVERY_OP },
};

static uint64_t revoked[] = { 5, REVOKED, 700 };
static struct view view = { .enrolled = true,
	.name = "here",
	.roles = "storage worker_http",
	.n_revoked = nitems(revoked),
	.revoked = revoked };

static struct cert
peer(enum cert_kind kind, const char *grant, const char *second)
{
	struct cert c = { .kind = kind,
		.name = "x",
		.serial = 42,
		.not_before_s = NOW_S - 10,
		.not_after_s = NOW_S + 10 };

	if (grant != NULL)
		snprintf(c.grants[c.n_grants++], sizeof(c.grants[0]), "%s",
		    grant);
	if (second != NULL)
		snprintf(c.grants[c.n_grants++], sizeof(c.grants[0]), "%s",
		    second);
	return c;
}

static bool
allowed(const struct verb *v, const struct cert *c, int code)
{
	struct err e = { 0 };

	if (verbs_allow(v, c, &view, NOW_S, &e) == 0)
		return true;
	assert_int_equal(e.code, code);
	assert_true(strlen(e.text) > 10);
	return false;
}

static void
each_row_is_what_was_agreed(void **unused)
{
	const struct cert node = peer(CERT_NODE, "roster", "renew");
	const struct cert master = peer(CERT_NODE, "roster", "sync");
	const struct cert proxy = peer(CERT_NODE, "roster", "custody");
	const struct cert nobody = peer(CERT_OPERATOR, NULL, NULL);
	const struct cert every = peer(CERT_OPERATOR, "*", NULL);

	(void)unused;
	assert_int_equal(verbs_count, nitems(expected));
	for (size_t i = 0; i < nitems(expected); i++) {
		const struct verb *v = verbs_find(expected[i].verb);
		unsigned got = 0;

		assert_non_null(v);
		got |= allowed(v, NULL, ERR_DENIED) ? JOINER : 0;
		got |= allowed(v, &node, ERR_DENIED) ? NODE : 0;
		got |= allowed(v, &master, ERR_DENIED) ? MASTER : 0;
		got |= allowed(v, &proxy, ERR_DENIED) ? PROXY : 0;
		got |= allowed(v, &nobody, ERR_DENIED) ? NOBODY_OP : 0;
		got |= allowed(v, &every, ERR_DENIED) ? EVERY_OP : 0;
		if (got != expected[i].allowed)
			fail_msg("%s: allowed %u, expected %u", v->name, got,
			    expected[i].allowed);
	}
}

static void
no_row_takes_a_certificate_out_of_time(void **unused)
{
	struct cert c = peer(CERT_OPERATOR, "*", NULL);
	struct cert n = peer(CERT_NODE, "*", NULL);

	(void)unused;
	c.not_after_s = n.not_after_s = NOW_S - PROTO_SKEW_S - 1;
	for (size_t i = 0; i < verbs_count; i++) {
		assert_false(allowed(&verbs_table[i], &c, ERR_EXPIRED));
		assert_false(allowed(&verbs_table[i], &n, ERR_EXPIRED));
	}
}

static void
no_row_takes_a_revoked_certificate(void **unused)
{
	struct cert c = peer(CERT_OPERATOR, "*", NULL);
	struct cert n = peer(CERT_NODE, "*", NULL);

	(void)unused;
	c.serial = n.serial = REVOKED;
	for (size_t i = 0; i < verbs_count; i++) {
		assert_false(allowed(&verbs_table[i], &c, ERR_REVOKED));
		assert_false(allowed(&verbs_table[i], &n, ERR_REVOKED));
	}
}

static void
no_row_serves_on_a_node_that_was_removed(void **unused)
{
	const struct cert operator= peer(CERT_OPERATOR, "*", NULL);
	const struct cert node = peer(CERT_NODE, "*", NULL);
	struct err e;

	(void)unused;
	view.enrolled = false;
	for (size_t i = 0; i < verbs_count; i++) {
		assert_false(allowed(&verbs_table[i], &operator, ERR_REVOKED));
		assert_false(allowed(&verbs_table[i], &node, ERR_REVOKED));
	}
	assert_int_equal(verbs_check_peer(&node, &view, NOW_S, &e), -1);
	assert_string_equal(e.text,
	    "here was removed from the cluster and takes no orders");
	view.enrolled = true;
}

static void
a_row_without_a_grant_is_closed(void **unused)
{
	const struct verb forgotten = { .name = "forgotten",
		.callers = BY_JOINER | BY_NODE | BY_OPERATOR };
	const struct cert every = peer(CERT_OPERATOR, "*", NULL);

	(void)unused;
	assert_false(allowed(&forgotten, NULL, ERR_DENIED));
	assert_false(allowed(&forgotten, &every, ERR_DENIED));
}

static void
a_grant_holds_for_its_role_only(void **unused)
{
	const struct cert here = peer(CERT_OPERATOR, "exec:worker_http", NULL);
	const struct cert there = peer(CERT_OPERATOR, "exec:master", NULL);
	const struct cert other = peer(CERT_OPERATOR, "push", NULL);

	(void)unused;
	assert_true(allowed(verbs_find("exec"), &here, 0));
	assert_false(allowed(verbs_find("exec"), &there, ERR_DENIED));
	assert_false(allowed(verbs_find("exec"), &other, ERR_DENIED));
	assert_true(allowed(verbs_find("have"), &other, 0));
	assert_false(allowed(verbs_find("pull"), &other, ERR_DENIED));
}

static void
an_unknown_verb_has_no_row(void **unused)
{
	(void)unused;
	assert_null(verbs_find("exec2"));
	assert_null(verbs_find(""));
	assert_null(verbs_find("EXEC"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_row_is_what_was_agreed),
		cmocka_unit_test(no_row_takes_a_certificate_out_of_time),
		cmocka_unit_test(no_row_takes_a_revoked_certificate),
		cmocka_unit_test(no_row_serves_on_a_node_that_was_removed),
		cmocka_unit_test(a_row_without_a_grant_is_closed),
		cmocka_unit_test(a_grant_holds_for_its_role_only),
		cmocka_unit_test(an_unknown_verb_has_no_row),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
