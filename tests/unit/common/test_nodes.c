/* test_nodes.c: nodes and the roles they have: the rules at each entrance. */
#include "tests/unit/common/scratch.h"

#include "common/registry/certs.h"
#include "common/registry/roles.h"

static const uint8_t key_a[KEY_SIZE] = { 0xa }, key_b[KEY_SIZE] = { 0xb };

static struct node
get(struct scratch *s, const char *name)
{
	struct node n;

	assert_ok(s, nodes_get(s->r, name, &n, &s->e));
	return n;
}

static void
a_node_comes_back_as_it_went_in(void **state)
{
	struct scratch *s = *state;
	struct node n, back;

	node_init(&n, "web01");
	snprintf(n.addr, sizeof(n.addr), "FD00:0:0::1");
	n.agent_port = 7400;
	n.has_key = true;
	memcpy(n.key, key_a, KEY_SIZE);
	n.weight = 5;
	n.n_roles = 2;
	snprintf(n.roles[0].name, 64, "worker_http");
	n.roles[0].port = 9000;
	snprintf(n.roles[1].name, 64, "storage");
	assert_ok(s, nodes_add(s->r, &n, &s->e));
	back = get(s, "web01");
	assert_string_equal(back.uuid, n.uuid);
	assert_string_equal(back.addr, "fd00::1");
	assert_int_equal(back.weight, 5);
	assert_int_equal(back.maxconn, 0);
	assert_int_equal(back.n_roles, 2);
	assert_string_equal(back.roles[0].name, "storage");
	assert_int_equal(node_find_role(&back, "worker_http")->port, 9000);
	assert_null(node_find_role(&back, "master"));
	assert_true(back.has_key);
	assert_memory_equal(back.key, key_a, KEY_SIZE);
	assert_ok(s, nodes_get_key(s->r, key_a, &back, &s->e));
	assert_string_equal(back.name, "web01");
	assert_refused(s, nodes_get_key(s->r, key_b, &back, &s->e),
	    ERR_NO_TARGET, "no node has this key");
}

static void
a_taken_name_key_or_address_is_refused(void **state)
{
	struct scratch *s = *state;
	struct node n;

	assert_ok(s, scratch_add_node(s, "web01", "10.0.0.2", "worker_http"));
	assert_refused(s,
	    scratch_add_node(s, "web01", "10.0.0.3", "worker_http"),
	    ERR_CONFLICT, "web01 exists already");
	assert_refused(s, scratch_add_node(s, "Web", "10.0.0.3", "storage"),
	    ERR_USAGE, "node name");
	assert_refused(s, scratch_add_node(s, "w", "10.0.0.3:80", "storage"),
	    ERR_USAGE, "without a port");
	assert_refused(s, scratch_add_node(s, "w", "web.example", "storage"),
	    ERR_USAGE, "not an IP address");
	assert_refused(s, scratch_add_node(s, "w", "10.0.0.3", "storag"),
	    ERR_NO_TARGET, "did you mean 'storage'");
	node_init(&n, "one");
	snprintf(n.addr, sizeof(n.addr), "10.0.0.9");
	n.agent_port = 7400;
	n.has_key = true;
	memcpy(n.key, key_a, KEY_SIZE);
	assert_ok(s, nodes_add(s->r, &n, &s->e));
	snprintf(n.name, sizeof(n.name), "two");
	uuid_make(n.uuid);
	assert_refused(s, nodes_add(s->r, &n, &s->e), ERR_CONFLICT,
	    "key of two is that of node one");
	n.key[0] = 9;
	assert_refused(s, nodes_add(s->r, &n, &s->e), ERR_CONFLICT,
	    "10.0.0.9 port 7400 is the agent of node one");
	assert_refused(s, nodes_get(s->r, "onee", &n, &s->e), ERR_NO_TARGET,
	    "no such node 'onee'; did you mean 'one'?");
}

static void
values_are_checked_and_kept(void **state)
{
	struct scratch *s = *state;
	int64_t was;

	assert_ok(s, scratch_add_node(s, "w", "10.0.0.2", "worker_http"));
	assert_ok(s, nodes_set(s->r, "w", "weight", "7", &s->e));
	assert_ok(s, nodes_set(s->r, "w", "maxconn", "50", &s->e));
	assert_ok(s, nodes_set(s->r, "w", "address", "10.0.0.4", &s->e));
	assert_ok(s, nodes_set_port(s->r, "w", "worker_http", 81, &s->e));
	assert_int_equal(get(s, "w").weight, 7);
	assert_int_equal(get(s, "w").maxconn, 50);
	assert_string_equal(get(s, "w").addr, "10.0.0.4");
	assert_int_equal(get(s, "w").roles[0].port, 81);
	was = scratch_revision(s);
	assert_refused(s, nodes_set(s->r, "w", "weight", "0", &s->e), ERR_USAGE,
	    "weight '0' is not 1..256");
	assert_refused(s, nodes_set(s->r, "w", "wieght", "1", &s->e), ERR_USAGE,
	    "did you mean 'weight'");
	assert_refused(s, nodes_set(s->r, "w", "agent_port", "70000", &s->e),
	    ERR_USAGE, "65535");
	assert_refused(s, nodes_set_port(s->r, "w", "storage", 1, &s->e),
	    ERR_NO_TARGET, "w has no role storage");
	assert_ok(s, nodes_set(s->r, "w", "weight", "7", &s->e));
	assert_int_equal(scratch_revision(s), was);
	assert_ok(s, nodes_set(s->r, "w", "maxconn", "none", &s->e));
	assert_int_equal(get(s, "w").maxconn, 0);
}

static void
states_change_and_say_since_when(void **state)
{
	struct scratch *s = *state;
	enum node_state parsed;
	int64_t since;

	assert_ok(s, nodes_set_state(s->r, "m1", NODE_DRAIN, &s->e));
	assert_int_equal(get(s, "m1").state, NODE_DRAIN);
	since = get(s, "m1").state_since_ms;
	assert_true(since > 0);
	assert_ok(s, nodes_set_state(s->r, "m1", NODE_DRAIN, &s->e));
	assert_int_equal(get(s, "m1").state_since_ms, since);
	assert_refused(s, nodes_set_state(s->r, "m2", NODE_UP, &s->e),
	    ERR_NO_TARGET, "did you mean 'm1'");
	assert_refused(s, node_state_parse("down", &parsed, &s->e), ERR_USAGE,
	    "up, drain or maintenance");
}

static void
roles_come_and_go_but_a_master_stays(void **state)
{
	struct scratch *s = *state;

	assert_ok(s, nodes_add_role(s->r, "m1", "storage", &s->e));
	assert_ok(s, nodes_add_role(s->r, "m1", "storage", &s->e));
	assert_int_equal(get(s, "m1").n_roles, 2);
	assert_refused(s, nodes_add_role(s->r, "m1", "stor", &s->e),
	    ERR_NO_TARGET, "no such role");
	assert_ok(s, nodes_remove_role(s->r, "m1", "storage", &s->e));
	assert_refused(s, nodes_remove_role(s->r, "m1", "storage", &s->e),
	    ERR_NO_TARGET, "has no role storage");
	assert_refused(s, nodes_remove_role(s->r, "m1", "master", &s->e),
	    ERR_USAGE, "only master");
	assert_refused(s, nodes_remove(s->r, "m1", &s->e), ERR_USAGE,
	    "only master");
	assert_ok(s, scratch_add_node(s, "m2", "10.0.0.2", "master"));
	assert_ok(s, nodes_remove(s->r, "m1", &s->e));
	scratch_assert_sound(s);
}

static void
a_renamed_node_is_the_same_node(void **state)
{
	struct scratch *s = *state;
	struct node was = get(s, "m1");

	assert_ok(s, scratch_add_node(s, "w", "10.0.0.2", "storage"));
	assert_ok(s, nodes_rename(s->r, "m1", "front", &s->e));
	assert_string_equal(get(s, "front").uuid, was.uuid);
	assert_int_equal(get(s, "front").n_roles, 1);
	assert_refused(s, nodes_rename(s->r, "front", "w", &s->e), ERR_CONFLICT,
	    "w exists already");
	assert_refused(s, nodes_rename(s->r, "front", "-x", &s->e), ERR_USAGE,
	    "not valid");
}

static int
count_revoked(uint64_t serial, int64_t not_after_s, void *arg)
{
	(void)serial;
	assert_int_equal(not_after_s, 2000);
	++*(int *)arg;
	return 0;
}

/* Salt's CVE-2016-9639: a deleted minion's key was inherited. */
static void
nothing_is_inherited(void **state)
{
	struct scratch *s = *state;
	uint64_t first, second, third;
	struct node_sight sight = { .name = "w", .at_ms = 5 };
	struct node n;
	int n_revoked = 0;

	assert_ok(s, scratch_add_node(s, "w", "10.0.0.2", "storage"));
	assert_ok(s,
	    certs_issue(s->r, HOLDER_NODE, "w", key_a, 2000, &first, &s->e));
	assert_ok(s,
	    certs_issue(s->r, HOLDER_NODE, "w", key_a, 2000, &second, &s->e));
	assert_int_equal(second, first + 1);
	assert_int_equal(get(s, "w").serial, second);
	assert_int_equal(get(s, "w").cert_not_after_s, 2000);
	assert_refused(s,
	    certs_issue(s->r, HOLDER_NODE, "w", key_b, 2000, &third, &s->e),
	    ERR_CONFLICT, "another key");
	assert_ok(s, nodes_set_state(s->r, "w", NODE_MAINTENANCE, &s->e));
	assert_ok(s, nodes_set(s->r, "w", "weight", "9", &s->e));
	assert_ok(s, nodes_saw(s->r, &sight, &s->e));
	assert_false(scratch_is_revoked(s, first));

	assert_ok(s, nodes_remove(s->r, "w", &s->e));
	assert_ok(s,
	    certs_revoked(s->r, 1999, count_revoked, &n_revoked, &s->e));
	assert_int_equal(n_revoked, 2);

	node_init(&n, "w");
	snprintf(n.addr, sizeof(n.addr), "10.0.0.2");
	assert_ok(s, nodes_add(s->r, &n, &s->e));
	n = get(s, "w");
	assert_int_equal(n.n_roles, 0);
	assert_int_equal(n.serial, 0);
	assert_int_equal(n.state, NODE_UP);
	assert_int_equal(n.weight, 1);
	assert_false(n.has_key);
	assert_ok(s,
	    certs_issue(s->r, HOLDER_NODE, "w", key_b, 3000, &third, &s->e));
	assert_int_equal(third, second + 1);
	assert_true(scratch_is_revoked(s, first));
	assert_false(scratch_is_revoked(s, third));
	scratch_assert_sound(s);
}

static void
a_revocation_is_listed_until_it_expires(void **state)
{
	struct scratch *s = *state;
	uint64_t serial;
	int n_revoked = 0;

	assert_ok(s, scratch_add_node(s, "w", "10.0.0.2", "storage"));
	assert_ok(s,
	    certs_issue(s->r, HOLDER_NODE, "w", key_a, 2000, &serial, &s->e));
	assert_ok(s, nodes_remove(s->r, "w", &s->e));
	assert_ok(s,
	    certs_revoked(s->r, 2001, count_revoked, &n_revoked, &s->e));
	assert_int_equal(n_revoked, 0);
	assert_ok(s,
	    certs_revoked(s->r, 2000, count_revoked, &n_revoked, &s->e));
	assert_int_equal(n_revoked, 1);
}

static int
take_sight(const struct node_sight *sight, void *arg)
{
	*(struct node_sight *)arg = *sight;
	return 1;
}

static void
seeing_a_node_is_no_change(void **state)
{
	struct scratch *s = *state;
	struct node_sight sight = { .name = "m1",
		.at_ms = 7,
		.skew_ms = -3,
		.version = "1.0" };
	int64_t was = scratch_revision(s);

	assert_ok(s, nodes_saw(s->r, &sight, &s->e));
	sight.at_ms = 8;
	assert_ok(s, nodes_saw(s->r, &sight, &s->e));
	assert_int_equal(scratch_revision(s), was);
	sight.at_ms = 0;
	assert_int_equal(nodes_sights(s->r, take_sight, &sight, &s->e), 1);
	assert_int_equal(sight.at_ms, 8);
	assert_int_equal(sight.skew_ms, -3);
}

struct summary {
	char text[200];
	size_t len;
};

static void
add_text(struct summary *s, const char *name, unsigned number)
{
	s->len += (size_t)snprintf(s->text + s->len, sizeof(s->text) - s->len,
	    "%s:%u ", name, number);
}

static int
add_summary(const struct node *n, void *arg)
{
	add_text(arg, n->name, (unsigned)n->serial);
	for (size_t i = 0; i < n->n_roles; i++)
		add_text(arg, n->roles[i].name, n->roles[i].port);
	return 0;
}

static void
a_walk_gives_each_node_once_with_all_it_has(void **state)
{
	struct scratch *s = *state;
	struct summary all = { .len = 0 };
	struct node bare;
	uint64_t serial;

	node_init(&bare, "a");
	snprintf(bare.addr, sizeof(bare.addr), "10.0.0.2");
	assert_ok(s, nodes_add(s->r, &bare, &s->e));
	assert_ok(s, scratch_add_node(s, "b", "10.0.0.3", "worker_http"));
	assert_ok(s, nodes_add_role(s->r, "b", "storage", &s->e));
	assert_ok(s, nodes_set_port(s->r, "b", "worker_http", 80, &s->e));
	assert_ok(s, scratch_add_node(s, "c", "10.0.0.4", "storage"));
	for (int i = 0; i < 3; i++)
		assert_ok(s,
		    certs_issue(s->r, HOLDER_NODE, "b", key_a, 2000, &serial,
			&s->e));
	assert_ok(s, nodes_each(s->r, add_summary, &all, &s->e));
	assert_string_equal(all.text,
	    "a:0 b:3 storage:0 worker_http:80 c:0 storage:0 m1:0 master:0 ");
}

struct names {
	struct scratch *s;
	int n_inner;
	char text[200];
};

static int
count_node(const struct node *n, void *arg)
{
	(void)n;
	++*(int *)arg;
	return 0;
}

static int
join_names(const struct node *n, void *arg)
{
	struct names *names = arg;
	size_t len = strlen(names->text);

	snprintf(names->text + len, sizeof(names->text) - len, "%s ", n->name);
	return nodes_each(names->s->r, count_node, &names->n_inner,
	    &names->s->e);
}

static void
walks_go_by_name_and_may_ask_again(void **state)
{
	struct scratch *s = *state;
	struct names names = { .s = s };

	assert_ok(s, scratch_add_node(s, "a", "10.0.0.2", "storage"));
	assert_ok(s, scratch_add_node(s, "z", "10.0.0.3", "storage"));
	assert_ok(s, nodes_each(s->r, join_names, &names, &s->e));
	assert_string_equal(names.text, "a m1 z ");
	assert_int_equal(names.n_inner, 9);
}

static void
a_unix_socket_is_a_node(void **state)
{
	struct scratch *s = *state;
	struct node n;

	assert_ok(s,
	    scratch_add_node(s, "php", "unix:/run/app.sock", "worker_http"));
	n = get(s, "php");
	assert_string_equal(n.addr, "unix:/run/app.sock");
	assert_true(node_is_unix(&n));
	assert_refused(s, nodes_set_port(s->r, "php", "worker_http", 80, &s->e),
	    ERR_USAGE, "has no port");
	assert_refused(s, nodes_set(s->r, "php", "agent_port", "7400", &s->e),
	    ERR_USAGE, "no agent listens there");
	assert_refused(s, nodes_set(s->r, "php", "address", "unix:app", &s->e),
	    ERR_USAGE, "absolute path");
	/* It may become an address, and one a socket; not with an agent. */
	assert_ok(s, nodes_set(s->r, "php", "address", "10.0.0.9", &s->e));
	assert_ok(s, nodes_set_port(s->r, "php", "worker_http", 81, &s->e));
	assert_refused(s, nodes_set(s->r, "php", "address", "unix:/a", &s->e),
	    ERR_USAGE, "--port worker_http=role");
	assert_ok(s, nodes_set_port(s->r, "php", "worker_http", 0, &s->e));
	assert_ok(s, nodes_set(s->r, "php", "address", "unix:/a", &s->e));
	node_init(&n, "agent");
	snprintf(n.addr, sizeof(n.addr), "unix:/run/agent");
	n.agent_port = 7400;
	assert_refused(s, nodes_add(s->r, &n, &s->e), ERR_USAGE,
	    "its address is an IP");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		scratch_test(a_node_comes_back_as_it_went_in),
		scratch_test(a_taken_name_key_or_address_is_refused),
		scratch_test(values_are_checked_and_kept),
		scratch_test(states_change_and_say_since_when),
		scratch_test(roles_come_and_go_but_a_master_stays),
		scratch_test(a_renamed_node_is_the_same_node),
		scratch_test(nothing_is_inherited),
		scratch_test(a_revocation_is_listed_until_it_expires),
		scratch_test(seeing_a_node_is_no_change),
		scratch_test(a_walk_gives_each_node_once_with_all_it_has),
		scratch_test(walks_go_by_name_and_may_ask_again),
		scratch_test(a_unix_socket_is_a_node),
	};

	return cmocka_run_group_tests_name("nodes", tests, NULL, NULL);
}
