/* upgrade.c: see upgrade.h. */
#include "proxyd/process/upgrade.h"

#include <signal.h>
#include <sodium.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/base/io.h"
#include "common/base/log.h"
#include "proxyd/process/child.h"
#include "proxyd/process/ipc.h"

#define START_S 60 /* one that does not serve by then has failed */

struct upgrade {
	struct event_base *base;
	void (*done)(const struct err *, void *arg);
	void *arg;
	pid_t pid; /* 0: none is starting */
	int fd;
	struct event *readable, *late;
	struct err failure; /* as it said */
};

static void end(struct upgrade *);
static void on_readable(evutil_socket_t, short, void *);
static void on_late(evutil_socket_t, short, void *);
static int send_legacy(int fd, const struct legacy *, struct err *);
static int send_listeners(int fd, enum ipc_type, const struct listeners *,
    struct err *);
static int send_tickets(int fd, const struct legacy *, struct err *);
static int take(struct legacy *, struct ipc_message *, struct err *);

struct upgrade *
upgrade_new(struct event_base *base, void (*done)(const struct err *, void *),
    void *arg, struct err *e)
{
	struct upgrade *u = calloc(1, sizeof(*u));

	if (u == NULL || (u->late = evtimer_new(base, on_late, u)) == NULL) {
		free(u);
		err_set(e, ERR_LOCAL, "out of memory for upgrades");
		return NULL;
	}
	u->base = base;
	u->done = done;
	u->arg = arg;
	u->fd = -1;
	return u;
}

void
upgrade_free(struct upgrade *u)
{
	if (u == NULL)
		return;
	end(u);
	event_free(u->late);
	free(u);
}

int
upgrade_start(struct upgrade *u, const char *program, const char *const *args,
    const struct legacy *old, struct err *e)
{
	static const struct timeval limit = { .tv_sec = START_S };

	if (child_start(program, args, &u->pid, &u->fd, e) == -1)
		return -1;
	u->failure.code = ERR_NONE;
	u->readable =
	    event_new(u->base, u->fd, EV_READ | EV_PERSIST, on_readable, u);
	if (u->readable != NULL && event_add(u->readable, NULL) == 0 &&
	    evtimer_add(u->late, &limit) == 0) {
		if (send_legacy(u->fd, old, e) == 0 ||
		    e->code == ERR_UNREACHABLE)
			return 0; /* the reaper knows why it has ended */
	} else {
		err_set(e, ERR_LOCAL, "out of memory for an upgrade");
	}
	upgrade_cancel(u);
	return -1;
}

void
upgrade_cancel(struct upgrade *u)
{
	if (u->pid != 0)
		kill(u->pid, SIGKILL);
	end(u);
}

bool
upgrade_reaped(struct upgrade *u, pid_t pid, int wait_status)
{
	struct err why = u->failure;
	char how[80];

	if (u->pid == 0 || pid != u->pid)
		return false;
	child_describe(wait_status, how, sizeof(how));
	if (why.code == ERR_NONE)
		err_set(&why, ERR_LOCAL, "the new proxyd %s", how);
	end(u);
	u->done(&why, u->arg);
	return true;
}

static void
end(struct upgrade *u)
{
	u->pid = 0;
	evtimer_del(u->late);
	if (u->readable != NULL)
		event_free(u->readable);
	u->readable = NULL;
	io_close(&u->fd);
}

static void
on_readable(evutil_socket_t fd, short what, void *arg)
{
	struct upgrade *u = arg;
	struct ipc_message m;
	struct err e;
	int rv;

	(void)what;
	if ((rv = ipc_recv(fd, &m, &e)) != 1) {
		if (rv == 0 || e.code != ERR_BUSY)
			event_del(u->readable); /* the reaper knows */
		return;
	}
	io_close(&m.fd);
	if (m.type == IPC_FAILED) {
		err_set(&u->failure, (int)m.number, "%s", m.text);
	} else if (m.type == IPC_READY) {
		log_info("upgrade: process %d serves", (int)u->pid);
		end(u);
		u->done(NULL, u->arg);
	}
}

static void
on_late(evutil_socket_t fd, short what, void *arg)
{
	struct upgrade *u = arg;

	(void)fd;
	(void)what;
	err_set(&u->failure, ERR_TIMEOUT,
	    "the new proxyd does not serve after %d s", START_S);
	kill(u->pid, SIGKILL);
}

int
upgrade_take(struct legacy *l, struct err *e)
{
	struct ipc_message m;

	*l = (struct legacy){ .lock_fd = -1, .admin_fd = -1, .board.fd = -1 };
	do {
		if (ipc_recv(IPC_CHILD_FD, &m, e) != 1)
			return err_set(e, ERR_LOCAL,
			    "the old master went away in the upgrade");
		if (take(l, &m, e) == -1)
			return -1;
	} while (m.type != IPC_END);
	return 0;
}

void
upgrade_tell(const struct err *failure)
{
	struct err e;
	int rv = failure == NULL ?
	    ipc_send(IPC_CHILD_FD, IPC_READY, 0, -1, NULL, &e) :
	    ipc_send(IPC_CHILD_FD, IPC_FAILED, failure->code, -1, failure->text,
		&e);

	/* A failure is told on our own stderr as well. */
	if (rv == -1 && failure == NULL)
		log_warn("upgrade: the old master went away meanwhile");
	close(IPC_CHILD_FD);
}

static int
send_legacy(int fd, const struct legacy *l, struct err *e)
{
	if (ipc_send(fd, IPC_SCOREBOARD, 0, l->board.fd, NULL, e) == -1 ||
	    ipc_send(fd, IPC_LOCK, 0, l->lock_fd, NULL, e) == -1)
		return -1;
	if (l->admin_fd != -1 &&
	    ipc_send(fd, IPC_ADMIN, 0, l->admin_fd, NULL, e) == -1)
		return -1;
	if (send_listeners(fd, IPC_LISTENER, &l->listeners, e) == -1 ||
	    send_listeners(fd, IPC_STATUS_LISTENER, &l->status, e) == -1)
		return -1;
	if (send_tickets(fd, l, e) == -1)
		return -1;
	return ipc_send(fd, IPC_END, 0, -1, NULL, e);
}

static int
send_tickets(int fd, const struct legacy *l, struct err *e)
{
	char text[TICKET_KEYS_TEXT];
	int rv;

	ticket_keys_to_text(&l->keys, text);
	rv = ipc_send(fd, IPC_TICKETS, l->keys_ms, -1, text, e);
	sodium_memzero(text, sizeof(text));
	return rv;
}

static int
send_listeners(int fd, enum ipc_type type, const struct listeners *l,
    struct err *e)
{
	for (size_t i = 0; i < l->n; i++)
		if (ipc_send(fd, type, l->rows[i].worker, l->rows[i].fd,
			l->rows[i].text, e) == -1)
			return -1;
	return 0;
}

static int
take(struct legacy *l, struct ipc_message *m, struct err *e)
{
	switch (m->type) {
	case IPC_SCOREBOARD:
		if (scoreboard_map(&l->board, m->fd, e) == -1) {
			log_warn("%s; counters begin anew", e->text);
			l->board = (struct scoreboard){ .fd = -1 };
		}
		return 0;
	case IPC_LOCK:
		l->lock_fd = m->fd;
		return 0;
	case IPC_ADMIN:
		l->admin_fd = m->fd;
		return 0;
	case IPC_TICKETS:
		l->keys_ms = m->number;
		if (ticket_keys_from_text(&l->keys, m->text, e) == -1)
			log_warn("%s; clients begin new sessions", e->text);
		sodium_memzero(m->text, sizeof(m->text));
		return 0;
	case IPC_LISTENER:
		return listeners_take(&l->listeners, m->text, (int)m->number,
		    m->fd, e);
	case IPC_STATUS_LISTENER:
		return listeners_take(&l->status, m->text, (int)m->number,
		    m->fd, e);
	default:
		io_close(&m->fd); /* a later version's: not needed here */
		return 0;
	}
}
