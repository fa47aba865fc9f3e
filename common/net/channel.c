/*
 * channel.c: see channel.h.  handshake.c judges the peer, stream.c moves
 * messages; here are the states of a session, its records and deadlines.
 */
#include "common/net/channel.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "common/base/clock.h"
#include "common/base/io.h"
#include "common/net/handshake.h"
#include "common/net/stream.h"

#define TO(state) (1u << (state))

enum channel_state {
	CH_CONNECT,  /* client: TCP is on its way */
	CH_OFFERED,  /* client: waits for the second handshake message */
	CH_EXPECT,   /* server: waits for the first handshake message */
	CH_ANSWERED, /* server: waits for the first record, the proof */
	CH_OPEN,
	CH_FLUSH,  /* sends what is queued, reads nothing any more */
	CH_LINGER, /* has said goodbye, waits for the peer's */
	CH_DEAD,   /* waits for the reaper */
	CH_N_STATES
};

struct channel {
	enum channel_state state;
	bool server;
	bool paused;
	bool above_high; /* and `drained` is owed */
	struct stream stream;
	struct event deadline; /* and, when dead, the reaper */
	const struct channel_handlers *handlers;
	const struct channel_policy *policy; /* server */
	void *arg;
	struct addr addr;
	int64_t began_ms;
	struct handshake *handshake; /* NULL once it is over */
	struct peer *peer;	     /* NULL before that */
	struct noise_cipher send, receive;
	struct err why; /* code ERR_NONE: an orderly end */
};

static int take_offer(struct channel *, uint8_t *, size_t, struct err *);
static int take_answer(struct channel *, uint8_t *, size_t, struct err *);
static int take_record(struct channel *, uint8_t *, size_t, struct err *);

/* The whole life of a channel: where each state may go, and what it makes of
 * an incoming message of at most `max` bytes.  Unproven peers get little. */
/* clang-format off */
static const struct {
	unsigned next;
	enum stream_mode mode;
	size_t max;
	int (*take)(struct channel *, uint8_t *message, size_t, struct err *);
} channel_states[] = {
	[CH_CONNECT]  = { TO(CH_OFFERED) | TO(CH_DEAD),
	    STREAM_CONNECTING, 0, NULL },
	[CH_OFFERED]  = { TO(CH_OPEN) | TO(CH_DEAD),
	    STREAM_READING, PROTO_HANDSHAKE_MAX, take_answer },
	[CH_EXPECT]   = { TO(CH_ANSWERED) | TO(CH_FLUSH) | TO(CH_DEAD),
	    STREAM_READING, PROTO_HANDSHAKE_MAX, take_offer },
	[CH_ANSWERED] = { TO(CH_OPEN) | TO(CH_FLUSH) | TO(CH_DEAD),
	    STREAM_READING, PROTO_HANDSHAKE_MAX, take_record },
	[CH_OPEN]     = { TO(CH_FLUSH) | TO(CH_DEAD),
	    STREAM_READING, PROTO_FRAME_MAX, take_record },
	[CH_FLUSH]    = { TO(CH_LINGER) | TO(CH_DEAD),
	    STREAM_DRAINING, 0, NULL },
	[CH_LINGER]   = { TO(CH_DEAD), STREAM_DRAINING, 0, NULL },
	[CH_DEAD]     = { 0, STREAM_CLOSED, 0, NULL },
};
/* clang-format on */
_Static_assert(nitems(channel_states) == CH_N_STATES, "a row per state");

static struct channel *channel_new(struct event_base *, const struct addr *,
    const struct channel_handlers *, void *arg, struct err *);
static struct channel *client_start(struct channel *, struct event_base *,
    int timeout_ms, struct err *);
static void channel_move(struct channel *, enum channel_state);
static void channel_set_mode(struct channel *);
static void channel_die(struct channel *, const struct err *why);
static void channel_reap(struct channel *);
static void channel_goodbye(struct channel *);
static void channel_tell_late(struct channel *);
static bool is_proven(const struct channel *);
static void set_deadline(struct channel *, int ms);
static void on_deadline(evutil_socket_t, short what, void *);
static void on_connected(void *);
static void on_message(uint8_t *message, size_t size, void *);
static void on_ended(const struct err *why, void *);
static void on_flushed(void *);
static int echo_ping(struct channel *, const uint8_t *body, size_t size,
    struct err *);
static void channel_open(struct channel *);
static void handshake_over(struct channel *);
static int queue_message(struct channel *, const uint8_t *message, size_t size,
    struct err *);
static int queue_record(struct channel *, enum record_type, const void *body,
    size_t size, struct err *);

static const struct stream_handlers stream_handlers = {
	.connected = on_connected,
	.message = on_message,
	.ended = on_ended,
	.flushed = on_flushed,
};

struct channel *
channel_connect(struct event_base *base, const struct addr *to,
    const struct channel_identity *us, const uint8_t node_key[KEY_SIZE],
    int timeout_ms, const struct channel_handlers *handlers, void *arg,
    struct err *e)
{
	struct channel *c = channel_new(base, to, handlers, arg, e);

	if (c == NULL)
		return NULL;
	handshake_client(c->handshake, us, node_key);
	return client_start(c, base, timeout_ms, e);
}

struct channel *
channel_connect_join(struct event_base *base, const struct addr *to,
    const struct channel_identity *us, const struct token *token,
    int timeout_ms, const struct channel_handlers *handlers, void *arg,
    struct err *e)
{
	struct channel *c = channel_new(base, to, handlers, arg, e);

	if (c == NULL)
		return NULL;
	handshake_join(c->handshake, us, token);
	return client_start(c, base, timeout_ms, e);
}

struct channel *
channel_accept(struct event_base *base, int fd, const struct addr *from,
    const struct channel_identity *us, const struct channel_policy *policy,
    const struct channel_handlers *handlers, void *arg, struct err *e)
{
	struct channel *c = channel_new(base, from, handlers, arg, e);
	int limit_ms = policy->handshake_ms;

	if (c == NULL) {
		io_close(&fd);
		return NULL;
	}
	c->server = true;
	c->policy = policy;
	c->state = CH_EXPECT;
	handshake_server(c->handshake, us);
	stream_init(&c->stream, base, fd, &stream_handlers, c);
	channel_set_mode(c);
	set_deadline(c, limit_ms > 0 ? limit_ms : PROTO_HANDSHAKE_S * 1000);
	return c;
}

int
channel_send(struct channel *c, enum record_type type, const void *body,
    size_t size, struct err *e)
{
	if (c->state != CH_OPEN)
		return err_set(e, ERR_UNREACHABLE, "the session is over");
	if (record_check(type, c->server ? FROM_SERVER : FROM_CLIENT, size,
		e) == -1)
		return -1;
	if (stream_queued(&c->stream) > CHANNEL_QUEUE_MAX)
		return err_set(e, ERR_BUSY,
		    "the peer takes nothing and %zu bytes wait",
		    stream_queued(&c->stream));
	/* The first record proves us and has to be short. */
	if (!c->server && c->send.nonce == 0 &&
	    size > PROTO_HANDSHAKE_MAX - NOISE_TAG_SIZE - 1 &&
	    queue_record(c, REC_PING, NULL, 0, e) == -1)
		return -1;
	return queue_record(c, type, body, size, e);
}

int
channel_send_json(struct channel *c, enum record_type type, json_t *o,
    struct err *e)
{
	char *text = o == NULL ?
	    NULL :
	    json_dumps(o, JSON_COMPACT | JSON_REAL_PRECISION(6));
	int rv;

	json_decref(o);
	if (text == NULL)
		return err_set(e, ERR_LOCAL,
		    "cannot build a message: out of memory, or text that is "
		    "not UTF-8");
	rv = channel_send(c, type, text, strlen(text), e);
	free(text);
	return rv;
}

int
channel_send_error(struct channel *c, const struct err *error)
{
	char json[PROTO_ERROR_MAX];
	struct err e;

	return channel_send(c, REC_ERROR, json, proto_format_error(error, json),
	    &e);
}

size_t
channel_queued(const struct channel *c)
{
	return stream_queued(&c->stream);
}

void
channel_pause(struct channel *c)
{
	c->paused = true;
	channel_set_mode(c);
}

void
channel_resume(struct channel *c)
{
	c->paused = false;
	channel_set_mode(c);
}

void
channel_close(struct channel *c)
{
	if (c->state < CH_OPEN)
		channel_die(c, NULL);
	if (c->state != CH_OPEN)
		return;
	channel_move(c, CH_FLUSH);
	channel_goodbye(c);
}

void
channel_abort(struct channel *c, const struct err *why)
{
	if (c->state != CH_DEAD)
		channel_die(c, why);
}

const struct cert *
channel_peer(const struct channel *c)
{
	return is_proven(c) && c->peer->has_cert ? &c->peer->cert : NULL;
}

const uint8_t *
channel_peer_key(const struct channel *c)
{
	return is_proven(c) ? c->peer->key : NULL;
}

const uint8_t *
channel_join_id(const struct channel *c)
{
	bool joins = c->server && is_proven(c) && !c->peer->has_cert;

	return joins ? c->peer->join_id : NULL;
}

const struct addr *
channel_addr(const struct channel *c)
{
	return &c->addr;
}

bool
channel_is_open(const struct channel *c)
{
	return c->state == CH_OPEN;
}

bool
channel_is_lost(const struct channel *c)
{
	return c->state != CH_DEAD && stream_is_lost(&c->stream);
}

int64_t
channel_skew_ms(const struct channel *c)
{
	return c->peer != NULL ? c->peer->skew_ms : 0;
}

uint64_t
channel_bytes_in(const struct channel *c)
{
	return c->stream.bytes_in;
}

uint64_t
channel_bytes_out(const struct channel *c)
{
	return c->stream.bytes_out;
}

/* ---- life ------------------------------------------------------------- */

static struct channel *
channel_new(struct event_base *base, const struct addr *addr,
    const struct channel_handlers *handlers, void *arg, struct err *e)
{
	struct channel *c = calloc(1, sizeof(*c));

	if (c == NULL ||
	    (c->handshake = malloc(sizeof(*c->handshake))) == NULL) {
		free(c);
		err_set(e, ERR_LOCAL, "out of memory");
		return NULL;
	}
	c->handlers = handlers;
	c->arg = arg;
	c->addr = *addr;
	c->began_ms = clock_mono_ms();
	evtimer_assign(&c->deadline, base, on_deadline, c);
	return c;
}

static struct channel *
client_start(struct channel *c, struct event_base *base, int timeout_ms,
    struct err *e)
{
	if (stream_connect(&c->stream, base, &c->addr, &stream_handlers, c,
		e) == -1) {
		handshake_wipe(c->handshake);
		free(c->handshake);
		free(c);
		return NULL;
	}
	c->state = CH_CONNECT;
	set_deadline(c, timeout_ms);
	return c;
}

/* The only place where a channel changes its state. */
static void
channel_move(struct channel *c, enum channel_state to)
{
	assert(channel_states[c->state].next & TO(to));
	c->state = to;
	channel_set_mode(c);
	if (to == CH_OPEN || to == CH_DEAD)
		evtimer_del(&c->deadline);
	if (to == CH_FLUSH)
		set_deadline(c, CHANNEL_LINGER_S * 1000);
	if (to == CH_LINGER)
		stream_shutdown(&c->stream);
	if (to == CH_DEAD) {
		stream_close(&c->stream);
		/* Whoever called us may still use the channel: the reaper
		 * comes after them. */
		event_active(&c->deadline, EV_TIMEOUT, 0);
	}
}

/* A pause holds back records; the handshake and the goodbye go on.  A node
 * that holds back input must still notice that its client is gone; a client
 * reads in its time what a node left behind. */
static void
channel_set_mode(struct channel *c)
{
	enum stream_mode mode = channel_states[c->state].mode;

	if (c->paused && c->state == CH_OPEN)
		mode = c->server ? STREAM_GUARDED : STREAM_HELD;
	c->stream.max = channel_states[c->state].max;
	stream_set_mode(&c->stream, mode);
}

static void
channel_die(struct channel *c, const struct err *why)
{
	if (why != NULL)
		c->why = *why;
	channel_move(c, CH_DEAD);
}

static void
channel_reap(struct channel *c)
{
	c->handlers->closed(c, c->why.code != ERR_NONE ? &c->why : NULL,
	    c->arg);
	evtimer_del(&c->deadline);
	stream_fini(&c->stream);
	if (c->handshake != NULL)
		handshake_wipe(c->handshake);
	free(c->handshake);
	free(c->peer);
	sodium_memzero(c, sizeof(*c));
	free(c);
}

/* All is said: once it is sent, wait for the peer to hang up too.  Closing
 * at once could destroy what is still on its way. */
static void
channel_goodbye(struct channel *c)
{
	if (c->state == CH_FLUSH && stream_queued(&c->stream) == 0)
		channel_move(c, CH_LINGER);
}

/* Whether the peer showed that it holds its key: a client may have replayed
 * somebody's first flight, but then it cannot send a record. */
static bool
is_proven(const struct channel *c)
{
	return c->peer != NULL && (!c->server || c->receive.nonce > 0);
}

static void
set_deadline(struct channel *c, int ms)
{
	struct timeval tv = { ms / 1000, ms % 1000 * 1000 };

	evtimer_add(&c->deadline, &tv);
}

/* ---- events ----------------------------------------------------------- */

static void
on_deadline(evutil_socket_t fd, short what, void *arg)
{
	struct channel *c = arg;
	char text[ADDR_TEXT_MAX];
	struct err e = { .code = ERR_NONE };

	(void)fd;
	(void)what;
	addr_format(&c->addr, text);
	switch (c->state) {
	case CH_DEAD:
		channel_reap(c);
		return;
	case CH_CONNECT:
		err_set(&e, ERR_UNREACHABLE, "no answer from %s", text);
		break;
	case CH_OFFERED:
		err_set(&e, ERR_UNREACHABLE,
		    "%s took the connection but does not answer", text);
		break;
	case CH_EXPECT:
		err_set(&e, ERR_TIMEOUT,
		    "the peer did not finish the handshake in time");
		break;
	case CH_ANSWERED:
		channel_tell_late(c);
		return;
	case CH_FLUSH:
		err_set(&e, ERR_TIMEOUT,
		    "the peer did not take the last %zu bytes",
		    stream_queued(&c->stream));
		break;
	default:
		break;
	}
	/* Why we closed counts more than how the closing went. */
	channel_die(c, c->why.code == ERR_NONE ? &e : NULL);
}

/* Its first record may be on its way, and it shall know that nothing came of
 * it: then it is safe to ask again. */
static void
channel_tell_late(struct channel *c)
{
	char json[PROTO_ERROR_MAX];
	struct err e;

	err_set(&c->why, ERR_LATE,
	    "the handshake was not finished in time; nothing was begun (one "
	    "of the two machines, or the network, is overloaded)");
	if (queue_record(c, REC_ERROR, json, proto_format_error(&c->why, json),
		&e) == -1) {
		channel_die(c, NULL);
		return;
	}
	channel_move(c, CH_FLUSH);
	channel_goodbye(c);
}

static void
on_connected(void *arg)
{
	uint8_t offer[PROTO_HANDSHAKE_MAX];
	struct channel *c = arg;
	int64_t now_ms = clock_wall_ms();
	struct err e;
	size_t size;

	channel_move(c, CH_OFFERED);
	if (handshake_offer(c->handshake, now_ms, offer, &size, &e) == -1 ||
	    queue_message(c, offer, size, &e) == -1)
		channel_die(c, &e);
}

static void
on_message(uint8_t *message, size_t size, void *arg)
{
	struct channel *c = arg;
	struct err e;

	if (channel_states[c->state].take(c, message, size, &e) == -1)
		channel_die(c, &e);
}

static void
on_ended(const struct err *why, void *arg)
{
	struct channel *c = arg;
	char text[ADDR_TEXT_MAX];
	struct err e;

	addr_format(&c->addr, text);
	if (c->state == CH_FLUSH || c->state == CH_LINGER) {
		channel_die(c, NULL);
		return;
	}
	if (why != NULL) {
		e = *why;
		if (c->state < CH_OPEN)
			err_wrap(&e, "%s", text);
	} else if (c->state == CH_OFFERED &&
	    clock_mono_ms() - c->began_ms >= PROTO_HANDSHAKE_S * 1000) {
		err_set(&e, ERR_UNREACHABLE,
		    "%s gave up the handshake: one of the two machines, or "
		    "the network, is overloaded",
		    text);
	} else if (c->state == CH_OFFERED) {
		err_set(&e, ERR_UNREACHABLE,
		    "%s hung up in the handshake: it has another key than "
		    "expected, or is no nodeagent",
		    text);
	} else if (c->state < CH_OPEN) {
		err_set(&e, ERR_UNREACHABLE, "%s left during the handshake",
		    text);
	} else if (c->paused || stream_has_rest(&c->stream)) {
		err_set(&e, ERR_UNREACHABLE,
		    "the peer left before all that it sent was taken");
	} else {
		e.code = ERR_NONE;
	}
	channel_die(c, &e);
}

static void
on_flushed(void *arg)
{
	struct channel *c = arg;

	channel_goodbye(c);
	if (c->state != CH_OPEN || !c->above_high ||
	    stream_queued(&c->stream) > CHANNEL_LOW_WATER)
		return;
	c->above_high = false;
	if (c->handlers->drained != NULL)
		c->handlers->drained(c, c->arg);
}

/* ---- messages --------------------------------------------------------- */

static int
take_offer(struct channel *c, uint8_t *message, size_t size, struct err *e)
{
	uint8_t answer[PROTO_HANDSHAKE_MAX];
	size_t answer_size;
	int verdict;

	if ((c->peer = malloc(sizeof(*c->peer))) == NULL)
		return err_set(e, ERR_LOCAL, "out of memory");
	verdict = handshake_answer(c->handshake, message, size, &c->addr,
	    c->policy, clock_wall_ms(), answer, &answer_size, c->peer, e);
	if (verdict == -1) {
		free(c->peer);
		c->peer = NULL;
		if (answer_size == 0)
			return -1;
		c->why = *e;
	}
	if (queue_message(c, answer, answer_size, e) == -1)
		return -1;
	if (verdict == 0)
		handshake_over(c);
	channel_move(c, verdict == 0 ? CH_ANSWERED : CH_FLUSH);
	return 0;
}

static int
take_answer(struct channel *c, uint8_t *message, size_t size, struct err *e)
{
	if ((c->peer = malloc(sizeof(*c->peer))) == NULL)
		return err_set(e, ERR_LOCAL, "out of memory");
	if (handshake_conclude(c->handshake, message, size, clock_wall_ms(),
		c->peer, e) == -1) {
		free(c->peer);
		c->peer = NULL;
		return -1;
	}
	handshake_over(c);
	channel_open(c);
	/* The node takes us for proven with our first record. */
	if (c->state == CH_OPEN && c->send.nonce == 0)
		return queue_record(c, REC_PING, NULL, 0, e);
	return 0;
}

static int
take_record(struct channel *c, uint8_t *message, size_t size, struct err *e)
{
	size_t n;

	if (noise_open(&c->receive, message, size, &n, e) == -1)
		return -1;
	if (n == 0)
		return err_set(e, ERR_PROTOCOL, "a record without a type");
	n--;
	if (record_check(message[0], c->server ? FROM_CLIENT : FROM_SERVER, n,
		e) == -1)
		return -1;
	if (c->state == CH_ANSWERED)
		channel_open(c);
	if (c->state != CH_OPEN || message[0] == REC_PONG)
		return 0;
	if (message[0] == REC_PING)
		return echo_ping(c, message + 1, n, e);
	c->handlers->record(c, (enum record_type)message[0], message + 1, n,
	    c->arg);
	return 0;
}

/* A peer that asks and never reads gets no more echoes. */
static int
echo_ping(struct channel *c, const uint8_t *body, size_t size, struct err *e)
{
	if (stream_queued(&c->stream) > CHANNEL_HIGH_WATER)
		return 0;
	return queue_record(c, REC_PONG, body, size, e);
}

static void
channel_open(struct channel *c)
{
	channel_move(c, CH_OPEN);
	if (c->handlers->opened != NULL)
		c->handlers->opened(c, c->arg);
}

static void
handshake_over(struct channel *c)
{
	handshake_split(c->handshake, &c->send, &c->receive);
	free(c->handshake);
	c->handshake = NULL;
}

static int
queue_message(struct channel *c, const uint8_t *message, size_t size,
    struct err *e)
{
	uint8_t *p = stream_reserve(&c->stream, size);

	if (p == NULL)
		return err_set(e, ERR_LOCAL, "out of memory");
	memcpy(p, message, size);
	stream_commit(&c->stream, size);
	return 0;
}

/* Builds the record where it leaves from, and encrypts it there. */
static int
queue_record(struct channel *c, enum record_type type, const void *body,
    size_t size, struct err *e)
{
	size_t sealed = 1 + size + NOISE_TAG_SIZE;
	uint8_t *p = stream_reserve(&c->stream, sealed);

	if (p == NULL)
		return err_set(e, ERR_LOCAL, "out of memory");
	p[0] = (uint8_t)type;
	if (size > 0)
		memcpy(p + 1, body, size);
	if (noise_seal(&c->send, p, 1 + size, e) == -1)
		return -1;
	stream_commit(&c->stream, sealed);
	if (stream_queued(&c->stream) > CHANNEL_HIGH_WATER)
		c->above_high = true;
	return 0;
}
