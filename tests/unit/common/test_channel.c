/*
 * test_channel.c: whole sessions over socket pairs and loopback, with a real
 * event loop, and what strangers, thieves and broken peers get.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <arpa/inet.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <event2/event.h>
#include <sodium.h>

#include "common/base/clock.h"
#include "common/base/io.h"
#include "common/net/channel.h"
#include "common/net/frame.h"
#include "common/net/noise.h"

#define PATIENCE_MS 10000

/* One end of a session and all that happened to it. */
struct end {
	struct channel *channel; /* NULL once closed */
	bool opened, closed, clean;
	struct err why;
	struct cert peer; /* as of `opened`; serial 0: none */
	bool joins;
	int64_t skew_ms;
	size_t n_records, n_bytes, n_drained;
	enum record_type last_type;
	uint8_t last[PROTO_RECORD_MAX];
	size_t last_size;
	/* What to do in a callback. */
	bool echo, pause_each, close_on_record, abort_on_open;
};

static struct {
	struct event_base *base;
	uint8_t authority_secret[crypto_sign_SECRETKEYBYTES];
	struct channel_identity node, operator;
	struct channel_policy policy;
	struct token token;
	bool revoked;
	struct end client, server;
} t;

static void
new_identity(struct channel_identity *us, enum cert_kind kind,
    int64_t from_s, int64_t to_s)
{
	struct cert c = { .kind = kind, .serial = 7, .n_grants = 1 };
	struct err e;
	int64_t now_s = clock_wall_ms() / 1000;

	crypto_box_keypair(us->public, us->secret);
	snprintf(c.name, sizeof(c.name), "%s",
	    kind == CERT_NODE ? "web01" : "ann");
	snprintf(c.grants[0], sizeof(c.grants[0]), "exec");
	memcpy(c.key, us->public, KEY_SIZE);
	c.not_before_s = now_s + from_s;
	c.not_after_s = now_s + to_s;
	assert_int_equal(cert_sign(&c, t.authority_secret, us->cert,
	    &us->cert_size, &e), 0);
}

static void
on_opened(struct channel *c, void *arg)
{
	struct end *x = arg;

	assert_false(x->opened);
	x->opened = true;
	if (channel_peer(c) != NULL)
		x->peer = *channel_peer(c);
	x->joins = channel_join_id(c) != NULL;
	x->skew_ms = channel_skew_ms(c);
	if (x->abort_on_open)
		channel_abort(c, NULL);
}

static void
on_record(struct channel *c, enum record_type type, const uint8_t *body,
    size_t size, void *arg)
{
	struct end *x = arg;
	struct err e;

	assert_true(x->opened);
	assert_false(x->closed);
	x->n_records++;
	x->n_bytes += size;
	x->last_type = type;
	x->last_size = size;
	memcpy(x->last, body, size);
	if (x->echo)
		assert_int_equal(channel_send(c, REC_STDOUT, body, size, &e),
		    0);
	if (x->pause_each)
		channel_pause(c);
	if (x->close_on_record)
		channel_close(c);
}

static void
on_drained(struct channel *c, void *arg)
{
	struct end *x = arg;

	(void)c;
	x->n_drained++;
}

static void
on_closed(struct channel *c, const struct err *why, void *arg)
{
	struct end *x = arg;

	assert_ptr_equal(c, x->channel);
	assert_false(x->closed);
	x->closed = true;
	x->clean = why == NULL;
	if (why != NULL)
		x->why = *why;
	x->channel = NULL;
}

static const struct channel_handlers handlers = {
	.opened = on_opened,
	.record = on_record,
	.drained = on_drained,
	.closed = on_closed,
};

static int
policy_admit(const struct cert *peer, const struct addr *from, void *arg,
    struct err *e)
{
	(void)from;
	(void)arg;
	if (t.revoked)
		return err_set(e, ERR_REVOKED, "%s is revoked", peer->name);
	return 0;
}

static int
policy_psk(const uint8_t id[TOKEN_ID_SIZE], const struct addr *from,
    uint8_t psk[KEY_SIZE], void *arg, struct err *e)
{
	(void)from;
	(void)arg;
	if (memcmp(id, t.token.id, TOKEN_ID_SIZE) != 0)
		return err_set(e, ERR_NO_TARGET, "no such token");
	token_psk(t.token.secret, psk);
	if (t.revoked)
		return err_set(e, ERR_EXPIRED, "the token is used up");
	return 0;
}

static int
setup(void **state)
{
	uint8_t pub[KEY_SIZE];

	(void)state;
	memset(&t, 0, sizeof(t));
	t.base = event_base_new();
	crypto_sign_keypair(pub, t.authority_secret);
	new_identity(&t.node, CERT_NODE, -60, 3600);
	new_identity(&t.operator, CERT_OPERATOR, -60, 3600);
	memcpy(t.node.authority, pub, KEY_SIZE);
	memcpy(t.operator.authority, pub, KEY_SIZE);
	memcpy(t.token.master_key, t.node.public, KEY_SIZE);
	randombytes_buf(t.token.id, TOKEN_ID_SIZE);
	randombytes_buf(t.token.secret, TOKEN_SECRET_SIZE);
	t.policy = (struct channel_policy){ .admit = policy_admit,
		.join_psk = policy_psk };
	return 0;
}

static void
run_until(const bool *done)
{
	int64_t limit = clock_mono_ms() + PATIENCE_MS;

	while (!*done) {
		struct timeval tick = { 0, 20000 };

		assert_true(clock_mono_ms() < limit);
		event_base_loopexit(t.base, &tick);
		event_base_loop(t.base, EVLOOP_ONCE);
	}
}

static void
run_records(const struct end *x, size_t n)
{
	bool done = false;

	while (!done) {
		event_base_loop(t.base, EVLOOP_ONCE);
		done = x->n_records >= n || x->closed;
	}
}

static int
teardown(void **state)
{
	struct end *ends[] = { &t.client, &t.server };

	(void)state;
	for (size_t i = 0; i < nitems(ends); i++)
		if (ends[i]->channel != NULL) {
			channel_abort(ends[i]->channel, NULL);
			run_until(&ends[i]->closed);
		}
	event_base_free(t.base);
	return 0;
}

/* A listener on loopback; *addr says where. */
static int
listen_on_loopback(struct addr *addr)
{
	struct err e;
	socklen_t len = sizeof(addr->u);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(addr_parse("127.0.1.1", 7400, addr, &e), 0);
	addr_set_port(addr, 0);
	assert_int_equal(bind(fd, &addr->u.sa, addr->len), 0);
	assert_int_equal(listen(fd, 8), 0);
	assert_int_equal(getsockname(fd, &addr->u.sa, &len), 0);
	return fd;
}

static void
serve(int fd)
{
	struct addr from;
	struct err e;

	addr_parse("127.0.1.2", 1, &from, &e);
	t.server.channel = channel_accept(t.base, fd, &from, &t.node,
	    &t.policy, &handlers, &t.server, &e);
	assert_non_null(t.server.channel);
}

/* A client (IK, or with the token when `join`) and a server, connected. */
static void
connect_both(bool join)
{
	struct addr addr;
	struct err e;
	int listener = listen_on_loopback(&addr), fd;

	if (join)
		t.client.channel = channel_connect_join(t.base, &addr,
		    &t.operator, &t.token, PATIENCE_MS, &handlers, &t.client,
		    &e);
	else
		t.client.channel = channel_connect(t.base, &addr, &t.operator,
		    t.node.public, PATIENCE_MS, &handlers, &t.client, &e);
	assert_non_null(t.client.channel);
	fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	assert_true(fd >= 0);
	close(listener);
	serve(fd);
}

static void
open_both(void)
{
	connect_both(false);
	run_until(&t.client.opened);
	run_until(&t.server.opened);
}

static void
send_text(struct end *x, enum record_type type, const char *text)
{
	struct err e;

	assert_int_equal(channel_send(x->channel, type, text, strlen(text),
	    &e), 0);
}

static void
a_good_session(void **state)
{
	(void)state;
	open_both();
	assert_string_equal(t.client.peer.name, "web01");
	assert_string_equal(t.server.peer.name, "ann");
	assert_memory_equal(channel_peer_key(t.server.channel),
	    t.operator.public, KEY_SIZE);
	assert_true(llabs(t.client.skew_ms) < 1000);
	t.server.echo = true;
	send_text(&t.client, REC_STDIN, "hello");
	run_records(&t.client, 1);
	assert_int_equal(t.client.last_type, REC_STDOUT);
	assert_memory_equal(t.client.last, "hello", 5);
	channel_close(t.client.channel);
	run_until(&t.client.closed);
	run_until(&t.server.closed);
	assert_true(t.client.clean && t.server.clean);
}

static void
a_join(void **state)
{
	(void)state;
	t.operator.cert_size = 0;
	connect_both(true);
	run_until(&t.client.opened);
	run_until(&t.server.opened);
	assert_true(t.server.joins);
	assert_null(channel_peer(t.server.channel));
	assert_memory_equal(channel_join_id(t.server.channel), t.token.id,
	    TOKEN_ID_SIZE);
	assert_memory_equal(channel_peer_key(t.server.channel),
	    t.operator.public, KEY_SIZE);
	send_text(&t.client, REC_REQUEST, "{}");
	run_records(&t.server, 1);
	assert_int_equal(t.server.last_type, REC_REQUEST);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_good_session, setup,
		    teardown),
		cmocka_unit_test_setup_teardown(a_join, setup, teardown),
	};

	if (sodium_init() == -1)
		return 1;
	return cmocka_run_group_tests_name("channel", tests, NULL, NULL);
}
