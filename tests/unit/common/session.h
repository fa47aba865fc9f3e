/*
 * session.h: a client and a server for the tests of channels, what happened
 * to them, and a raw peer that does as it likes.
 */
#ifndef TEST_SESSION_H
#define TEST_SESSION_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <errno.h>
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
#include "common/net/handshake.h"

#define PATIENCE_MS 10000

/* Turns the loop until the condition holds; a test that waits too long
 * fails. */
#define RUN_UNTIL(condition)                                    \
	do {                                                    \
		int64_t limit_ = clock_mono_ms() + PATIENCE_MS; \
		while (!(condition)) {                          \
			assert_true(clock_mono_ms() < limit_);  \
			event_base_loop(t.base, EVLOOP_ONCE);   \
		}                                               \
	} while (0)

#define SESSION_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

/* One end of a session and all that happened to it. */
struct end {
	struct channel *channel; /* NULL once closed */
	bool opened, closed;
	int why; /* enum err_code of `closed` */
	char text[240];
	struct cert peer; /* as of `opened`; serial 0: none */
	bool joins;
	int64_t skew_ms;
	size_t n_records, n_bytes, n_drained;
	enum record_type last_type;
	uint8_t last[PROTO_RECORD_MAX];
	size_t last_size;
	/* What to do in a callback. */
	bool echo, pause_each, close_on_record, abort_on_open;
	const uint8_t *first; /* a request to send at once */
	size_t first_size;
};

static struct {
	struct event_base *base;
	struct event *tick;
	uint8_t authority_secret[crypto_sign_SECRETKEYBYTES];
	struct channel_identity node, operator;
	struct channel_policy policy;
	struct token token;
	bool revoked;
	struct end client, server;
	/* The raw peer, instead of a client. */
	int raw;
	struct handshake raw_handshake;
	struct noise_cipher raw_send, raw_receive;
	uint8_t frame[FRAME_HEAD_SIZE + PROTO_FRAME_MAX];
	size_t frame_size;
} t;

static inline void
certify(struct channel_identity *us, enum cert_kind kind, int64_t from_s,
    int64_t to_s, const uint8_t *authority_secret)
{
	struct cert c = { .kind = kind, .serial = 7, .n_grants = 1 };
	int64_t now_s = clock_wall_ms() / 1000;
	struct err e;

	snprintf(c.name, sizeof(c.name), "%s",
	    kind == CERT_NODE ? "web01" : "ann");
	snprintf(c.grants[0], sizeof(c.grants[0]), "exec");
	memcpy(c.key, us->public, KEY_SIZE);
	c.not_before_s = now_s + from_s;
	c.not_after_s = now_s + to_s;
	assert_int_equal(cert_sign(&c, authority_secret, us->cert,
			     &us->cert_size, &e),
	    0);
}

static inline void
on_opened(struct channel *c, void *arg)
{
	struct end *x = arg;
	struct err e;

	assert_false(x->opened);
	x->opened = true;
	if (channel_peer(c) != NULL)
		x->peer = *channel_peer(c);
	x->joins = channel_join_id(c) != NULL;
	x->skew_ms = channel_skew_ms(c);
	if (x->first != NULL)
		assert_int_equal(channel_send(c, REC_REQUEST, x->first,
				     x->first_size, &e),
		    0);
	if (x->abort_on_open)
		channel_abort(c, NULL);
}

static inline void
on_record(struct channel *c, enum record_type type, const uint8_t *body,
    size_t size, void *arg)
{
	struct end *x = arg;
	struct err e;

	assert_true(x->opened && !x->closed);
	x->n_records++;
	x->n_bytes += size;
	x->last_type = type;
	x->last_size = size;
	if (size > 0)
		memcpy(x->last, body, size);
	if (x->echo)
		assert_int_equal(channel_send(c, REC_STDOUT, body, size, &e),
		    0);
	if (x->pause_each)
		channel_pause(c);
	if (x->close_on_record)
		channel_close(c);
}

static inline void
on_drained(struct channel *c, void *arg)
{
	struct end *x = arg;

	assert_ptr_equal(c, x->channel);
	x->n_drained++;
}

static inline void
on_closed(struct channel *c, const struct err *why, void *arg)
{
	struct end *x = arg;

	assert_ptr_equal(c, x->channel);
	assert_false(x->closed);
	x->closed = true;
	x->channel = NULL;
	if (why == NULL)
		return;
	x->why = why->code;
	memcpy(x->text, why->text, sizeof(x->text));
}

static const struct channel_handlers handlers = {
	.opened = on_opened,
	.record = on_record,
	.drained = on_drained,
	.closed = on_closed,
};

static inline int
policy_admit(const struct cert *peer, const struct addr *from, void *arg,
    struct err *e)
{
	(void)from;
	(void)arg;
	if (t.revoked)
		return err_set(e, ERR_REVOKED, "%s is revoked", peer->name);
	return 0;
}

static inline int
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

static inline void
on_tick(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;
}

static inline int
setup(void **state)
{
	struct timeval tick = { 0, 20000 };
	uint8_t pub[KEY_SIZE];

	(void)state;
	memset(&t, 0, sizeof(t));
	t.raw = -1;
	t.base = event_base_new();
	/* So that a wait for what never comes ends. */
	t.tick = event_new(t.base, -1, EV_PERSIST, on_tick, NULL);
	event_add(t.tick, &tick);
	crypto_sign_keypair(pub, t.authority_secret);
	crypto_box_keypair(t.node.public, t.node.secret);
	crypto_box_keypair(t.operator.public, t.operator.secret);
	certify(&t.node, CERT_NODE, -600, 3600, t.authority_secret);
	certify(&t.operator, CERT_OPERATOR, -600, 3600, t.authority_secret);
	memcpy(t.node.authority, pub, KEY_SIZE);
	memcpy(t.operator.authority, pub, KEY_SIZE);
	memcpy(t.token.master_key, t.node.public, KEY_SIZE);
	randombytes_buf(t.token.id, TOKEN_ID_SIZE);
	randombytes_buf(t.token.secret, TOKEN_SECRET_SIZE);
	t.policy = (struct channel_policy){
		.admit = policy_admit,
		.join_psk = policy_psk,
	};
	return 0;
}

static inline int
teardown(void **state)
{
	struct end *ends[] = { &t.client, &t.server };

	(void)state;
	for (size_t i = 0; i < nitems(ends); i++)
		if (ends[i]->channel != NULL) {
			channel_abort(ends[i]->channel, NULL);
			RUN_UNTIL(ends[i]->closed);
		}
	io_close(&t.raw);
	event_free(t.tick);
	event_base_free(t.base);
	return 0;
}

/* A listener on loopback; *addr says where. */
static inline int
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

/* The server's end, on a connected socket. */
static inline void
serve(int fd)
{
	struct addr from;
	struct err e;

	addr_parse("127.0.1.2", 1, &from, &e);
	t.server.channel = channel_accept(t.base, fd, &from, &t.node, &t.policy,
	    &handlers, &t.server, &e);
	assert_non_null(t.server.channel);
}

/* A client (IK, or with the token when `join`) and a server, connected. */
static inline void
connect_both(bool join)
{
	struct addr addr;
	struct err e;
	int listener = listen_on_loopback(&addr), fd;

	if (join)
		t.client.channel =
		    channel_connect_join(t.base, &addr, &t.operator, & t.token,
			PATIENCE_MS, &handlers, &t.client, &e);
	else
		t.client.channel = channel_connect(t.base, &addr, &t.operator,
		    t.token.master_key, PATIENCE_MS, &handlers, &t.client, &e);
	assert_non_null(t.client.channel);
	fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	assert_true(fd >= 0);
	close(listener);
	serve(fd);
}

static inline void
open_both(void)
{
	connect_both(false);
	RUN_UNTIL(t.client.opened && t.server.opened);
}

static inline void
send_text(struct end *x, enum record_type type, const char *text)
{
	struct err e;

	assert_int_equal(channel_send(x->channel, type, text, strlen(text), &e),
	    0);
}

/* ---- a raw peer ------------------------------------------------------- */

static inline void
raw_connect(void)
{
	int sv[2];

	assert_int_equal(socketpair(AF_UNIX,
			     SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, sv),
	    0);
	t.raw = sv[0];
	serve(sv[1]);
}

static inline void
raw_write(const void *bytes, size_t size)
{
	assert_int_equal(send(t.raw, bytes, size, MSG_NOSIGNAL), size);
}

static inline void
raw_write_frame(const void *message, size_t size)
{
	uint8_t head[FRAME_HEAD_SIZE];

	frame_put_head(head, size);
	raw_write(head, sizeof(head));
	raw_write(message, size);
}

/* The next frame into t.frame; false when the server hung up instead. */
static inline bool
raw_read_frame(void)
{
	size_t message_size = 0;
	struct err e;
	ssize_t n = -1;

	t.frame_size = 0;
	while (n != 0 &&
	    frame_peek(t.frame, t.frame_size, PROTO_FRAME_MAX, &message_size,
		&e) == 0) {
		/* A byte at a time leaves the next frame where it is. */
		RUN_UNTIL(
		    (n = recv(t.raw, t.frame + t.frame_size, 1, 0)) != -1 ||
		    errno != EAGAIN);
		if (n == -1)
			return false;
		t.frame_size += (size_t)n;
	}
	return n != 0;
}

/* The first message of the operator, as the channel would send it. */
static inline size_t
raw_offer(uint8_t out[PROTO_HANDSHAKE_MAX])
{
	struct err e;
	size_t size;

	handshake_client(&t.raw_handshake, &t.operator, t.node.public);
	assert_int_equal(handshake_offer(&t.raw_handshake, clock_wall_ms(), out,
			     &size, &e),
	    0);
	return size;
}

/* A handshake by hand; the server waits for the first record. */
static inline void
raw_open(void)
{
	uint8_t offer[PROTO_HANDSHAKE_MAX];
	struct peer peer;
	struct err e;

	raw_connect();
	raw_write_frame(offer, raw_offer(offer));
	assert_true(raw_read_frame());
	assert_int_equal(handshake_conclude(&t.raw_handshake,
			     t.frame + FRAME_HEAD_SIZE,
			     t.frame_size - FRAME_HEAD_SIZE, clock_wall_ms(),
			     &peer, &e),
	    0);
	handshake_split(&t.raw_handshake, &t.raw_send, &t.raw_receive);
}

/* Seals a record of any type and size into out; returns its size. */
static inline size_t
raw_seal(uint8_t *out, unsigned type, size_t size)
{
	struct err e;

	memset(out, 'x', 1 + size);
	out[0] = (uint8_t)type;
	assert_int_equal(noise_seal(&t.raw_send, out, 1 + size, &e), 0);
	return 1 + size + NOISE_TAG_SIZE;
}

#endif
