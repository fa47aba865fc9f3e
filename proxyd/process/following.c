/* following.c: see following.h. */
#include "proxyd/process/following.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/base/io.h"
#include "common/base/log.h"
#include "proxyd/process/child.h"
#include "proxyd/process/ipc.h"

#define AGAIN_S 1 /* until another is started */
#define STOP_S	5 /* until one that does not end is killed */

enum following_state {
	FOLLOWING_DOWN,	    /* none runs */
	FOLLOWING_UP,	    /* one runs */
	FOLLOWING_RESTING,  /* one died; the timer starts another */
	FOLLOWING_STOPPING, /* one was asked to end; the timer kills it */
};

struct following {
	enum following_state state;
	struct event_base *base;
	const char *const *args;
	const struct scoreboard *board;
	const struct following_handlers *handlers;
	void *arg;
	pid_t pid;
	int fd;
	struct event *readable, *timer;
};

static void hang_up(struct following *);
static void set_timer(struct following *, int seconds);
static void on_readable(evutil_socket_t, short, void *);
static void on_timer(evutil_socket_t, short, void *);
static void take(struct following *, struct ipc_message *);

struct following *
following_new(struct event_base *base, const char *const *args,
    const struct scoreboard *board, const struct following_handlers *handlers,
    void *arg, struct err *e)
{
	struct following *f = calloc(1, sizeof(*f));

	if (f == NULL || (f->timer = evtimer_new(base, on_timer, f)) == NULL) {
		free(f);
		err_set(e, ERR_LOCAL, "out of memory for the follower");
		return NULL;
	}
	f->base = base;
	f->args = args;
	f->board = board;
	f->handlers = handlers;
	f->arg = arg;
	f->fd = -1;
	return f;
}

void
following_free(struct following *f)
{
	if (f == NULL)
		return;
	hang_up(f);
	event_free(f->timer);
	free(f);
}

int
following_start(struct following *f, bool fresh_board, struct err *e)
{
	if (child_start(NULL, f->args, &f->pid, &f->fd, e) == -1)
		return -1;
	f->state = FOLLOWING_UP;
	f->readable =
	    event_new(f->base, f->fd, EV_READ | EV_PERSIST, on_readable, f);
	if (f->readable == NULL || event_add(f->readable, NULL) == -1)
		return err_set(e, ERR_LOCAL, "out of memory for the follower");
	if (ipc_send(f->fd, IPC_SCOREBOARD, fresh_board, f->board->fd, NULL,
		e) == 0 ||
	    e->code == ERR_UNREACHABLE)
		return 0; /* the reaper starts another if it has ended */
	return -1;
}

/* It ends when its socket does. */
void
following_stop(struct following *f)
{
	evtimer_del(f->timer);
	if (f->state == FOLLOWING_UP || f->state == FOLLOWING_STOPPING) {
		f->state = FOLLOWING_STOPPING;
		hang_up(f);
		set_timer(f, STOP_S);
		return;
	}
	f->state = FOLLOWING_DOWN;
	f->handlers->stopped(f->arg);
}

bool
following_reaped(struct following *f, pid_t pid, int wait_status)
{
	char how[80];

	if ((f->state != FOLLOWING_UP && f->state != FOLLOWING_STOPPING) ||
	    pid != f->pid)
		return false;
	hang_up(f);
	if (f->state == FOLLOWING_STOPPING) {
		evtimer_del(f->timer);
		f->state = FOLLOWING_DOWN;
		f->handlers->stopped(f->arg);
		return true;
	}
	child_describe(wait_status, how, sizeof(how));
	log_error("the follower %s; starting another", how);
	f->state = FOLLOWING_RESTING;
	set_timer(f, AGAIN_S);
	return true;
}

static void
hang_up(struct following *f)
{
	if (f->readable != NULL)
		event_free(f->readable);
	f->readable = NULL;
	io_close(&f->fd);
}

static void
set_timer(struct following *f, int seconds)
{
	struct timeval tv = { .tv_sec = seconds };

	evtimer_add(f->timer, &tv);
}

static void
on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct following *f = arg;
	struct err e;

	(void)fd;
	(void)what;
	if (f->state == FOLLOWING_STOPPING) {
		log_warn("the follower does not end; killing it");
		kill(f->pid, SIGKILL);
	} else if (following_start(f, false, &e) == -1) {
		log_error("cannot follow the registry: %s", e.text);
		if (f->state == FOLLOWING_UP)
			kill(f->pid, SIGKILL); /* the reaper tries again */
		else
			set_timer(f, AGAIN_S);
	}
}

static void
on_readable(evutil_socket_t fd, short what, void *arg)
{
	struct following *f = arg;
	struct ipc_message m;
	struct err e;
	int rv;

	(void)what;
	rv = ipc_recv(fd, &m, &e);
	if (rv == 1)
		take(f, &m);
	else if (rv == 0 || e.code != ERR_BUSY)
		hang_up(f); /* it is gone, and the reaper knows how */
}

static void
take(struct following *f, struct ipc_message *m)
{
	struct err e;

	switch (m->type) {
	case IPC_SETTINGS:
		f->handlers->settings(m->text, f->arg);
		break;
	case IPC_CERTS:
		if (m->fd == -1)
			break;
		f->handlers->certs(m->fd, f->arg);
		return;
	case IPC_SNAPSHOT:
		if (m->fd == -1)
			break;
		f->handlers->snapshot(m->fd, m->number, f->arg);
		return;
	case IPC_FAILED:
		err_set(&e, (int)m->number, "%s", m->text);
		f->handlers->failed(&e, f->arg);
		break;
	default:
		break;
	}
	io_close(&m->fd);
}
