/* sock.c: see sock.h. */
#include "proxyd/http/sock.h"

#include <sys/ioctl.h>
#include <sys/socket.h>
#include <linux/sockios.h>
#include <errno.h>
#include <unistd.h>

#include "proxyd/tls/conn.h"

#define LAZY_MAX   (256 << 10)
#define EVERYTHING (EV_READ | EV_WRITE | EV_CLOSED | EV_PERSIST | EV_ET)

int
sock_open(struct sock *s, int fd, struct sock_loop *loop,
    event_callback_fn ready, void *arg)
{
	s->fd = fd;
	s->readable = s->writable = s->closed = s->unsure = false;
	s->muted = s->shutting = false;
	s->lazy = 0;
	s->tls = NULL;
	s->loop = loop;
	s->turn.le_prev = NULL;
	if (event_assign(&s->ev, loop->base, fd, EVERYTHING, ready, arg) ==
		-1 ||
	    event_add(&s->ev, NULL) == -1) {
		close(fd);
		s->fd = -1;
		return -1;
	}
	return 0;
}

void
sock_event(struct sock *s, short what)
{
	if (what & (EV_READ | EV_CLOSED))
		s->readable = true;
	if (what & EV_CLOSED)
		s->closed = true;
	else if ((what & (EV_READ | EV_WRITE)) == (EV_READ | EV_WRITE))
		s->unsure = true;
	if (what & EV_WRITE)
		s->writable = true;
	if (s->tls != NULL)
		tls_told(s->tls, what & (EV_READ | EV_CLOSED), what & EV_WRITE);
	if (s->shutting && s->writable)
		sock_shut(s);
}

void
sock_secure(struct sock *s, struct tls_conn *t)
{
	s->tls = t;
}

void
sock_unsecure(struct sock *s)
{
	tls_conn_free(s->tls);
	s->tls = NULL;
	s->readable = s->writable = true;
}

bool
sock_raw_in(const struct sock *s)
{
	return s->tls == NULL;
}

bool
sock_raw_out(const struct sock *s)
{
	return s->tls == NULL || tls_raw_out(s->tls);
}

ssize_t
sock_recv(struct sock *s, void *buf, size_t size)
{
	ssize_t n;

	if (s->tls != NULL)
		return tls_recv(s->tls, buf, size);
	do
		n = recv(s->fd, buf, size, 0);
	while (n == -1 && errno == EINTR);
	if (n > 0) {
		/* A short read means empty, and the next byte is a new edge;
		 * but a FIN already told gives none. */
		if ((size_t)n < size)
			s->readable = s->closed;
		return n;
	}
	if (n == 0) {
		s->closed = true;
		s->readable = false;
		return SOCK_EOF;
	}
	s->readable = false;
	return errno == EAGAIN ? SOCK_AGAIN : SOCK_ERROR;
}

bool
sock_look_again(struct sock *s)
{
	if (s->unsure) {
		s->readable = true;
		if (s->tls != NULL)
			tls_told(s->tls, true, false);
	}
	s->unsure = false;
	return s->readable;
}

ssize_t
sock_send(struct sock *s, struct iovec *iov, int n, bool more)
{
	int flags = MSG_NOSIGNAL | (more ? MSG_MORE : 0);
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = (size_t)n };
	size_t all = 0;
	ssize_t sent;

	if (!sock_raw_out(s))
		return tls_send(s->tls, iov, n, more);
	for (int i = 0; i < n; i++)
		all += iov[i].iov_len;
	do
		sent = n == 1 ?
		    send(s->fd, iov->iov_base, iov->iov_len, flags) :
		    sendmsg(s->fd, &msg, flags);
	while (sent == -1 && errno == EINTR);
	if (sent == -1) {
		s->writable = false;
		return errno == EAGAIN ? 0 : SOCK_ERROR;
	}
	/* A short write has asked the kernel to tell when there is room. */
	s->writable = (size_t)sent == all;
	return sent;
}

bool
sock_last_word(struct sock *s)
{
	return s->tls == NULL || tls_shut(s->tls);
}

int
sock_unsent(const struct sock *s)
{
	int n = 0;

	return ioctl(s->fd, SIOCOUTQ, &n) == -1 ? 0 : n;
}

void
sock_shut(struct sock *s)
{
	s->shutting = !sock_last_word(s);
	if (s->shutting)
		s->writable = false;
	else
		shutdown(s->fd, SHUT_WR);
}

void
sock_close(struct sock *s)
{
	if (s->fd == -1)
		return;
	event_del(&s->ev);
	sock_last_word(s);
	tls_conn_free(s->tls);
	s->tls = NULL;
	if (s->turn.le_prev != NULL)
		LIST_REMOVE(s, turn);
	s->turn.le_prev = NULL;
	close(s->fd);
	s->fd = -1;
}

void
sock_abort(struct sock *s)
{
	struct linger reset = { .l_onoff = 1, .l_linger = 0 };

	if (s->fd == -1)
		return;
	setsockopt(s->fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	/* TLS must not say that this was the end. */
	tls_conn_free(s->tls);
	s->tls = NULL;
	sock_close(s);
}

static void
wait_for(struct sock *s, short what)
{
	event_callback_fn ready = event_get_callback(&s->ev);
	struct event_base *base = event_get_base(&s->ev);
	void *arg = event_get_callback_arg(&s->ev);

	event_del(&s->ev);
	event_assign(&s->ev, base, s->fd, what, ready, arg);
	event_add(&s->ev, NULL);
}

void
sock_mute(struct sock *s)
{
	if (s->muted || s->fd == -1)
		return;
	s->muted = true;
	wait_for(s, EV_WRITE | EV_PERSIST | EV_ET);
}

void
sock_unmute(struct sock *s)
{
	if (!s->muted || s->fd == -1)
		return;
	s->muted = false;
	wait_for(s, EVERYTHING);
}

/* A quarter of the buffer: the kernel would make it larger for more, and
 * clamp the window. */
void
sock_lazy(struct sock *s)
{
	socklen_t len = sizeof(int);
	int low;

	if (getsockopt(s->fd, SOL_SOCKET, SO_RCVBUF, &low, &len) == -1)
		return;
	low = low / 4 < LAZY_MAX ? low / 4 : LAZY_MAX;
	if (low > s->lazy + s->lazy / 2 &&
	    setsockopt(s->fd, SOL_SOCKET, SO_RCVLOWAT, &low, sizeof(low)) == 0)
		s->lazy = low;
}

void
sock_eager(struct sock *s)
{
	int one = 1;

	if (s->lazy > 0)
		setsockopt(s->fd, SOL_SOCKET, SO_RCVLOWAT, &one, sizeof(one));
	s->lazy = 0;
}

/* --- turns */

/* What a callback makes active runs before the kernel is asked again what
 * else there is; so one who did that could keep all others out.  A time-out
 * of nothing comes behind that question. */
static void
next_turn(evutil_socket_t fd, short what, void *arg)
{
	struct sock_loop *l = arg;
	struct sock *s;

	(void)fd;
	(void)what;
	while ((s = LIST_FIRST(&l->again)) != NULL) {
		LIST_REMOVE(s, turn);
		s->turn.le_prev = NULL;
		event_active(&s->ev, EV_READ, 0);
	}
}

void
sock_again(struct sock *s)
{
	static const struct timeval now = { 0, 0 };

	if (s->fd == -1 || s->turn.le_prev != NULL)
		return;
	LIST_INSERT_HEAD(&s->loop->again, s, turn);
	event_add(s->loop->next, &now);
}

int
sock_loop_init(struct sock_loop *l, struct event_base *base)
{
	LIST_INIT(&l->again);
	l->base = base;
	l->next = event_new(base, -1, 0, next_turn, l);
	return l->next != NULL ? 0 : -1;
}

void
sock_loop_fini(struct sock_loop *l)
{
	if (l->next != NULL)
		event_free(l->next);
	l->next = NULL;
}
