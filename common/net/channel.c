/*
 * channel.c: see channel.h.  handshake.c judges the peer, frame.c cuts the
 * stream into messages; here are the states of a session, its socket and its
 * deadlines.
 */
#include "common/net/channel.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <event2/event_struct.h>
#include <sodium.h>

#include "common/base/clock.h"
#include "common/base/io.h"
#include "common/net/frame.h"
#include "common/net/handshake.h"

#define TO(state) (1u << (state))

/* What one recv(2) takes at most: two of the largest frames. */
#define READ_SIZE (2 * (FRAME_HEAD_SIZE + PROTO_FRAME_MAX))

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
	bool blocked;	 /* the socket takes no more at present */
	bool above_high; /* and `drained` is owed */
	int fd;
	short watched; /* what `io` is added for */
	struct event_base *base;
	struct event io;       /* the socket */
	struct event turn;     /* deferred: flush, resume, reap */
	struct event deadline; /* of the handshake, of the goodbye */
	const struct channel_handlers *handlers;
	const struct channel_policy *policy; /* server */
	void *arg;
	struct addr addr;
	struct handshake *handshake; /* NULL once open */
	struct peer *peer;	     /* NULL before that */
	struct noise_cipher send, receive;
	struct queue in; /* received, not yet a whole record or held back */
	struct queue out;
	uint64_t bytes_in, bytes_out;
	struct err why; /* code ERR_NONE: an orderly end */
};

static int take_offer(struct channel *, uint8_t *, size_t, struct err *);
static int take_answer(struct channel *, uint8_t *, size_t, struct err *);
static int take_record(struct channel *, uint8_t *, size_t, struct err *);

/* The whole life of a channel: where each state may go, and what it makes of
 * an incoming message of at most `max` bytes.  Unproven peers get little. */
static const struct {
	unsigned next;
	int (*take)(struct channel *, uint8_t *message, size_t, struct err *);
	size_t max;
} channel_states[] = {
	[CH_CONNECT]  = { TO(CH_OFFERED) | TO(CH_DEAD), NULL, 0 },
	[CH_OFFERED]  = { TO(CH_OPEN) | TO(CH_DEAD),
	    take_answer, PROTO_HANDSHAKE_MAX },
	[CH_EXPECT]   = { TO(CH_ANSWERED) | TO(CH_FLUSH) | TO(CH_DEAD),
	    take_offer, PROTO_HANDSHAKE_MAX },
	[CH_ANSWERED] = { TO(CH_OPEN) | TO(CH_DEAD),
	    take_record, PROTO_HANDSHAKE_MAX },
	[CH_OPEN]     = { TO(CH_FLUSH) | TO(CH_DEAD),
	    take_record, PROTO_FRAME_MAX },
	[CH_FLUSH]    = { TO(CH_LINGER) | TO(CH_DEAD), NULL, 0 },
	[CH_LINGER]   = { TO(CH_DEAD), NULL, 0 },
	[CH_DEAD]     = { 0, NULL, 0 },
};
_Static_assert(nitems(channel_states) == CH_N_STATES, "a row per state");

static struct channel *channel_new(struct event_base *, int fd,
    const struct addr *, const struct channel_handlers *, void *arg,
    struct err *);
static struct channel *client_start(struct channel *, int timeout_ms);
static void channel_move(struct channel *, enum channel_state);
static void channel_die(struct channel *, const struct err *why);
static void channel_reap(struct channel *);
static bool is_held(const struct channel *);
static void channel_watch(struct channel *);
static void set_deadline(struct channel *, int ms);
static void on_io(evutil_socket_t, short what, void *);
static void on_turn(evutil_socket_t, short what, void *);
static void on_deadline(evutil_socket_t, short what, void *);
static void channel_connected(struct channel *);
static void channel_read(struct channel *);
static void channel_ended(struct channel *, int error);
static size_t channel_consume(struct channel *, uint8_t *bytes, size_t size);
static void channel_flush(struct channel *);
static void channel_unwritable(struct channel *);
static void handshake_over(struct channel *);
static int queue_message(struct channel *, const uint8_t *message,
    size_t size, struct err *);
static int queue_record(struct channel *, enum record_type, const void *body,
    size_t size, struct err *);
static int check_record(unsigned type, enum record_sender from, size_t size,
    struct err *);
static void tune_socket(int fd);

/* Filled by one recv(2) and emptied before the next: one for all channels,
 * so that an idle one holds no buffer. */
static uint8_t read_buf[READ_SIZE];

struct channel *
channel_connect(struct event_base *base, const struct addr *to,
    const struct channel_identity *us, const uint8_t node_key[KEY_SIZE],
    int timeout_ms, const struct channel_handlers *handlers, void *arg,
    struct err *e)
{
	struct channel *c = channel_new(base, -1, to, handlers, arg, e);

	if (c == NULL)
		return NULL;
	handshake_client(c->handshake, us, node_key);
	return client_start(c, timeout_ms);
}

struct channel *
channel_connect_join(struct event_base *base, const struct addr *to,
    const struct channel_identity *us, const struct token *token,
    int timeout_ms, const struct channel_handlers *handlers, void *arg,
    struct err *e)
{
	struct channel *c = channel_new(base, -1, to, handlers, arg, e);

	if (c == NULL)
		return NULL;
	handshake_join(c->handshake, us, token);
	return client_start(c, timeout_ms);
}

struct channel *
channel_accept(struct event_base *base, int fd, const struct addr *from,
    const struct channel_identity *us, const struct channel_policy *policy,
    const struct channel_handlers *handlers, void *arg, struct err *e)
{
	struct channel *c = channel_new(base, fd, from, handlers, arg, e);

	if (c == NULL)
		return NULL;
	c->server = true;
	c->policy = policy;
	c->state = CH_EXPECT;
	handshake_server(c->handshake, us);
	set_deadline(c, policy->handshake_ms > 0 ? policy->handshake_ms :
	    PROTO_HANDSHAKE_S * 1000);
	channel_watch(c);
	return c;
}

int
channel_send(struct channel *c, enum record_type type, const void *body,
    size_t size, struct err *e)
{
	if (c->state != CH_OPEN)
		return err_set(e, ERR_UNREACHABLE, "the session is over");
	if (check_record(type, c->server ? FROM_SERVER : FROM_CLIENT, size,
	    e) == -1)
		return -1;
	if (queue_size(&c->out) > CHANNEL_QUEUE_MAX)
		return err_set(e, ERR_BUSY,
		    "the peer takes nothing and %zu bytes wait",
		    queue_size(&c->out));
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
	char *text = o == NULL ? NULL : json_dumps(o, JSON_COMPACT);
	int rv;

	json_decref(o);
	if (text == NULL)
		return err_set(e, ERR_LOCAL, "cannot build a message: out "
		    "of memory or text that is not UTF-8");
	rv = channel_send(c, type, text, strlen(text), e);
	free(text);
	return rv;
}

int
channel_send_error(struct channel *c, const struct err *error)
{
	char json[PROTO_ERROR_MAX];
	struct err e;

	return channel_send(c, REC_ERROR, json,
	    proto_format_error(error, json), &e);
}

size_t
channel_queued(const struct channel *c)
{
	return queue_size(&c->out);
}

void
channel_pause(struct channel *c)
{
	c->paused = true;
	channel_watch(c);
}

void
channel_resume(struct channel *c)
{
	if (!c->paused)
		return;
	c->paused = false;
	channel_watch(c);
	event_active(&c->turn, EV_TIMEOUT, 0);
}

void
channel_close(struct channel *c)
{
	if (c->state == CH_OPEN)
		channel_move(c, CH_FLUSH);
	else if (c->state < CH_OPEN)
		channel_die(c, NULL);
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
	return c->peer != NULL && c->peer->has_cert ? &c->peer->cert : NULL;
}

const uint8_t *
channel_peer_key(const struct channel *c)
{
	return c->peer != NULL ? c->peer->key : NULL;
}

const uint8_t *
channel_join_id(const struct channel *c)
{
	return c->server && c->peer != NULL && !c->peer->has_cert ?
	    c->peer->join_id : NULL;
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

int64_t
channel_skew_ms(const struct channel *c)
{
	return c->peer != NULL ? c->peer->skew_ms : 0;
}

uint64_t
channel_bytes_in(const struct channel *c)
{
	return c->bytes_in;
}

uint64_t
channel_bytes_out(const struct channel *c)
{
	return c->bytes_out;
}

/* ---- life ------------------------------------------------------------- */

/* fd -1: a new socket for the address. */
static struct channel *
channel_new(struct event_base *base, int fd, const struct addr *addr,
    const struct channel_handlers *handlers, void *arg, struct err *e)
{
	struct channel *c = calloc(1, sizeof(*c));

	if (fd == -1 && (fd = socket(addr->u.sa.sa_family,
	    SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)) == -1) {
		err_errno(e, ERR_LOCAL, "cannot make a socket");
		goto fail;
	}
	if (c == NULL || (c->handshake = malloc(sizeof(*c->handshake))) ==
	    NULL) {
		err_set(e, ERR_LOCAL, "out of memory");
		goto fail;
	}
	tune_socket(fd);
	c->fd = fd;
	c->base = base;
	c->handlers = handlers;
	c->arg = arg;
	c->addr = *addr;
	event_assign(&c->io, base, fd, 0, on_io, c);
	event_assign(&c->turn, base, -1, 0, on_turn, c);
	evtimer_assign(&c->deadline, base, on_deadline, c);
	return c;
fail:
	free(c);
	io_close(&fd);
	return NULL;
}

static struct channel *
client_start(struct channel *c, int timeout_ms)
{
	struct err e;
	char text[ADDR_TEXT_MAX];

	c->state = CH_CONNECT;
	set_deadline(c, timeout_ms);
	if (connect(c->fd, &c->addr.u.sa, c->addr.len) == -1 &&
	    errno != EINPROGRESS) {
		addr_format(&c->addr, text);
		err_errno(&e, ERR_UNREACHABLE, "cannot connect to %s", text);
		channel_die(c, &e);
		return c;
	}
	channel_watch(c);
	return c;
}

/* The only place where a channel changes its state. */
static void
channel_move(struct channel *c, enum channel_state to)
{
	assert(channel_states[c->state].next & TO(to));
	c->state = to;
	if (to == CH_OPEN)
		evtimer_del(&c->deadline);
	if (to == CH_FLUSH)
		set_deadline(c, CHANNEL_LINGER_S * 1000);
	if (to == CH_FLUSH || to == CH_DEAD)
		event_active(&c->turn, EV_TIMEOUT, 0);
	if (to == CH_LINGER)
		shutdown(c->fd, SHUT_WR);
	if (to == CH_DEAD) {
		evtimer_del(&c->deadline);
		event_del(&c->io);
		io_close(&c->fd);
		return;
	}
	channel_watch(c);
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
	event_del(&c->turn);
	if (c->handshake != NULL)
		handshake_wipe(c->handshake);
	free(c->handshake);
	free(c->peer);
	queue_drop(&c->in, queue_size(&c->in));
	queue_drop(&c->out, queue_size(&c->out));
	sodium_memzero(c, sizeof(*c));
	free(c);
}

/* A pause holds back records; the handshake and the goodbye go on. */
static bool
is_held(const struct channel *c)
{
	return c->paused && c->state == CH_OPEN;
}

/* Asks the loop for what the state needs, and for nothing else. */
static void
channel_watch(struct channel *c)
{
	short what = EV_READ | EV_PERSIST;

	if (c->state == CH_DEAD)
		return;
	if (c->state == CH_CONNECT)
		what = EV_WRITE | EV_PERSIST;
	else if (is_held(c))
		/* A node that holds back input must still notice that its
		 * client is gone; a client reads what is left of a node. */
		what = c->server ? EV_CLOSED | EV_PERSIST : EV_PERSIST;
	if (c->blocked)
		what |= EV_WRITE;
	if (what == c->watched)
		return;
	event_del(&c->io);
	event_assign(&c->io, c->base, c->fd, what, on_io, c);
	if (what != EV_PERSIST)
		event_add(&c->io, NULL);
	c->watched = what;
}

/* Small records leave at once; a peer whose machine vanished is noticed in
 * less than a minute.  On a socket pair (in tests) all this does nothing. */
static void
tune_socket(int fd)
{
	static const struct {
		int level, option, value;
	} options[] = {
		{ IPPROTO_TCP, TCP_NODELAY,   1  },
		{ SOL_SOCKET,  SO_KEEPALIVE,  1  },
		{ IPPROTO_TCP, TCP_KEEPIDLE,  20 },
		{ IPPROTO_TCP, TCP_KEEPINTVL, 10 },
		{ IPPROTO_TCP, TCP_KEEPCNT,   3  },
	};

	for (size_t i = 0; i < nitems(options); i++)
		setsockopt(fd, options[i].level, options[i].option,
		    &options[i].value, sizeof(options[i].value));
}

static void
set_deadline(struct channel *c, int ms)
{
	struct timeval tv = { ms / 1000, ms % 1000 * 1000 };

	evtimer_add(&c->deadline, &tv);
}

/* ---- events ----------------------------------------------------------- */

static void
on_io(evutil_socket_t fd, short what, void *arg)
{
	struct channel *c = arg;
	struct err e;

	(void)fd;
	if (c->state == CH_CONNECT) {
		channel_connected(c);
		return;
	}
	if (what & EV_WRITE) {
		c->blocked = false;
		channel_flush(c);
	}
	if (c->state == CH_DEAD)
		return;
	if (what & EV_READ) {
		channel_read(c);
	} else if (what & EV_CLOSED) {
		err_set(&e, ERR_UNREACHABLE,
		    "the peer left before all that it sent was read");
		channel_die(c, &e);
	}
}

static void
on_turn(evutil_socket_t fd, short what, void *arg)
{
	struct channel *c = arg;

	(void)fd;
	(void)what;
	if (c->state != CH_DEAD && queue_size(&c->in) > 0)
		queue_drop(&c->in, channel_consume(c, queue_bytes(&c->in),
		    queue_size(&c->in)));
	if (c->state != CH_DEAD && c->state != CH_CONNECT && !c->blocked)
		channel_flush(c);
	if (c->state == CH_DEAD)
		channel_reap(c);
}

static void
on_deadline(evutil_socket_t fd, short what, void *arg)
{
	struct channel *c = arg;
	char text[ADDR_TEXT_MAX];
	struct err e;

	(void)fd;
	(void)what;
	addr_format(&c->addr, text);
	switch (c->state) {
	case CH_CONNECT:
	case CH_OFFERED:
		err_set(&e, ERR_UNREACHABLE, c->state == CH_CONNECT ?
		    "no answer from %s in time" :
		    "%s took the connection but does not answer", text);
		break;
	case CH_EXPECT:
	case CH_ANSWERED:
		err_set(&e, ERR_TIMEOUT,
		    "the peer did not finish the handshake in time");
		break;
	case CH_FLUSH:
		err_set(&e, ERR_TIMEOUT,
		    "the peer did not take the last %zu bytes",
		    queue_size(&c->out));
		break;
	default:
		channel_die(c, NULL);
		return;
	}
	/* What made us close counts more than how the closing went. */
	channel_die(c, c->why.code == ERR_NONE ? &e : NULL);
}

/* ---- socket ----------------------------------------------------------- */

static void
channel_connected(struct channel *c)
{
	uint8_t offer[PROTO_HANDSHAKE_MAX];
	char text[ADDR_TEXT_MAX];
	socklen_t len = sizeof(errno);
	struct err e;
	size_t size;
	int error = 0;

	if (getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &len) == -1)
		error = errno;
	if (error != 0) {
		addr_format(&c->addr, text);
		errno = error;
		err_errno(&e, ERR_UNREACHABLE, "cannot connect to %s", text);
		channel_die(c, &e);
		return;
	}
	if (handshake_offer(c->handshake, clock_wall_ms(), offer, &size,
	    &e) == -1 || queue_message(c, offer, size, &e) == -1) {
		channel_die(c, &e);
		return;
	}
	channel_move(c, CH_OFFERED);
	channel_flush(c);
}

/* One recv(2) a call: the loop comes back while there is more, and others
 * get their turn in between. */
static void
channel_read(struct channel *c)
{
	size_t held = queue_size(&c->in), used;
	ssize_t n;
	uint8_t *rest;

	if (held > 0)
		memcpy(read_buf, queue_bytes(&c->in), held);
	n = recv(c->fd, read_buf + held, sizeof(read_buf) - held, 0);
	if (n == -1 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		channel_ended(c, n == 0 ? 0 : errno);
		return;
	}
	c->bytes_in += (size_t)n;
	queue_drop(&c->in, held);
	held += (size_t)n;
	used = channel_consume(c, read_buf, held);
	if (used == held || channel_states[c->state].take == NULL)
		return;
	if ((rest = queue_reserve(&c->in, held - used)) == NULL) {
		struct err e;

		err_set(&e, ERR_LOCAL, "out of memory");
		channel_die(c, &e);
		return;
	}
	memcpy(rest, read_buf + used, held - used);
	queue_commit(&c->in, held - used);
}

/* Input ended: with an error of recv(2), or 0 for an end of file. */
static void
channel_ended(struct channel *c, int error)
{
	bool clean = c->state == CH_OPEN && error == 0 &&
	    queue_size(&c->in) == 0;
	char text[ADDR_TEXT_MAX];
	struct err e;

	if (clean || c->state == CH_FLUSH || c->state == CH_LINGER) {
		channel_die(c, NULL);
		return;
	}
	addr_format(&c->addr, text);
	errno = error;
	if (c->state == CH_OFFERED && error == 0)
		err_set(&e, ERR_UNREACHABLE,
		    "%s hung up in the handshake: it has another key than "
		    "expected, or is no nodeagent", text);
	else if (error == 0)
		err_set(&e, ERR_UNREACHABLE, "%s left in the middle of %s",
		    text, c->state == CH_OPEN ? "a record" : "the handshake");
	else
		err_errno(&e, ERR_UNREACHABLE, "the connection to %s broke",
		    text);
	channel_die(c, &e);
}

/* Hands over whole messages; returns how many bytes they were. */
static size_t
channel_consume(struct channel *c, uint8_t *bytes, size_t size)
{
	size_t used = 0, n = 0;
	struct err e;
	int got;

	while (channel_states[c->state].take != NULL && !is_held(c)) {
		got = frame_peek(bytes + used, size - used,
		    channel_states[c->state].max, &n, &e);
		if (got == 0)
			break;
		if (got == 1)
			got = channel_states[c->state].take(c,
			    bytes + used + FRAME_HEAD_SIZE, n, &e);
		if (got == -1) {
			channel_die(c, &e);
			break;
		}
		used += FRAME_HEAD_SIZE + n;
	}
	return used;
}

static void
channel_flush(struct channel *c)
{
	while (queue_size(&c->out) > 0) {
		ssize_t n = send(c->fd, queue_bytes(&c->out),
		    queue_size(&c->out), MSG_NOSIGNAL);

		if (n == -1 && errno == EINTR)
			continue;
		if (n == -1 && errno == EAGAIN)
			break;
		if (n == -1) {
			channel_unwritable(c);
			return;
		}
		c->bytes_out += (size_t)n;
		queue_drop(&c->out, (size_t)n);
	}
	c->blocked = queue_size(&c->out) > 0;
	channel_watch(c);
	if (c->state == CH_FLUSH && !c->blocked)
		channel_move(c, CH_LINGER);
	if (c->state != CH_OPEN || !c->above_high ||
	    queue_size(&c->out) > CHANNEL_LOW_WATER)
		return;
	c->above_high = false;
	if (c->handlers->drained != NULL)
		c->handlers->drained(c, c->arg);
}

/* send(2) failed with errno.  What the peer said before it broke off may
 * still be read, and tells more: the end is left to recv(2). */
static void
channel_unwritable(struct channel *c)
{
	char text[ADDR_TEXT_MAX];

	addr_format(&c->addr, text);
	if (c->why.code == ERR_NONE)
		err_errno(&c->why, ERR_UNREACHABLE,
		    "the connection to %s broke", text);
	queue_drop(&c->out, queue_size(&c->out));
	if (c->state == CH_FLUSH)
		channel_die(c, NULL);
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
	event_active(&c->turn, EV_TIMEOUT, 0);
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
	channel_move(c, CH_OPEN);
	if (c->handlers->opened != NULL)
		c->handlers->opened(c, c->arg);
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
	if (check_record(message[0], c->server ? FROM_CLIENT : FROM_SERVER, n,
	    e) == -1)
		return -1;
	if (c->state == CH_ANSWERED) {
		channel_move(c, CH_OPEN);
		if (c->handlers->opened != NULL)
			c->handlers->opened(c, c->arg);
	}
	if (c->state != CH_OPEN || message[0] == REC_PONG)
		return 0;
	/* A peer that asks and never reads gets no more echoes. */
	if (message[0] == REC_PING)
		return queue_size(&c->out) > CHANNEL_HIGH_WATER ? 0 :
		    queue_record(c, REC_PONG, message + 1, n, e);
	c->handlers->record(c, (enum record_type)message[0], message + 1, n,
	    c->arg);
	return 0;
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
	uint8_t *p = queue_reserve(&c->out, FRAME_HEAD_SIZE + size);

	if (p == NULL)
		return err_set(e, ERR_LOCAL, "out of memory");
	frame_put_head(p, size);
	memcpy(p + FRAME_HEAD_SIZE, message, size);
	queue_commit(&c->out, FRAME_HEAD_SIZE + size);
	return 0;
}

/* Builds the record where it leaves from and encrypts it there. */
static int
queue_record(struct channel *c, enum record_type type, const void *body,
    size_t size, struct err *e)
{
	size_t sealed = 1 + size + NOISE_TAG_SIZE;
	uint8_t *p = queue_reserve(&c->out, FRAME_HEAD_SIZE + sealed);

	if (p == NULL)
		return err_set(e, ERR_LOCAL, "out of memory");
	frame_put_head(p, sealed);
	p[FRAME_HEAD_SIZE] = (uint8_t)type;
	if (size > 0)
		memcpy(p + FRAME_HEAD_SIZE + 1, body, size);
	if (noise_seal(&c->send, p + FRAME_HEAD_SIZE, 1 + size, e) == -1)
		return -1;
	queue_commit(&c->out, FRAME_HEAD_SIZE + sealed);
	if (queue_size(&c->out) > CHANNEL_HIGH_WATER)
		c->above_high = true;
	/* One write at the end of this turn of the loop takes them all. */
	if (!c->blocked)
		event_active(&c->turn, EV_TIMEOUT, 0);
	return 0;
}

static int
check_record(unsigned type, enum record_sender from, size_t size,
    struct err *e)
{
	const struct record_spec *spec = record_spec(type);

	if (spec == NULL)
		return err_set(e, ERR_PROTOCOL, "unknown record type %u",
		    type);
	if (!(spec->from & from))
		return err_set(e, ERR_PROTOCOL,
		    "a %s does not send %s records",
		    from == FROM_CLIENT ? "client" : "node", spec->name);
	if (size < spec->min || size > spec->max)
		return err_set(e, ERR_PROTOCOL,
		    "a %s record holds %u to %u bytes, not %zu", spec->name,
		    spec->min, spec->max, size);
	return 0;
}
