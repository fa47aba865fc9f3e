/* stream.c: see stream.h. */
#include "common/net/stream.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <errno.h>
#include <string.h>

#include "common/base/io.h"
#include "common/net/proto.h"

/* What one recv(2) takes at most: two of the largest frames. */
#define READ_SIZE (2 * (FRAME_HEAD_SIZE + PROTO_FRAME_MAX))

/* Doubled from 0.2 s each time, they take 25 s on a local network. */
#define LOST_RETRANSMITS 7

/* What each mode asks the loop for. */
static const short mode_events[] = {
	[STREAM_CONNECTING] = EV_WRITE,
	[STREAM_READING] = EV_READ,
	[STREAM_HELD] = 0,
	[STREAM_GUARDED] = EV_CLOSED,
	[STREAM_DRAINING] = EV_READ,
	[STREAM_CLOSED] = 0,
};
_Static_assert(nitems(mode_events) == STREAM_N_MODES, "a row per mode");

static void stream_start(struct stream *, struct event_base *, int fd,
    const struct stream_handlers *, void *arg);
static void tune_socket(int fd);
static void stream_watch(struct stream *);
static void on_io(evutil_socket_t, short what, void *);
static void on_turn(evutil_socket_t, short what, void *);
static void stream_connected(struct stream *);
static void stream_read(struct stream *);
static void stream_keep(struct stream *, const uint8_t *bytes, size_t size);
static size_t stream_deliver(struct stream *, uint8_t *bytes, size_t size);
static void stream_flush(struct stream *);

/* Filled by one recv(2) and emptied before the next. */
static uint8_t read_buf[READ_SIZE];

void
stream_init(struct stream *s, struct event_base *base, int fd,
    const struct stream_handlers *handlers, void *arg)
{
	stream_start(s, base, fd, handlers, arg);
	stream_set_mode(s, STREAM_READING);
}

int
stream_connect(struct stream *s, struct event_base *base, const struct addr *to,
    const struct stream_handlers *handlers, void *arg, struct err *e)
{
	int fd = socket(to->u.sa.sa_family,
	    SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd == -1)
		return err_errno(e, ERR_LOCAL, "cannot make a socket");
	stream_start(s, base, fd, handlers, arg);
	/* The loop will find the socket hung up, and ask for the reason. */
	if (connect(fd, &to->u.sa, to->len) == -1 && errno != EINPROGRESS)
		s->connect_error = errno;
	stream_set_mode(s, STREAM_CONNECTING);
	return 0;
}

void
stream_close(struct stream *s)
{
	s->mode = STREAM_CLOSED;
	event_del(&s->io);
	event_del(&s->turn);
	io_close(&s->fd);
}

void
stream_fini(struct stream *s)
{
	stream_close(s);
	queue_drop(&s->in, queue_size(&s->in));
	queue_drop(&s->out, queue_size(&s->out));
}

void
stream_set_mode(struct stream *s, enum stream_mode mode)
{
	if (s->mode == STREAM_CLOSED || s->mode == mode)
		return;
	s->mode = mode;
	stream_watch(s);
	if (mode == STREAM_READING && queue_size(&s->in) > 0)
		event_active(&s->turn, EV_TIMEOUT, 0);
}

uint8_t *
stream_reserve(struct stream *s, size_t size)
{
	uint8_t *p = queue_reserve(&s->out, FRAME_HEAD_SIZE + size);

	return p == NULL ? NULL : p + FRAME_HEAD_SIZE;
}

void
stream_commit(struct stream *s, size_t size)
{
	frame_put_head(s->out.buf + s->out.tail, size);
	queue_commit(&s->out, FRAME_HEAD_SIZE + size);
	if (!s->blocked)
		event_active(&s->turn, EV_TIMEOUT, 0);
}

size_t
stream_queued(const struct stream *s)
{
	return queue_size(&s->out);
}

bool
stream_has_rest(const struct stream *s)
{
	return queue_size(&s->in) > 0;
}

/*
 * The kernel itself gives up after a quarter of an hour.  TCP_USER_TIMEOUT
 * would be shorter, but it counts also while a living peer keeps its window
 * shut: an operator who reads a full screen would lose the session.
 */
bool
stream_is_lost(const struct stream *s)
{
	struct tcp_info info = { 0 };
	socklen_t len = sizeof(info);

	return getsockopt(s->fd, IPPROTO_TCP, TCP_INFO, &info, &len) == 0 &&
	    info.tcpi_retransmits >= LOST_RETRANSMITS;
}

void
stream_shutdown(struct stream *s)
{
	shutdown(s->fd, SHUT_WR);
}

static void
stream_start(struct stream *s, struct event_base *base, int fd,
    const struct stream_handlers *handlers, void *arg)
{
	memset(s, 0, sizeof(*s));
	s->mode = STREAM_HELD;
	s->fd = fd;
	s->base = base;
	s->handlers = handlers;
	s->arg = arg;
	event_assign(&s->io, base, fd, EV_PERSIST, on_io, s);
	event_assign(&s->turn, base, -1, 0, on_turn, s);
	tune_socket(fd);
}

/* Small records leave at once; while nothing is under way, a peer whose
 * machine vanished is noticed in half a minute.  On a socket pair (in tests)
 * all this does nothing. */
static void
tune_socket(int fd)
{
	static const struct {
		int level, option, value;
	} options[] = {
		{ IPPROTO_TCP, TCP_NODELAY, 1 },
		{ SOL_SOCKET, SO_KEEPALIVE, 1 },
		{ IPPROTO_TCP, TCP_KEEPIDLE, 15 },
		{ IPPROTO_TCP, TCP_KEEPINTVL, 5 },
		{ IPPROTO_TCP, TCP_KEEPCNT, 3 },
	};

	for (size_t i = 0; i < nitems(options); i++)
		setsockopt(fd, options[i].level, options[i].option,
		    &options[i].value, sizeof(options[i].value));
}

/* Asks the loop for what the mode needs, and for nothing else. */
static void
stream_watch(struct stream *s)
{
	short what = mode_events[s->mode] | (s->blocked ? EV_WRITE : 0);

	if (what == s->watched)
		return;
	event_del(&s->io);
	event_assign(&s->io, s->base, s->fd, what | EV_PERSIST, on_io, s);
	if (what != 0)
		event_add(&s->io, NULL);
	s->watched = what;
}

static void
on_io(evutil_socket_t fd, short what, void *arg)
{
	struct stream *s = arg;

	(void)fd;
	if (s->mode == STREAM_CONNECTING) {
		stream_connected(s);
		return;
	}
	if (what & EV_WRITE)
		stream_flush(s);
	if (s->mode == STREAM_GUARDED && (what & EV_CLOSED))
		s->handlers->ended(NULL, s->arg);
	else if (what & mode_events[s->mode] & EV_READ)
		stream_read(s);
}

static void
on_turn(evutil_socket_t fd, short what, void *arg)
{
	struct stream *s = arg;

	(void)fd;
	(void)what;
	if (stream_has_rest(s))
		queue_drop(&s->in,
		    stream_deliver(s, queue_bytes(&s->in), queue_size(&s->in)));
	if (queue_size(&s->out) > 0 && !s->blocked)
		stream_flush(s);
}

static void
stream_connected(struct stream *s)
{
	int error = s->connect_error;
	socklen_t len = sizeof(error);
	struct err e;

	if (error == 0 &&
	    getsockopt(s->fd, SOL_SOCKET, SO_ERROR, &error, &len) == -1)
		error = errno;
	if (error == 0) {
		stream_set_mode(s, STREAM_READING);
		s->handlers->connected(s->arg);
		return;
	}
	errno = error;
	err_errno(&e, ERR_UNREACHABLE, "cannot connect");
	s->handlers->ended(&e, s->arg);
}

/* One recv(2) a call: the loop comes back while there is more, and others
 * get their turn in between. */
static void
stream_read(struct stream *s)
{
	size_t held = queue_size(&s->in), used;
	struct err e;
	ssize_t n;

	if (held > 0)
		memcpy(read_buf, queue_bytes(&s->in), held);
	n = recv(s->fd, read_buf + held, sizeof(read_buf) - held, 0);
	if (n == -1 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n == -1 || (n == 0 && s->send_error != 0)) {
		if (n == 0)
			errno = s->send_error;
		err_errno(&e, ERR_UNREACHABLE, "the connection broke");
		s->handlers->ended(&e, s->arg);
		return;
	}
	if (n == 0) {
		s->handlers->ended(NULL, s->arg);
		return;
	}
	s->bytes_in += (size_t)n;
	queue_drop(&s->in, held);
	held += (size_t)n;
	used = stream_deliver(s, read_buf, held);
	stream_keep(s, read_buf + used, held - used);
}

/* What is not yet a whole message, or came after a hold. */
static void
stream_keep(struct stream *s, const uint8_t *bytes, size_t size)
{
	struct err e;
	uint8_t *rest;

	if (size == 0 || s->mode == STREAM_DRAINING || s->mode == STREAM_CLOSED)
		return;
	if ((rest = queue_reserve(&s->in, size)) == NULL) {
		err_set(&e, ERR_LOCAL, "out of memory");
		s->handlers->ended(&e, s->arg);
		return;
	}
	memcpy(rest, bytes, size);
	queue_commit(&s->in, size);
}

/* Hands over whole messages; returns how many bytes they were. */
static size_t
stream_deliver(struct stream *s, uint8_t *bytes, size_t size)
{
	size_t used = 0, n = 0;
	struct err e;

	while (s->mode == STREAM_READING) {
		int got = frame_peek(bytes + used, size - used, s->max, &n, &e);

		if (got == 0)
			break;
		if (got == -1) {
			s->handlers->ended(&e, s->arg);
			break;
		}
		used += FRAME_HEAD_SIZE + n;
		s->handlers->message(bytes + used - n, n, s->arg);
	}
	return used;
}

static void
stream_flush(struct stream *s)
{
	while (queue_size(&s->out) > 0) {
		ssize_t n = send(s->fd, queue_bytes(&s->out),
		    queue_size(&s->out), MSG_NOSIGNAL);

		if (n == -1 && errno == EINTR)
			continue;
		if (n == -1 && errno == EAGAIN)
			break;
		if (n == -1) {
			/* What the peer said before it broke off may still
			 * be read, and tells more than this. */
			s->send_error = errno;
			n = (ssize_t)queue_size(&s->out);
		} else {
			s->bytes_out += (size_t)n;
		}
		queue_drop(&s->out, (size_t)n);
	}
	s->blocked = queue_size(&s->out) > 0;
	stream_watch(s);
	s->handlers->flushed(s->arg);
}
