/* test_view.c: what an agent takes out of a roster for itself. */
#include "tests/unit/common/scratch.h"

#include "common/registry/certs.h"
#include "common/registry/roles.h"
#include "common/registry/roster.h"
#include "nodeagent/view.h"

static uint8_t authority[KEY_SIZE], secret[64];
static const uint8_t own_key[KEY_SIZE] = { 0xab, 1 },
		     master_key[KEY_SIZE] = { 0xcd, 2 };

static int
make_keys(void **state)
{
	(void)state;
	return sodium_init() == -1 ? -1 :
				     crypto_sign_keypair(authority, secret);
}

static void
load(struct scratch *s, struct view *v)
{
	char path[PATH_MAX];

	scratch_path(s, "roster", path);
	assert_ok(s, roster_write(s->r, secret, 1700000000, path, &s->e));
	assert_ok(s, view_load(v, path, authority, own_key, &s->e));
}

static uint64_t
add_with_key(struct scratch *s, const char *name, const char *addr,
    const char *role, const uint8_t *key)
{
	uint64_t serial;

	assert_ok(s, scratch_add_node(s, name, addr, role));
	assert_ok(s, nodes_set(s->r, name, "agent_port", "7400", &s->e));
	assert_ok(s,
	    certs_issue(s->r, HOLDER_NODE, name, key, 2000000000, &serial,
		&s->e));
	return serial;
}

static void
its_own_row_the_masters_and_the_revoked(void **state)
{
	static const uint8_t other_key[KEY_SIZE] = { 3 };
	struct scratch *s = *state;
	struct view v = { 0 };
	char text[ADDR_TEXT_MAX];
	uint64_t lost;

	/* m1, which is there already, has no key: nobody can ask it. */
	add_with_key(s, "m2", "10.0.0.2", ROLE_MASTER, master_key);
	add_with_key(s, "master", "10.0.0.3", "storage", other_key);
	add_with_key(s, "web1", "fd00::4", "worker_http", own_key);
	assert_ok(s, nodes_add_role(s->r, "web1", "storage", &s->e));
	lost = add_with_key(s, "gone", "10.0.0.5", "storage",
	    (const uint8_t[KEY_SIZE]){ 4 });
	assert_ok(s, nodes_remove(s->r, "gone", &s->e));

	load(s, &v);
	assert_true(v.enrolled);
	assert_string_equal(v.name, "web1");
	assert_string_equal(v.roles, "storage worker_http");
	addr_format(&v.addr, text);
	assert_string_equal(text, "[fd00::4]:7400");
	assert_int_equal(v.n_masters, 1);
	assert_string_equal(v.masters[0].name, "m2");
	assert_memory_equal(v.masters[0].key, master_key, KEY_SIZE);
	assert_false(v.masters[0].is_self);
	assert_int_equal(v.n_revoked, 1);
	assert_true(view_is_revoked(&v, lost));
	view_fini(&v);
}

static void
a_master_is_among_them_and_a_row_may_go(void **state)
{
	struct scratch *s = *state;
	struct view v = { 0 };

	add_with_key(s, "m2", "10.0.0.2", ROLE_MASTER, own_key);
	load(s, &v);
	assert_int_equal(v.n_masters, 1);
	assert_true(v.masters[0].is_self);
	assert_string_equal(v.roles, "master");

	assert_ok(s, nodes_remove(s->r, "m2", &s->e));
	load(s, &v);
	assert_false(v.enrolled);
	assert_string_equal(v.name, "m2");
	assert_int_equal(v.n_masters, 0);
	view_fini(&v);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		scratch_test(its_own_row_the_masters_and_the_revoked),
		scratch_test(a_master_is_among_them_and_a_row_may_go),
	};

	return cmocka_run_group_tests_name("view", tests, make_keys, NULL);
}
