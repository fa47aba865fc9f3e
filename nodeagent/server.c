/* server.c: see server.h. */
#include "nodeagent/server.h"

#include <sys/socket.h>
#include <netinet/in.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/io.h"
#include "common/base/log.h"
#include "nodeagent/agent.h"
#include "nodeagent/frugal.h"
#include "nodeagent/limits.h"
#include "nodeagent/master.h"
#include "nodeagent/session.h"
#include "nodeagent/verbs.h"

#define BACKLOG	       1024
#define ACCEPTS_A_TURN 64 /* others on the loop want their turn too */
#define PAUSE_S	       1  /* when descriptors have run out */
#define RECHECK_S      5  /* for certificates that expire meanwhile */

struct server {
	struct agent *agent;
	struct addr addr;
	int fd, spare_fd;
	struct event *readable, *resume, *recheck;
	struct channel_policy policy;
	struct session_list half_open, open; /* the oldest first */
	struct limits limits;
};

static int open_listener(struct server *, bool may_widen, struct err *);
static int bind_or_widen(struct server *, bool may_widen, struct err *);
static int policy_admit(const struct cert *, const struct addr *, void *arg,
    struct err *);
static int policy_join_psk(const uint8_t id[TOKEN_ID_SIZE], const struct addr *,
    uint8_t psk[KEY_SIZE], void *arg, struct err *);
static void server_readable(evutil_socket_t, short, void *);
static bool server_accept(struct server *);
static void server_take(struct server *, int fd, const struct addr *);
static void server_out_of_fds(struct server *);
static void server_resume(evutil_socket_t, short, void *);
static void server_tick(evutil_socket_t, short, void *);
static size_t count(const struct session_list *);

struct server *
server_new(struct agent *a, const struct addr *listen, bool may_widen,
    struct err *e)
{
	struct server *s;

	if ((s = calloc(1, sizeof(*s))) == NULL) {
		err_set(e, ERR_LOCAL, "out of memory for the listener");
		return NULL;
	}
	s->agent = a;
	s->addr = *listen;
	s->fd = s->spare_fd = -1;
	s->policy = (struct channel_policy){ .admit = policy_admit,
		.join_psk = a->master != NULL ? policy_join_psk : NULL,
		.arg = a };
	TAILQ_INIT(&s->half_open);
	TAILQ_INIT(&s->open);
	limits_init(&s->limits);
	if (open_listener(s, may_widen, e) == -1)
		goto fail;
	s->readable =
	    event_new(a->base, s->fd, EV_READ | EV_PERSIST, server_readable, s);
	s->resume = evtimer_new(a->base, server_resume, s);
	s->recheck = evtimer_new(a->base, server_tick, s);
	if (s->readable == NULL || s->resume == NULL || s->recheck == NULL ||
	    event_add(s->readable, NULL) == -1) {
		err_set(e, ERR_LOCAL, "out of memory for the listener");
		goto fail;
	}
	return s;
fail:
	server_free(s);
	return NULL;
}

void
server_free(struct server *s)
{
	if (s == NULL)
		return;
	if (s->readable != NULL)
		event_free(s->readable);
	if (s->resume != NULL)
		event_free(s->resume);
	if (s->recheck != NULL)
		event_free(s->recheck);
	io_close(&s->fd);
	io_close(&s->spare_fd);
	free(s);
}

int
server_move(struct server *s, const struct addr *to, struct err *e)
{
	struct addr was = s->addr;
	struct event *readable = NULL;
	int fd = s->fd;

	err_set(e, ERR_LOCAL, "out of memory for the listener");
	s->addr = *to;
	s->fd = -1;
	if (open_listener(s, true, e) == 0 &&
	    (readable = event_new(s->agent->base, s->fd, EV_READ | EV_PERSIST,
		 server_readable, s)) != NULL &&
	    event_add(readable, NULL) == 0) {
		event_free(s->readable);
		s->readable = readable;
		close(fd);
		return 0;
	}
	if (readable != NULL)
		event_free(readable);
	io_close(&s->fd);
	s->fd = fd;
	s->addr = was;
	return -1;
}

const struct addr *
server_addr(const struct server *s)
{
	return &s->addr;
}

size_t
server_n_sessions(const struct server *s)
{
	return count(&s->open);
}

void
server_recheck(struct server *s)
{
	int64_t now_s = clock_wall_ms() / 1000;

	for (struct session *it = TAILQ_FIRST(&s->open); it != NULL;
	     it = session_next(it))
		session_recheck(it, now_s);
}

void
server_stop(struct server *s, const struct err *why)
{
	event_del(s->readable);
	event_del(s->resume);
	io_close(&s->fd);
	for (struct session *it = TAILQ_FIRST(&s->open); it != NULL;
	     it = session_next(it))
		session_end(it, LOST_AGENT, why);
}

void
server_abort(struct server *s)
{
	while (!TAILQ_EMPTY(&s->half_open))
		session_abort(TAILQ_FIRST(&s->half_open));
	while (!TAILQ_EMPTY(&s->open))
		session_abort(TAILQ_FIRST(&s->open));
}

static int
open_listener(struct server *s, bool may_widen, struct err *e)
{
	static const int on = 1;
	int family = s->addr.u.sa.sa_family;

	if (s->spare_fd == -1)
		s->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	s->fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (s->fd == -1 || s->spare_fd == -1)
		return err_errno(e, ERR_LOCAL, "cannot make a socket");
	setsockopt(s->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind_or_widen(s, may_widen, e) == -1)
		return -1;
	if (listen(s->fd, BACKLOG) == -1)
		return err_errno(e, ERR_LOCAL, "cannot listen");
	s->addr.len = sizeof(s->addr.u);
	if (getsockname(s->fd, &s->addr.u.sa, &s->addr.len) == -1)
		return err_errno(e, ERR_LOCAL, "cannot tell our own address");
	return 0;
}

static int
bind_or_widen(struct server *s, bool may_widen, struct err *e)
{
	char text[ADDR_TEXT_MAX];

	addr_format(&s->addr, text);
	if (bind(s->fd, &s->addr.u.sa, s->addr.len) == 0)
		return 0;
	if (errno == EADDRINUSE)
		return err_set(e, ERR_BUSY,
		    "%s is taken by another program (see: ss -ltnp; listen "
		    "elsewhere with --listen IP:PORT)",
		    text);
	if (errno != EADDRNOTAVAIL || !may_widen)
		return err_errno(e, ERR_LOCAL,
		    "cannot listen on %s (choose with --listen IP:PORT)", text);
	log_warn("no interface has the address %s; listening on all", text);
	if (s->addr.u.sa.sa_family == AF_INET)
		s->addr.u.in.sin_addr.s_addr = htonl(INADDR_ANY);
	else
		s->addr.u.in6.sin6_addr = in6addr_any;
	return bind_or_widen(s, false, e);
}

static int
policy_admit(const struct cert *peer, const struct addr *from, void *arg,
    struct err *e)
{
	struct agent *a = arg;

	(void)from;
	return verbs_check_peer(peer, &a->view, clock_wall_ms() / 1000, e);
}

static int
policy_join_psk(const uint8_t id[TOKEN_ID_SIZE], const struct addr *from,
    uint8_t psk[KEY_SIZE], void *arg, struct err *e)
{
	struct agent *a = arg;

	return master_join_psk(a->master, id, from, psk, e);
}

static void
server_readable(evutil_socket_t fd, short what, void *arg)
{
	struct server *s = arg;

	(void)fd;
	(void)what;
	for (int i = 0; i < ACCEPTS_A_TURN && server_accept(s); i++)
		;
}

/* Whether it is worth trying again at once. */
static bool
server_accept(struct server *s)
{
	struct sockaddr_storage ss;
	socklen_t len = sizeof(ss);
	struct addr from;
	int fd;

	fd = accept4(s->fd, (struct sockaddr *)&ss, &len,
	    SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (fd != -1) {
		if (addr_from_sockaddr((struct sockaddr *)&ss, len, &from) ==
		    -1)
			close(fd);
		else
			server_take(s, fd, &from);
		return true;
	}
	if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS ||
	    errno == ENOMEM) {
		server_out_of_fds(s);
		return false;
	}
	return errno == ECONNABORTED || errno == EINTR;
}

static void
server_take(struct server *s, int fd, const struct addr *from)
{
	static const struct timeval soon = { RECHECK_S, 0 };

	if (!limits_take(&s->limits, from, clock_mono_ms()) ||
	    count(&s->open) >= LIMITS_SESSIONS) {
		close(fd);
		return;
	}
	/* The oldest goes, not the newcomer: a flood of silent connections
	 * pushes itself out, and who answers in time gets in. */
	if (count(&s->half_open) >= LIMITS_HALF_OPEN)
		session_abort(TAILQ_FIRST(&s->half_open));
	if (session_new(s->agent, fd, from, &s->policy, &s->half_open,
		&s->open) != NULL &&
	    !evtimer_pending(s->recheck, NULL))
		evtimer_add(s->recheck, &soon);
}

/* The connection at the head of the queue would wake us for ever: the spare
 * descriptor takes it off, and the rest waits. */
static void
server_out_of_fds(struct server *s)
{
	static const struct timeval pause = { PAUSE_S, 0 };
	int fd;

	log_warn("out of descriptors; no new connection for %d s", PAUSE_S);
	io_close(&s->spare_fd);
	if ((fd = accept4(s->fd, NULL, NULL, SOCK_CLOEXEC)) != -1)
		close(fd);
	s->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	event_del(s->readable);
	evtimer_add(s->resume, &pause);
}

static void
server_resume(evutil_socket_t fd, short what, void *arg)
{
	struct server *s = arg;

	(void)fd;
	(void)what;
	event_add(s->readable, NULL);
}

static void
server_tick(evutil_socket_t fd, short what, void *arg)
{
	static const struct timeval again = { RECHECK_S, 0 };
	struct server *s = arg;

	(void)fd;
	(void)what;
	server_recheck(s);
	if (!TAILQ_EMPTY(&s->open) || !TAILQ_EMPTY(&s->half_open))
		evtimer_add(s->recheck, &again);
	else
		frugal_trim();
}

static size_t
count(const struct session_list *list)
{
	size_t n = 0;

	for (struct session *s = TAILQ_FIRST(list); s != NULL;
	     s = session_next(s))
		n++;
	return n;
}
