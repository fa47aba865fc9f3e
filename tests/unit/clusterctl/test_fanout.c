/*
 * test_fanout.c: peers that answer, refuse, vanish and talk nonsense: each
 * ends in its one class, and none disturbs the others.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <sodium.h>

#include "clusterctl/ask.h"
#include "clusterctl/xalloc.h"
#include "common/base/clock.h"
#include "common/base/io.h"
#include "common/net/identity.h"

enum manner {
	ANSWERS,
	SAYS_NOTHING,
	HANGS_UP_AT_ONCE,
	HANGS_UP_WHEN_ASKED,
	DENIES,
	REVOKES, /* in the middle */
	CANNOT,
	TALKS_OUT_OF_TURN,
	TALKS_NONSENSE,
	HAS_ANOTHER_KEY,
	LISTENS_NOT,
	HAS_NO_AGENT,
	N_MANNERS
};

/* clang-format off */
static const struct {
	enum outcome outcome;
	const char *sentence;
} expected[N_MANNERS] = {
	[ANSWERS]             = { OUTCOME_OK,          "finished" },
	[SAYS_NOTHING]        = { OUTCOME_TIMEOUT,     "timed out" },
	[HANGS_UP_AT_ONCE]    = { OUTCOME_UNREACHABLE, "not delivered" },
	[HANGS_UP_WHEN_ASKED] = { OUTCOME_LOST,        "delivered, result" },
	[DENIES]              = { OUTCOME_DENIED,      "not delivered: denied" },
	[REVOKES]             = { OUTCOME_DENIED,      "delivered, then ended" },
	[CANNOT]              = { OUTCOME_REFUSED,     "failed there" },
	[TALKS_OUT_OF_TURN]   = { OUTCOME_LOST,        "delivered, result" },
	[TALKS_NONSENSE]      = { OUTCOME_LOST,        "delivered, result" },
	[HAS_ANOTHER_KEY]     = { OUTCOME_UNREACHABLE, "not delivered" },
	[LISTENS_NOT]         = { OUTCOME_UNREACHABLE, "not delivered" },
	[HAS_NO_AGENT]        = { OUTCOME_UNREACHABLE, "not delivered" },
};
/* clang-format on */

/* A node's end, in the same loop. */
struct peer {
	enum manner manner;
	struct dir_node node;
	char name[32];
	int listener;
	struct event *ready;
};

static struct {
	char dir[64];
	struct context *cx;
	uint8_t authority[crypto_sign_SECRETKEYBYTES];
	struct channel_identity node;
	struct peer peers[N_MANNERS];
	enum outcome outcomes[N_MANNERS];
	char sentences[N_MANNERS][200];
	size_t n_answers;
} t;

static void peer_accept(evutil_socket_t, short, void *);
static void peer_record(struct channel *, enum record_type, const uint8_t *,
    size_t, void *);
static void peer_closed(struct channel *, const struct err *, void *);
static int admit(const struct cert *, const struct addr *, void *,
    struct err *);

static const struct channel_handlers peer_handlers = {
	.record = peer_record,
	.closed = peer_closed,
};

static const struct channel_policy policy = { .admit = admit };

static int
admit(const struct cert *peer, const struct addr *from, void *arg,
    struct err *e)
{
	(void)peer;
	(void)from;
	(void)arg;
	(void)e;
	return 0;
}

static void
peer_accept(evutil_socket_t fd, short what, void *arg)
{
	struct peer *p = arg;
	struct addr from = p->node.addr;
	struct err e;
	int s;

	(void)what;
	s = accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (s == -1)
		return;
	if (p->manner == HANGS_UP_AT_ONCE)
		close(s);
	else
		assert_non_null(channel_accept(context_base(t.cx), s, &from,
		    &t.node, &policy, &peer_handlers, p, &e));
}

static void
peer_record(struct channel *c, enum record_type type, const uint8_t *body,
    size_t size, void *arg)
{
	const struct peer *p = arg;
	struct err e;

	(void)body;
	(void)size;
	assert_int_equal(type, REC_REQUEST);
	switch (p->manner) {
	case ANSWERS:
		channel_send(c, REC_REPLY, "{\"time_ms\":1}", 13, &e);
		break;
	case HANGS_UP_WHEN_ASKED:
		channel_abort(c, NULL);
		break;
	case DENIES:
		err_set(&e, ERR_DENIED, "no grant");
		channel_send_error(c, &e);
		break;
	case REVOKES:
		err_set(&e, ERR_REVOKED, "revoked");
		channel_send_error(c, &e);
		break;
	case CANNOT:
		err_set(&e, ERR_USAGE, "no such user");
		channel_send_error(c, &e);
		break;
	case TALKS_OUT_OF_TURN:
		channel_send(c, REC_STDOUT, "x", 1, &e);
		break;
	case TALKS_NONSENSE:
		channel_send(c, REC_REPLY, "[}", 2, &e);
		break;
	default:
		break;
	}
}

static void
peer_closed(struct channel *c, const struct err *why, void *arg)
{
	(void)c;
	(void)why;
	(void)arg;
}

static void
certify(struct channel_identity *id, enum cert_kind kind, const char *name)
{
	int64_t now_s = clock_wall_ms() / 1000;
	struct cert c = { .kind = kind,
		.serial = 1,
		.not_before_s = now_s - 60,
		.not_after_s = now_s + 3600 };
	struct err e;

	snprintf(c.name, sizeof(c.name), "%s", name);
	memcpy(c.key, id->public, KEY_SIZE);
	assert_int_equal(cert_sign(&c, t.authority, id->cert, &id->cert_size,
			     &e),
	    0);
}

static void
peer_open(struct peer *p, enum manner manner)
{
	socklen_t len = sizeof(p->node.addr.u);
	struct err e;

	p->manner = manner;
	snprintf(p->name, sizeof(p->name), "n%d", (int)manner);
	p->node.name = p->name;
	p->node.has_agent = manner != HAS_NO_AGENT;
	memcpy(p->node.key, t.node.public, KEY_SIZE);
	p->node.key[0] ^= manner == HAS_ANOTHER_KEY;
	assert_int_equal(addr_parse("127.0.5.200", 7400, &p->node.addr, &e), 0);
	addr_set_port(&p->node.addr, 0);
	p->listener =
	    socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(p->listener, &p->node.addr.u.sa,
			     p->node.addr.len),
	    0);
	assert_int_equal(getsockname(p->listener, &p->node.addr.u.sa, &len), 0);
	if (manner == LISTENS_NOT)
		return; /* bound, so that nobody else gets the port */
	assert_int_equal(listen(p->listener, 8), 0);
	p->ready = event_new(context_base(t.cx), p->listener,
	    EV_READ | EV_PERSIST, peer_accept, p);
	event_add(p->ready, NULL);
}

static int
setup(void **state)
{
	struct channel_identity operator;
	uint8_t pub[KEY_SIZE];
	struct state st;
	struct err e;

	(void)state;
	assert_int_equal(sodium_init() >= 0, 1);
	snprintf(t.dir, sizeof(t.dir), "/tmp/test_fanout.XXXXXX");
	assert_non_null(mkdtemp(t.dir));
	assert_int_equal(state_open(&st, t.dir, &e), 0);
	crypto_sign_keypair(pub, t.authority);
	crypto_box_keypair(t.node.public, t.node.secret);
	memcpy(t.node.authority, pub, KEY_SIZE);
	certify(&t.node, CERT_NODE, "n");
	assert_int_equal(identity_key(&st, CERT_OPERATOR, &operator, & e), 0);
	certify(&operator, CERT_OPERATOR, "ann");
	assert_int_equal(identity_store(&st, CERT_OPERATOR,
			     pub, operator.cert, operator.cert_size, &e),
	    0);
	t.cx = context_new(t.dir, "test");
	assert_int_equal(context_need(t.cx, NEEDS_OPERATOR, &e), 0);
	for (int i = 0; i < N_MANNERS; i++)
		peer_open(&t.peers[i], (enum manner)i);
	return 0;
}

static int
teardown(void **state)
{
	static const char *const files[] = { "operator.key", "operator.cert",
		"authority.pub" };
	char path[128];

	(void)state;
	for (int i = 0; i < N_MANNERS; i++) {
		if (t.peers[i].ready != NULL)
			event_free(t.peers[i].ready);
		close(t.peers[i].listener);
	}
	/* Lets the channels of the peers see that their clients are gone. */
	event_base_loop(context_base(t.cx), EVLOOP_NONBLOCK);
	context_free(t.cx);
	for (size_t i = 0; i < nitems(files); i++) {
		snprintf(path, sizeof(path), "%s/%s", t.dir, files[i]);
		unlink(path);
	}
	return rmdir(t.dir);
}

static void
keep_answer(const struct task *task, json_t *reply, void *arg)
{
	(void)arg;
	t.n_answers++;
	t.outcomes[task->index] = task->result.outcome;
	assert_int_equal(reply != NULL, task->result.outcome == OUTCOME_OK);
	result_sentence(&task->result, t.sentences[task->index],
	    sizeof(t.sentences[0]));
}

static void
every_peer_ends_in_its_class(void **state)
{
	const struct dir_node *nodes[N_MANNERS];
	struct ask ask = {
		.request = json_pack("{s:s}", "verb", "ping"),
		.limit_ms = 300,
		.answer = keep_answer,
	};
	struct err e;
	int status;

	(void)state;
	for (int i = 0; i < N_MANNERS; i++)
		nodes[i] = &t.peers[i].node;
	assert_int_equal(ask_nodes(t.cx, nodes, N_MANNERS, &ask, &status, &e),
	    0);
	json_decref(ask.request);
	assert_int_equal(t.n_answers, N_MANNERS);
	for (int i = 0; i < N_MANNERS; i++) {
		assert_int_equal(t.outcomes[i], expected[i].outcome);
		assert_memory_equal(t.sentences[i], expected[i].sentence,
		    strlen(expected[i].sentence));
	}
	assert_int_equal(status, ERR_DENIED); /* the worst of them */
}

static void
one_is_asked(void **state)
{
	struct ask ask = { .request = json_pack("{s:s}", "verb", "ping") };
	json_t *reply = NULL;
	struct err e;

	(void)state;
	assert_int_equal(ask_node(t.cx, &t.peers[ANSWERS].node, &ask, &reply,
			     &e),
	    0);
	assert_int_equal(json_integer_value(json_object_get(reply, "time_ms")),
	    1);
	json_decref(reply);
	assert_int_equal(ask_node(t.cx, &t.peers[DENIES].node, &ask, NULL, &e),
	    -1);
	assert_int_equal(e.code, ERR_DENIED);
	assert_string_equal(e.text, "n4: not delivered: denied: no grant");
	json_decref(ask.request);
}

/* The worst class decides, in the order that the manual tells. */
static void
the_worst_class_decides(void **state)
{
	static const enum outcome order[] = { OUTCOME_OK, OUTCOME_SKIPPED,
		OUTCOME_FAILED, OUTCOME_REFUSED, OUTCOME_TIMEOUT,
		OUTCOME_UNREACHABLE, OUTCOME_LOST, OUTCOME_DENIED,
		OUTCOME_LOCAL, OUTCOME_CANCELLED };

	(void)state;
	for (size_t i = 0; i < nitems(order); i++)
		for (size_t j = 0; j < nitems(order); j++)
			assert_int_equal(outcome_worse(order[i], order[j]),
			    order[i > j ? i : j]);
	assert_int_equal(outcome_exit_status(OUTCOME_CANCELLED), 130);
	assert_int_equal(outcome_exit_status(OUTCOME_LOST), ERR_UNREACHABLE);
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_peer_ends_in_its_class),
		cmocka_unit_test(one_is_asked),
		cmocka_unit_test(the_worst_class_decides),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
