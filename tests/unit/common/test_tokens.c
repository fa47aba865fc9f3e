/* test_tokens.c: who may join with what, and that a use is a use. */
#include "tests/unit/common/scratch.h"

#include <sys/wait.h>
#include <fcntl.h>

#include "common/base/clock.h"
#include "common/base/io.h"
#include "common/registry/tokens.h"

#define NOW 1000000

static const uint8_t id_a[TOKEN_ID_SIZE] = "token-a";
static const uint8_t key_a[KEY_SIZE] = { 0xa }, key_b[KEY_SIZE] = { 0xb };

static struct addr peer;

static int
set_peer(void **state)
{
	struct err e;

	(void)state;
	return addr_parse("10.0.0.77:4000", 0, &peer, &e);
}

/* A good token for one storage node of any name. */
static struct token_row
token(void)
{
	struct token_row t = { .kind = HOLDER_NODE,
		.uses = 1,
		.n_roles = 1,
		.created_ms = NOW,
		.expires_ms = NOW + 1000 };

	memcpy(t.id, id_a, sizeof(t.id));
	memset(t.psk, 7, sizeof(t.psk));
	snprintf(t.roles[0], sizeof(t.roles[0]), "storage");
	return t;
}

static struct join
join(const uint8_t *key, const char *name)
{
	return (struct join){ .token_id = id_a,
		.key = key,
		.peer = &peer,
		.name = name,
		.hostname = "Some-Host.example.com",
		.port = 7400,
		.version = "1",
		.now_ms = NOW };
}

static void
a_token_comes_back_as_it_went_in(void **state)
{
	struct scratch *s = *state;
	struct token_row t = token(), back;

	snprintf(t.from, sizeof(t.from), "10.0.0.0/8");
	t.approve = true;
	assert_ok(s, tokens_add(s->r, &t, &s->e));
	assert_ok(s, tokens_get(s->r, id_a, &back, &s->e));
	assert_memory_equal(back.psk, t.psk, sizeof(t.psk));
	assert_string_equal(back.from, t.from);
	assert_string_equal(back.roles[0], "storage");
	assert_true(back.approve);
	assert_int_equal(back.used, 0);
	assert_refused(s, tokens_get(s->r, key_b, &back, &s->e), ERR_STRANGER,
	    "not known here");
}

static void
a_wrong_token_is_not_made(void **state)
{
	struct scratch *s = *state;
	struct token_row t = token();

	snprintf(t.roles[0], sizeof(t.roles[0]), "storag");
	assert_refused(s, tokens_add(s->r, &t, &s->e), ERR_NO_TARGET,
	    "did you mean 'storage'");
	t = token();
	snprintf(t.from, sizeof(t.from), "10.0.0.1/8");
	assert_refused(s, tokens_add(s->r, &t, &s->e), ERR_USAGE, "prefix");
	t = token();
	t.uses = 0;
	assert_refused(s, tokens_add(s->r, &t, &s->e), ERR_USAGE, "uses");
	t = token();
	t.uses = 2;
	snprintf(t.name, sizeof(t.name), "web1");
	assert_refused(s, tokens_add(s->r, &t, &s->e), ERR_USAGE, "one use");
	t = token();
	t.expires_ms = NOW;
	assert_refused(s, tokens_add(s->r, &t, &s->e), ERR_USAGE, "expired");
	t = token();
	t.kind = HOLDER_OPERATOR;
	snprintf(t.name, sizeof(t.name), "ann");
	assert_refused(s, tokens_add(s->r, &t, &s->e), ERR_NO_TARGET,
	    "no such operator");
}

static void
a_join_makes_the_node_the_token_says(void **state)
{
	struct scratch *s = *state;
	struct token_row t = token();
	struct join j = join(key_a, NULL);
	enum join_status status;
	struct node n;

	assert_ok(s, tokens_add(s->r, &t, &s->e));
	assert_ok(s, join_node(s->r, &j, &n, &status, &s->e));
	assert_int_equal(status, JOIN_ADMITTED);
	assert_string_equal(n.name, "some-host");
	assert_string_equal(n.addr, "10.0.0.77");
	assert_int_equal(n.agent_port, 7400);
	assert_int_equal(n.n_roles, 1);
	assert_string_equal(n.roles[0].name, "storage");
	assert_memory_equal(n.key, key_a, KEY_SIZE);
	assert_ok(s, tokens_get(s->r, id_a, &t, &s->e));
	assert_int_equal(t.used, 1);
	scratch_assert_sound(s);
}

static void
the_same_key_gets_the_same_answer(void **state)
{
	struct scratch *s = *state;
	struct token_row t = token();
	struct join j = join(key_a, "web1");
	enum join_status status;
	struct node n, again;

	assert_ok(s, tokens_add(s->r, &t, &s->e));
	assert_ok(s, join_node(s->r, &j, &n, &status, &s->e));
	/* Also past the token's time, and renamed meanwhile. */
	assert_ok(s, nodes_rename(s->r, "web1", "web2", &s->e));
	j.now_ms = NOW + 99999;
	assert_ok(s, join_node(s->r, &j, &again, &status, &s->e));
	assert_string_equal(again.uuid, n.uuid);
	assert_ok(s, tokens_get(s->r, id_a, &t, &s->e));
	assert_int_equal(t.used, 1);
}

static void
a_used_token_stays_used(void **state)
{
	struct scratch *s = *state;
	struct token_row t = token();
	struct join j = join(key_a, "web1");
	enum join_status status;
	struct node n;

	assert_ok(s, tokens_add(s->r, &t, &s->e));
	assert_ok(s, join_node(s->r, &j, &n, &status, &s->e));
	j = join(key_b, "web2");
	assert_refused(s, join_node(s->r, &j, &n, &status, &s->e), ERR_DENIED,
	    "used up (1 of 1)");
	assert_ok(s, nodes_remove(s->r, "web1", &s->e));
	assert_refused(s, join_node(s->r, &j, &n, &status, &s->e), ERR_DENIED,
	    "used up");
	j = join(key_a, "web1");
	assert_refused(s, join_node(s->r, &j, &n, &status, &s->e), ERR_DENIED,
	    "removed since");
	scratch_assert_sound(s);
}

static void
a_token_has_its_limits(void **state)
{
	struct scratch *s = *state;
	struct token_row t = token();
	struct join j = join(key_a, "web1");
	struct operator_row op;
	enum join_status status;
	struct node n;

	assert_refused(s, join_node(s->r, &j, &n, &status, &s->e), ERR_STRANGER,
	    "not known");
	snprintf(t.from, sizeof(t.from), "192.168.0.0/16");
	assert_ok(s, tokens_add(s->r, &t, &s->e));
	assert_refused(s, join_node(s->r, &j, &n, &status, &s->e), ERR_DENIED,
	    "machines in 192.168.0.0/16");
	assert_refused(s, join_operator(s->r, &j, &op, &s->e), ERR_DENIED,
	    "for a node");
	t = token();
	t.id[0] = 'x';
	snprintf(t.name, sizeof(t.name), "db1");
	assert_ok(s, tokens_add(s->r, &t, &s->e));
	j.token_id = t.id;
	assert_refused(s, join_node(s->r, &j, &n, &status, &s->e), ERR_DENIED,
	    "for node db1");
	j.name = NULL;
	j.now_ms = t.expires_ms;
	assert_refused(s, join_node(s->r, &j, &n, &status, &s->e), ERR_EXPIRED,
	    "expired at");
	t = token();
	t.id[0] = 'y';
	t.expires_ms = INT64_MAX;
	assert_ok(s, tokens_add(s->r, &t, &s->e));
	assert_ok(s, tokens_revoke(s->r, t.id, &s->e));
	j.token_id = t.id;
	j.now_ms = clock_wall_ms() + 1;
	assert_refused(s, join_node(s->r, &j, &n, &status, &s->e), ERR_EXPIRED,
	    "");
	assert_refused(s, tokens_revoke(s->r, key_b, &s->e), ERR_NO_TARGET,
	    "no such token");
}

static int
take_request(const struct join_request *req, void *arg)
{
	*(struct join_request *)arg = *req;
	return 1;
}

static void
a_known_name_with_another_key_is_a_conflict(void **state)
{
	struct scratch *s = *state;
	struct token_row t = token();
	struct join j = join(key_a, "web1");
	struct join_request req;
	enum join_status status;
	struct addr elsewhere;
	struct node n;

	t.uses = 5;
	assert_ok(s, tokens_add(s->r, &t, &s->e));
	assert_ok(s, join_node(s->r, &j, &n, &status, &s->e));
	j = join(key_b, "web1");
	assert_refused(s, join_node(s->r, &j, &n, &status, &s->e), ERR_CONFLICT,
	    "another key");
	/* A use that led nowhere is not counted. */
	assert_ok(s, tokens_get(s->r, id_a, &t, &s->e));
	assert_int_equal(t.used, 1);
	assert_ok(s, conflicts_note(s->r, &j, &s->e));
	assert_ok(s, conflicts_note(s->r, &j, &s->e));
	assert_int_equal(conflicts_each(s->r, take_request, &req, &s->e), 1);
	assert_string_equal(req.name, "web1");
	assert_memory_equal(req.key, key_b, KEY_SIZE);
	assert_false(req.copied);
	assert_ok(s, conflicts_clear(s->r, "web1", &s->e));
	assert_ok(s, conflicts_each(s->r, take_request, &req, &s->e));
	/* The node's own key, elsewhere. */
	assert_int_equal(addr_parse("10.0.0.77", 1, &elsewhere, &s->e), 0);
	for (int i = 0; i < 2; i++)
		assert_ok(s,
		    conflicts_note_copy(s->r, "web1", &elsewhere, 5, &s->e));
	assert_int_equal(conflicts_each(s->r, take_request, &req, &s->e), 1);
	assert_true(req.copied);
	assert_string_equal(req.addr, "10.0.0.77");
	assert_memory_equal(req.key, key_a, KEY_SIZE);
	assert_ok(s, conflicts_note_copy(s->r, "nix", &elsewhere, 5, &s->e));
	assert_int_equal(conflicts_clear(s->r, "web1", &s->e), 0);
	assert_ok(s, conflicts_each(s->r, take_request, &req, &s->e));
	/* One machine is one node. */
	j = join(key_a, "web2");
	j.token_id = t.id;
	t = token();
	t.id[0] = 'x';
	assert_ok(s, tokens_add(s->r, &t, &s->e));
	j.token_id = t.id;
	assert_refused(s, join_node(s->r, &j, &n, &status, &s->e), ERR_DENIED,
	    "is node web1 already");
}

static void
a_plain_node_gets_its_agent(void **state)
{
	struct scratch *s = *state;
	struct token_row t = token();
	struct join j = join(key_a, NULL);
	enum join_status status;
	struct node n;

	assert_ok(s, scratch_add_node(s, "web1", "10.0.0.5", "worker_http"));
	t.uses = 2;
	assert_ok(s, tokens_add(s->r, &t, &s->e));
	j.name = "web1";
	/* Not by wish alone: somebody must have meant this very node. */
	assert_refused(s, join_node(s->r, &j, &n, &status, &s->e), ERR_CONFLICT,
	    "web1");
	t = token();
	t.id[0] = 'x';
	snprintf(t.name, sizeof(t.name), "web1");
	assert_ok(s, tokens_add(s->r, &t, &s->e));
	j.token_id = t.id;
	assert_ok(s, join_node(s->r, &j, &n, &status, &s->e));
	assert_true(n.has_key);
	assert_int_equal(n.n_roles, 2);
	assert_string_equal(n.addr, "10.0.0.77");
}

static void
an_approval_is_waited_for(void **state)
{
	struct scratch *s = *state;
	struct token_row t = token();
	struct join j = join(key_a, "web1");
	struct join_request req;
	enum join_status status;
	struct node n;

	t.approve = true;
	t.uses = 2;
	assert_ok(s, tokens_add(s->r, &t, &s->e));
	for (int i = 0; i < 3; i++) {
		assert_ok(s, join_node(s->r, &j, &n, &status, &s->e));
		assert_int_equal(status, JOIN_PENDING);
		assert_string_equal(n.name, "web1");
		j.now_ms += 5000; /* past the token's time */
	}
	assert_refused(s, nodes_get(s->r, "web1", &n, &s->e), ERR_NO_TARGET,
	    "no such node");
	assert_int_equal(pending_each(s->r, take_request, &req, &s->e), 1);
	assert_string_equal(req.name, "web1");
	assert_refused(s, pending_approve(s->r, "web2", &s->e), ERR_NO_TARGET,
	    "did you mean 'web1'");
	assert_ok(s, pending_approve(s->r, "web1", &s->e));
	assert_ok(s, join_node(s->r, &j, &n, &status, &s->e));
	assert_int_equal(status, JOIN_ADMITTED);
	assert_string_equal(n.roles[0].name, "storage");

	j = join(key_b, "web2");
	assert_ok(s, join_node(s->r, &j, &n, &status, &s->e));
	assert_ok(s, pending_reject(s->r, "web2", &s->e));
	assert_refused(s, join_node(s->r, &j, &n, &status, &s->e), ERR_DENIED,
	    "");
	assert_ok(s, pending_each(s->r, take_request, &req, &s->e));
	scratch_assert_sound(s);
}

/* Both children hold their breath until the pipe closes. */
static void
of_racing_joins_one_wins(void **state)
{
	struct scratch *s = *state;
	struct token_row t = token();
	int n_won = 0, n_denied = 0, fds[2], status;
	char byte;

	assert_ok(s, tokens_add(s->r, &t, &s->e));
	registry_close(s->r);
	s->r = NULL;
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	for (int i = 0; i < 8; i++) {
		uint8_t key[KEY_SIZE] = { (uint8_t)(i + 1) };
		struct join j = join(key, NULL);
		enum join_status joined;
		char name[16];
		struct node n;

		if (fork() != 0)
			continue;
		close(fds[1]);
		snprintf(name, sizeof(name), "web%d", i);
		j.name = name;
		s->r = registry_open(s->db, REGISTRY_WRITE, &s->e);
		if (s->r == NULL)
			_exit(9);
		if (io_read_n(fds[0], &byte, 1) != 0)
			_exit(9);
		if (join_node(s->r, &j, &n, &joined, &s->e) == 0)
			_exit(0);
		_exit(s->e.code == ERR_DENIED ? 1 : 9);
	}
	close(fds[0]);
	close(fds[1]);
	for (int i = 0; i < 8; i++) {
		assert_true(wait(&status) > 0);
		assert_true(WIFEXITED(status));
		n_won += WEXITSTATUS(status) == 0;
		n_denied += WEXITSTATUS(status) == 1;
	}
	assert_int_equal(n_won, 1);
	assert_int_equal(n_denied, 7);
	s->r = registry_open(s->db, REGISTRY_WRITE, &s->e);
	assert_non_null(s->r);
	scratch_assert_sound(s);
}

static void
grants_fit_a_certificate(void **state)
{
	char grant[GRANT_LEN + 1] = "exec:";
	const char *grants[GRANTS_MAX];
	struct scratch *s = *state;

	memset(grant + 5, 'r', 50);
	for (size_t i = 0; i < GRANTS_MAX; i++)
		grants[i] = grant;
	assert_ok(s, operators_add(s->r, "ann", grants, 12, 0, &s->e));
	assert_refused(s,
	    operators_set(s->r, "ann", grants, GRANTS_MAX, 0, &s->e), ERR_USAGE,
	    "too long for a certificate");
}

static void
operators_join_and_are_revoked(void **state)
{
	static const char *const grants[] = { "exec:storage", "status" };
	static const char *const bad[] = { "exec me" };
	struct scratch *s = *state;
	struct token_row t = token();
	struct join j = join(key_a, NULL);
	struct operator_row op;
	uint64_t serial;

	assert_refused(s, operators_add(s->r, "ann", bad, 1, 0, &s->e),
	    ERR_USAGE, "grant 'exec me'");
	assert_refused(s, operators_add(s->r, "ann", grants, 0, 0, &s->e),
	    ERR_USAGE, "1 to 24 grants");
	assert_ok(s, operators_add(s->r, "ann", grants, 2, 5000, &s->e));
	assert_refused(s, operators_add(s->r, "ann", grants, 2, 0, &s->e),
	    ERR_CONFLICT, "exists already");
	t.kind = HOLDER_OPERATOR;
	t.n_roles = 0;
	snprintf(t.name, sizeof(t.name), "ann");
	assert_ok(s, tokens_add(s->r, &t, &s->e));
	assert_ok(s, join_operator(s->r, &j, &op, &s->e));
	assert_string_equal(op.name, "ann");
	assert_int_equal(op.n_grants, 2);
	assert_string_equal(op.grants[0], "exec:storage");
	assert_int_equal(op.until_s, 5000);
	assert_ok(s,
	    certs_issue(s->r, HOLDER_OPERATOR, "ann", key_a, 4000, &serial,
		&s->e));
	assert_ok(s, join_operator(s->r, &j, &op, &s->e));
	assert_int_equal(op.serial, serial);
	j.key = key_b;
	assert_refused(s, join_operator(s->r, &j, &op, &s->e), ERR_DENIED,
	    "used up");

	/* A second token moves the operator to a new key. */
	t.id[0] = 'x';
	assert_ok(s, tokens_add(s->r, &t, &s->e));
	j.token_id = t.id;
	assert_ok(s, join_operator(s->r, &j, &op, &s->e));
	assert_false(op.has_key);
	assert_true(scratch_is_revoked(s, serial));
	assert_ok(s,
	    certs_issue(s->r, HOLDER_OPERATOR, "ann", key_b, 4000, &serial,
		&s->e));
	assert_ok(s, operators_set(s->r, "ann", grants, 1, 0, &s->e));
	assert_ok(s, operators_get(s->r, "ann", &op, &s->e));
	assert_int_equal(op.n_grants, 1);

	assert_ok(s, operators_revoke(s->r, "ann", &s->e));
	assert_true(scratch_is_revoked(s, serial));
	assert_refused(s, operators_get(s->r, "ann", &op, &s->e), ERR_NO_TARGET,
	    "no such operator");
	assert_refused(s, join_operator(s->r, &j, &op, &s->e), ERR_DENIED,
	    "revoked since");
	scratch_assert_sound(s);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		scratch_test(a_token_comes_back_as_it_went_in),
		scratch_test(a_wrong_token_is_not_made),
		scratch_test(a_join_makes_the_node_the_token_says),
		scratch_test(the_same_key_gets_the_same_answer),
		scratch_test(a_used_token_stays_used),
		scratch_test(a_token_has_its_limits),
		scratch_test(a_known_name_with_another_key_is_a_conflict),
		scratch_test(a_plain_node_gets_its_agent),
		scratch_test(an_approval_is_waited_for),
		scratch_test(of_racing_joins_one_wins),
		scratch_test(grants_fit_a_certificate),
		scratch_test(operators_join_and_are_revoked),
	};

	return cmocka_run_group_tests_name("tokens", tests, set_peer, NULL);
}
