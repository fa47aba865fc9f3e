/* crew.c: see crew.h. */
#include "proxyd/process/crew.h"

#include <sys/queue.h>
#include <assert.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/io.h"
#include "common/base/log.h"
#include "proxyd/process/child.h"
#include "proxyd/process/ipc.h"
#include "proxyd/process/opener_child.h"

#define NO_POSITION   (-1)
#define SHORT_LIFE_MS 1000 /* shorter: something is wrong with it */
#define RETRY_MS      500  /* so the next one waits so long */
#define RETRY_SEND_MS 50   /* a worker that reads no messages */

/* What everybody is told when it changes. */
enum news {
	NEWS_CERTS = 1 << 0, /* before the sites that have them */
	NEWS_SNAPSHOT = 1 << 1,
	NEWS_TICKETS = 1 << 2,
};

enum member_state { MEMBER_STARTING, MEMBER_SERVING, MEMBER_DRAINING };

struct member {
	struct crew *crew;
	enum member_state state;
	int position;
	pid_t pid;
	int fd;
	struct event *readable;
	uint32_t slot;
	struct opener_child opener;
	struct log_ring *ring;
	int64_t started_ms;
	unsigned owed; /* enum news: it did not read; try again */
	LIST_ENTRY(member) link;
};

struct crew {
	struct event_base *base;
	struct scoreboard *board;
	const struct listeners *listeners;
	struct log_writer *log;
	LIST_HEAD(, member) members;
	struct event *again; /* starts and sends that failed */
	unsigned wanted;
	int snapshot_fd, certs_fd; /* certs_fd -1: there never were any */
	int64_t revision;
	char user[64];
	char tickets[TICKET_KEYS_TEXT]; /* "": none */
	char spool_dir[PATH_MAX];
	bool no_spool; /* it has been told */
	void (*on_change)(const struct err *, void *);
	void *arg;
};

static int start_member(struct crew *, int position, struct err *);
static int equip(struct member *, struct err *);
static int send_spool(struct member *, struct err *);
static void give_opener(struct member *);
static void give_openers(struct crew *);
static int send_listeners(struct member *, struct err *);
static int send_news(struct member *, enum news, struct err *);
static void send_owed(struct member *);
static void tell(struct crew *, enum news);
static void relisten_member(struct member *);
static void drain_member(struct member *, int64_t ms);
static void free_member(struct member *);
static struct member *at_position(const struct crew *, int position);
static void fill_positions(struct crew *);
static void try_again(struct crew *, int ms);
static void on_again(evutil_socket_t, short, void *);
static void on_readable(evutil_socket_t, short, void *);

struct crew *
crew_new(struct event_base *base, struct scoreboard *board,
    const struct listeners *listeners, struct log_writer *log,
    void (*on_change)(const struct err *, void *), void *arg, struct err *e)
{
	struct crew *c = calloc(1, sizeof(*c));

	if (c == NULL || (c->again = evtimer_new(base, on_again, c)) == NULL) {
		free(c);
		err_set(e, ERR_LOCAL, "out of memory for workers");
		return NULL;
	}
	c->base = base;
	c->board = board;
	c->listeners = listeners;
	c->log = log;
	c->snapshot_fd = c->certs_fd = -1;
	c->on_change = on_change;
	c->arg = arg;
	LIST_INIT(&c->members);
	return c;
}

void
crew_free(struct crew *c)
{
	if (c == NULL)
		return;
	while (!LIST_EMPTY(&c->members))
		free_member(LIST_FIRST(&c->members));
	event_free(c->again);
	io_close(&c->snapshot_fd);
	io_close(&c->certs_fd);
	free(c);
}

void
crew_snapshot(struct crew *c, int fd, int64_t revision)
{
	io_close(&c->snapshot_fd);
	c->snapshot_fd = fd;
	c->revision = revision;
	tell(c, NEWS_SNAPSHOT);
}

void
crew_certs(struct crew *c, int fd)
{
	io_close(&c->certs_fd);
	c->certs_fd = fd;
	tell(c, NEWS_CERTS);
}

void
crew_tickets(struct crew *c, const struct ticket_keys *keys)
{
	ticket_keys_to_text(keys, c->tickets);
	tell(c, NEWS_TICKETS);
}

void
crew_set_user(struct crew *c, const char *user)
{
	snprintf(c->user, sizeof(c->user), "%s", user);
}

void
crew_set_spool(struct crew *c, const char *dir)
{
	snprintf(c->spool_dir, sizeof(c->spool_dir), "%s", dir);
}

void
crew_resize(struct crew *c, unsigned n_workers, int64_t drain_ms, bool relisten)
{
	struct member *m;

	assert(n_workers > 0 && n_workers <= CREW_MAX && c->snapshot_fd != -1);
	relisten = relisten || n_workers != c->wanted;
	c->wanted = n_workers;
	LIST_FOREACH (m, &c->members, link)
		if (m->position >= (int)n_workers)
			drain_member(m, drain_ms);
		else if (m->state != MEMBER_DRAINING && relisten)
			relisten_member(m);
	fill_positions(c);
}

void
crew_drain(struct crew *c, int64_t drain_ms)
{
	struct member *m;

	c->wanted = 0;
	evtimer_del(c->again);
	LIST_FOREACH (m, &c->members, link)
		drain_member(m, drain_ms);
}

void
crew_kill(struct crew *c)
{
	struct member *m;

	LIST_FOREACH (m, &c->members, link)
		kill(m->pid, SIGKILL);
}

bool
crew_reaped(struct crew *c, pid_t pid, int wait_status)
{
	struct member *m;
	char how[80];
	bool soon;

	LIST_FOREACH (m, &c->members, link) {
		if (m->pid == pid)
			break;
		if (opener_child_reaped(&m->opener, pid, wait_status, m->pid)) {
			try_again(c, RETRY_MS);
			return true;
		}
	}
	if (m == NULL)
		return false;
	soon = clock_mono_ms() - m->started_ms < SHORT_LIFE_MS;
	if (m->state != MEMBER_DRAINING || wait_status != 0) {
		child_describe(wait_status, how, sizeof(how));
		log_error("worker %d %s%s", (int)pid, how,
		    m->state == MEMBER_DRAINING ? "" : "; replacing it");
	}
	sb_slot_heal(c->board, m->slot);
	free_member(m);
	if (soon)
		try_again(c, RETRY_MS);
	else
		fill_positions(c);
	c->on_change(NULL, c->arg);
	return true;
}

bool
crew_is_serving(const struct crew *c)
{
	const struct member *m;
	unsigned n = 0;

	LIST_FOREACH (m, &c->members, link)
		n += m->state == MEMBER_SERVING;
	return n >= c->wanted;
}

bool
crew_is_empty(const struct crew *c)
{
	return LIST_EMPTY(&c->members);
}

static int
start_member(struct crew *c, int position, struct err *e)
{
	static const char *const args[] = { "proxyd", "worker", NULL };
	struct member *m = calloc(1, sizeof(*m));

	if (m == NULL)
		return err_set(e, ERR_LOCAL, "out of memory for a worker");
	m->crew = c;
	m->position = position;
	m->fd = -1;
	m->slot = SB_NONE;
	m->started_ms = clock_mono_ms();
	LIST_INSERT_HEAD(&c->members, m, link);
	if (child_start(NULL, args, &m->pid, &m->fd, e) == -1) {
		free_member(m);
		return -1;
	}
	/* One that has ended is the reaper's to tell of and to replace. */
	if (equip(m, e) == 0 || e->code == ERR_UNREACHABLE)
		return 0;
	/* The reaper takes it from the list. */
	kill(m->pid, SIGKILL);
	return -1;
}

static int
equip(struct member *m, struct err *e)
{
	struct crew *c = m->crew;

	m->slot = sb_slot_take(c->board, m->pid, clock_mono_ms());
	if (m->slot == SB_NONE)
		return err_set(e, ERR_LOCAL,
		    "the scoreboard has no row left for a worker");
	if ((m->ring = log_writer_ring(c->log, e)) == NULL)
		return -1;
	m->readable =
	    event_new(c->base, m->fd, EV_READ | EV_PERSIST, on_readable, m);
	if (m->readable == NULL || event_add(m->readable, NULL) == -1)
		return err_set(e, ERR_LOCAL, "out of memory for a worker");
	if (ipc_send(m->fd, IPC_SCOREBOARD, m->slot, c->board->fd, NULL, e) ==
		-1 ||
	    ipc_send(m->fd, IPC_LOG_RING, 0, m->ring->fd, NULL, e) == -1 ||
	    (c->certs_fd != -1 && send_news(m, NEWS_CERTS, e) == -1))
		return -1;
	give_opener(m); /* it gets the snapshot from its worker */
	if (send_news(m, NEWS_SNAPSHOT, e) == -1 ||
	    send_news(m, NEWS_TICKETS, e) == -1 || send_spool(m, e) == -1 ||
	    send_listeners(m, e) == -1)
		return -1;
	return ipc_send(m->fd, IPC_START, 0, -1, c->user, e);
}

/* Without one it serves all the same. */
static int
send_spool(struct member *m, struct err *e)
{
	struct crew *c = m->crew;
	struct err why;
	int fd = io_unnamed(c->spool_dir, &why), rv;

	if (fd == -1) {
		if (!c->no_spool)
			log_error("%s; slow clients hold their nodes",
			    why.text);
		c->no_spool = true;
		return 0;
	}
	c->no_spool = false;
	rv = ipc_send(m->fd, IPC_SPOOL, 0, fd, NULL, e);
	close(fd);
	return rv;
}

/* Without one it serves all the same, from the nodes. */
static void
give_opener(struct member *m)
{
	struct err e;
	int fd, rv;

	if (opener_child_start(&m->opener, m->crew->user, &fd, &e) == 0) {
		rv = ipc_send(m->fd, IPC_OPENER, 0, fd, NULL, &e);
		close(fd); /* without its worker it ends */
		if (rv == 0 || e.code == ERR_UNREACHABLE)
			return;
	}
	log_error("worker %d: %s; its static files come from the nodes",
	    (int)m->pid, e.text);
	try_again(m->crew, RETRY_MS);
}

/* Those whose opener has died get another one, when it is time. */
static void
give_openers(struct crew *c)
{
	struct member *m;

	LIST_FOREACH (m, &c->members, link) {
		int due_ms = opener_child_due(&m->opener);

		if (due_ms == -1 || m->state == MEMBER_DRAINING)
			continue;
		if (due_ms > 0) { /* the timer is others', too */
			try_again(c, due_ms < RETRY_MS ? due_ms : RETRY_MS);
			continue;
		}
		give_opener(m);
		m->owed |= NEWS_SNAPSHOT;
	}
}

static int
send_listeners(struct member *m, struct err *e)
{
	const struct listeners *l = m->crew->listeners;

	for (size_t i = 0; i < l->n; i++)
		if (listener_is_for(&l->rows[i], (unsigned)m->position,
			m->crew->wanted) &&
		    ipc_send(m->fd, IPC_LISTENER, listener_kind(&l->rows[i]),
			l->rows[i].fd, l->rows[i].text, e) == -1)
			return -1;
	return 0;
}

static int
send_news(struct member *m, enum news what, struct err *e)
{
	const struct crew *c = m->crew;

	if (what == NEWS_TICKETS)
		return ipc_send(m->fd, IPC_TICKETS, 0, -1, c->tickets, e);
	if (what == NEWS_CERTS)
		return ipc_send(m->fd, IPC_CERTS, 0, c->certs_fd, NULL, e);
	return ipc_send(m->fd, IPC_SNAPSHOT, c->revision, c->snapshot_fd, NULL,
	    e);
}

static void
tell(struct crew *c, enum news what)
{
	struct member *m;

	LIST_FOREACH (m, &c->members, link) {
		m->owed |= what;
		send_owed(m);
	}
}

/* A worker that is stopped does not read; it gets the newest when it does. */
static void
send_owed(struct member *m)
{
	struct err e;

	for (unsigned what = 1; what <= m->owed; what <<= 1)
		if ((m->owed & what) != 0 &&
		    (send_news(m, what, &e) == 0 || e.code == ERR_UNREACHABLE))
			m->owed &= ~what;
	if (m->owed != 0)
		try_again(m->crew, RETRY_SEND_MS);
}

static void
relisten_member(struct member *m)
{
	struct err e;

	if ((ipc_send(m->fd, IPC_UNLISTEN, 0, -1, NULL, &e) == 0 &&
		send_listeners(m, &e) == 0) ||
	    e.code == ERR_UNREACHABLE)
		return;
	/* Better no worker than one on the wrong sockets. */
	log_error("worker %d: %s; replacing it", (int)m->pid, e.text);
	kill(m->pid, SIGKILL);
}

static void
drain_member(struct member *m, int64_t ms)
{
	struct err e;

	if (m->state == MEMBER_DRAINING)
		return;
	m->state = MEMBER_DRAINING;
	m->position = NO_POSITION;
	if (ipc_send(m->fd, IPC_DRAIN, ms, -1, NULL, &e) == -1 &&
	    e.code != ERR_UNREACHABLE) {
		log_error("worker %d: %s; ending it", (int)m->pid, e.text);
		kill(m->pid, SIGKILL);
	}
}

static void
free_member(struct member *m)
{
	LIST_REMOVE(m, link);
	if (m->readable != NULL)
		event_free(m->readable);
	io_close(&m->fd);
	log_writer_drop(m->crew->log, m->ring);
	free(m);
}

static struct member *
at_position(const struct crew *c, int position)
{
	struct member *m;

	LIST_FOREACH (m, &c->members, link)
		if (m->position == position)
			return m;
	return NULL;
}

static void
fill_positions(struct crew *c)
{
	struct err e;

	for (int i = 0; i < (int)c->wanted; i++) {
		if (at_position(c, i) != NULL)
			continue;
		if (start_member(c, i, &e) == -1) {
			log_error("cannot start a worker: %s", e.text);
			try_again(c, RETRY_MS);
			return;
		}
	}
}

static void
try_again(struct crew *c, int ms)
{
	struct timeval tv = { .tv_sec = ms / 1000,
		.tv_usec = ms % 1000 * 1000 };

	if (!evtimer_pending(c->again, NULL))
		evtimer_add(c->again, &tv);
}

static void
on_again(evutil_socket_t fd, short what, void *arg)
{
	struct crew *c = arg;
	struct member *m;

	(void)fd;
	(void)what;
	fill_positions(c);
	give_openers(c);
	LIST_FOREACH (m, &c->members, link)
		send_owed(m);
}

static void
on_readable(evutil_socket_t fd, short what, void *arg)
{
	struct member *m = arg;
	struct ipc_message msg;
	struct err e;
	int rv;

	(void)what;
	rv = ipc_recv(fd, &msg, &e);
	if (rv != 1) {
		/* It is gone, or as good as: the reaper says how. */
		if (rv == 0 || e.code != ERR_BUSY)
			event_del(m->readable);
		return;
	}
	io_close(&msg.fd);
	if (m->state != MEMBER_STARTING)
		return;
	if (msg.type == IPC_FAILED) {
		err_set(&e, (int)msg.number, "%s", msg.text);
		m->crew->on_change(&e, m->crew->arg);
	} else if (msg.type == IPC_READY) {
		m->state = MEMBER_SERVING;
		m->crew->on_change(NULL, m->crew->arg);
	}
}
