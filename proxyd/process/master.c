/*
 * master.c: see master.h.
 *
 * The state says what is going on: starting (until every worker serves),
 * serving, leaving (an upgrade or SIGTERM; the workers drain).
 */
#include "proxyd/process/master.h"

#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <sys/wait.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <event2/event.h>

#include "common/base/daemon.h"
#include "common/base/io.h"
#include "common/base/json.h"
#include "common/base/log.h"
#include "common/registry/settings.h"
#include "proxyd/admin/admin.h"
#include "proxyd/process/child.h"
#include "proxyd/process/crew.h"
#include "proxyd/process/health.h"
#include "proxyd/process/ipc.h"
#include "proxyd/process/listeners.h"
#include "proxyd/process/log_writer.h"
#include "proxyd/process/upgrade.h"

#define MAX_SLOTS	  64 /* at least; worker processes, draining ones too */
#define MAX_TARGETS	  16384
#define MAX_ACCOUNTS	  (1U << 18) /* sites and owners */
#define FOLLOWER_AGAIN_MS 1000

enum master_state { MASTER_STARTING, MASTER_SERVING, MASTER_LEAVING };

enum master_signal { ON_TERM, ON_INT, ON_CHLD, ON_USR1, ON_USR2, N_SIGNALS };

struct master {
	const struct master_options *options;
	enum master_state state;
	char program[PATH_MAX]; /* what an upgrade starts */
	int lock_fd, admin_fd;	/* admin_fd: until `admin` has it */
	struct event_base *base;
	struct event *signals[N_SIGNALS];
	struct scoreboard board;
	bool fresh_board; /* its counters are still to be restored */
	struct listeners listeners;
	struct log_writer *log;
	struct crew *crew;
	struct health *health;
	struct admin *admin;
	struct listeners status; /* until `admin` has them */
	struct settings settings;
	struct {
		pid_t pid; /* 0: none runs */
		int fd;
		struct event *readable, *again;
	} follower;
	struct {
		pid_t pid; /* 0: no upgrade is under way */
		int fd;
		struct event *readable;
	} successor;
	struct err *failure; /* why it does not start */
	bool failed;
};

static int set_up(struct master *, struct err *);
static int open_admin(struct master *, struct err *);
static int take_place(struct master *, struct err *);
static int take_over(struct master *, struct err *);
static int start_follower(struct master *, struct err *);
static void stop_follower(struct master *);
static void adopt_settings(struct master *, const char *json);
static void adopt_snapshot(struct master *, int fd, int64_t revision);
static int apply_settings(struct master *, struct err *);
static void leave(struct master *);
static void fail(struct master *, const struct err *);
static void tear_down(struct master *);
static void begin_upgrade(struct master *);
static void reap(struct master *);
static void crew_changed(void *);
static void on_follower(evutil_socket_t, short, void *);
static void on_follower_again(evutil_socket_t, short, void *);
static void on_successor(evutil_socket_t, short, void *);
static void on_signal(evutil_socket_t, short, void *);
static unsigned n_workers(const struct master *);

int
master_run(const struct master_options *options, struct err *e)
{
	struct master m = {
		.options = options,
		.lock_fd = -1,
		.admin_fd = -1,
		.board.fd = -1,
		.follower.fd = -1,
		.successor.fd = -1,
		.failure = e,
	};
	int rv = -1;

	if (set_up(&m, e) == 0 && start_follower(&m, e) == 0) {
		event_base_dispatch(m.base);
		rv = m.failed ? -1 : 0;
	}
	tear_down(&m);
	return rv;
}

static int
set_up(struct master *m, struct err *e)
{
	static const int numbers[N_SIGNALS] = {
		[ON_TERM] = SIGTERM,
		[ON_INT] = SIGINT,
		[ON_CHLD] = SIGCHLD,
		[ON_USR1] = SIGUSR1,
		[ON_USR2] = SIGUSR2,
	};
	ssize_t n =
	    readlink("/proc/self/exe", m->program, sizeof(m->program) - 1);

	m->program[n > 0 ? n : 0] = '\0';
	option_defaults(&settings_table, &m->settings);
	if ((m->options->upgrade ? take_over(m, e) : take_place(m, e)) == -1)
		return -1;
	if ((m->base = event_base_new()) == NULL)
		return err_set(e, ERR_LOCAL, "cannot make an event loop");
	for (int i = 0; i < N_SIGNALS; i++) {
		m->signals[i] = evsignal_new(m->base, numbers[i], on_signal, m);
		if (m->signals[i] == NULL ||
		    event_add(m->signals[i], NULL) == -1)
			return err_set(e, ERR_LOCAL, "cannot catch signals");
	}
	m->follower.again = evtimer_new(m->base, on_follower_again, m);
	if (m->follower.again == NULL)
		return err_set(e, ERR_LOCAL, "out of memory for timers");
	if ((m->log = log_writer_new(e)) == NULL)
		return -1;
	m->crew = crew_new(m->base, &m->board, &m->listeners, m->log,
	    crew_changed, m, e);
	if (m->crew == NULL)
		return -1;
	if ((m->health = health_new(m->base, &m->board, e)) == NULL)
		return -1;
	return open_admin(m, e);
}

static int
open_admin(struct master *m, struct err *e)
{
	char run[PATH_MAX], path[PATH_MAX];

	state_path(&m->options->state, STATE_RUN, run);
	if (io_path(path, sizeof(path), run, ADMIN_SOCKET, e) == -1)
		return -1;
	m->admin = admin_new(m->base, &m->board, path, m->admin_fd, e);
	m->admin_fd = -1;
	if (m->admin == NULL)
		return -1;
	admin_take_status(m->admin, &m->status);
	return 0;
}

/* The ordinary start: be the only one here. */
static int
take_place(struct master *m, struct err *e)
{
	char run[PATH_MAX], path[PATH_MAX];
	unsigned slots = 4 * (unsigned)get_nprocs();

	state_path(&m->options->state, STATE_RUN, run);
	if (io_mkdir(run, 0700, e) == -1 ||
	    io_path(path, sizeof(path), run, "proxyd.lock", e) == -1 ||
	    daemon_lock(path, &m->lock_fd, e) == -1)
		return -1;
	m->fresh_board = true;
	return scoreboard_create(&m->board,
	    slots > MAX_SLOTS ? slots : MAX_SLOTS, MAX_TARGETS, MAX_ACCOUNTS,
	    e);
}

/* The start as a successor. */
static int
take_over(struct master *m, struct err *e)
{
	struct legacy old;

	if (upgrade_take(&old, e) == -1)
		return -1;
	m->listeners = old.listeners;
	m->status = old.status;
	m->board = old.board;
	m->lock_fd = old.lock_fd;
	m->admin_fd = old.admin_fd;
	if (m->board.head != NULL)
		return 0;
	m->fresh_board = true;
	return scoreboard_create(&m->board, MAX_SLOTS, MAX_TARGETS,
	    MAX_ACCOUNTS, e);
}

static void
tear_down(struct master *m)
{
	if (m->crew != NULL)
		crew_kill(m->crew);
	stop_follower(m);
	crew_free(m->crew);
	health_free(m->health);
	admin_free(m->admin);
	log_writer_free(m->log);
	listeners_close(&m->listeners);
	if (m->board.head != NULL)
		scoreboard_unmap(&m->board);
	for (int i = 0; i < N_SIGNALS; i++)
		if (m->signals[i] != NULL)
			event_free(m->signals[i]);
	if (m->follower.again != NULL)
		event_free(m->follower.again);
	if (m->successor.readable != NULL)
		event_free(m->successor.readable);
	io_close(&m->successor.fd);
	io_close(&m->lock_fd);
	io_close(&m->admin_fd);
	if (m->base != NULL)
		event_base_free(m->base);
}

/* ---- the follower ----------------------------------------------------- */

static int
start_follower(struct master *m, struct err *e)
{
	const char *args[] = { "proxyd", "--state", m->options->state.dir,
		"follower", m->options->verbose ? "-v" : NULL, NULL };

	bool fresh;

	if (child_start(NULL, args, &m->follower.pid, &m->follower.fd, e) == -1)
		return -1;
	m->follower.readable = event_new(m->base, m->follower.fd,
	    EV_READ | EV_PERSIST, on_follower, m);
	if (m->follower.readable == NULL ||
	    event_add(m->follower.readable, NULL) == -1)
		return err_set(e, ERR_LOCAL, "out of memory for the follower");
	fresh = m->fresh_board;
	m->fresh_board = false;
	return ipc_send(m->follower.fd, IPC_SCOREBOARD, fresh, m->board.fd,
	    NULL, e);
}

/* It ends when its socket does. */
static void
stop_follower(struct master *m)
{
	if (m->follower.readable != NULL)
		event_free(m->follower.readable);
	m->follower.readable = NULL;
	io_close(&m->follower.fd);
}

static void
on_follower(evutil_socket_t fd, short what, void *arg)
{
	struct master *m = arg;
	struct ipc_message msg;
	struct err e;
	int rv;

	(void)what;
	rv = ipc_recv(fd, &msg, &e);
	if (rv == 0 || (rv == -1 && e.code != ERR_BUSY)) {
		stop_follower(m); /* the reaper starts another */
		return;
	}
	if (rv == -1)
		return;
	if (msg.type == IPC_SETTINGS) {
		adopt_settings(m, msg.text);
	} else if (msg.type == IPC_SNAPSHOT && msg.fd != -1) {
		adopt_snapshot(m, msg.fd, msg.number);
		return;
	} else if (msg.type == IPC_FAILED) {
		err_set(&e, (int)msg.number, "%s", msg.text);
		fail(m, &e);
	}
	io_close(&msg.fd);
}

static void
on_follower_again(evutil_socket_t fd, short what, void *arg)
{
	struct master *m = arg;
	struct err e;

	(void)fd;
	(void)what;
	if (start_follower(m, &e) == -1)
		log_error("cannot follow the registry: %s", e.text);
}

static void
adopt_settings(struct master *m, const char *json)
{
	struct settings next;
	struct err e;
	json_t *o = json_parse_object(json, strlen(json), IPC_TEXT_MAX, &e);

	option_defaults(&settings_table, &next);
	if (o == NULL || option_from_json(&settings_table, &next, o, &e) == -1)
		log_error("settings from the follower: %s", e.text);
	else
		m->settings = next;
	json_decref(o);
}

/* Settings came just before.  At the start a fault ends us; later the old
 * listeners and log stay. */
static void
adopt_snapshot(struct master *m, int fd, int64_t revision)
{
	struct snapshot *snapshot;
	struct err e;
	bool first = m->state == MASTER_STARTING;

	if (m->state == MASTER_LEAVING) {
		close(fd);
		return;
	}
	if ((snapshot = snapshot_map(fd, &e)) == NULL) {
		log_error("%s; what was in force stays", e.text);
		close(fd);
		return;
	}
	admin_apply(m->admin, snapshot_hold(snapshot));
	health_apply(m->health, snapshot);
	crew_snapshot(m->crew, fd, revision);
	if (apply_settings(m, &e) == -1) {
		if (first) {
			fail(m, &e);
			return;
		}
		log_error("%s; what was in force stays", e.text);
	}
	crew_resize(m->crew, n_workers(m), m->settings.drain_ms);
}

static int
apply_settings(struct master *m, struct err *e)
{
	size_t before = m->listeners.n;
	struct listener *rows = m->listeners.rows;

	if (m->state == MASTER_STARTING)
		crew_set_user(m->crew, m->settings.user);
	if (listeners_apply(&m->listeners, m->settings.http_listen,
		n_workers(m), e) == -1)
		return -1;
	if (m->state != MASTER_STARTING &&
	    (before != m->listeners.n || rows != m->listeners.rows))
		crew_relisten(m->crew);
	if (admin_status_listen(m->admin, m->settings.status_listen, e) == -1)
		return -1;
	return log_writer_open(m->log, m->settings.access_log, e);
}

static unsigned
n_workers(const struct master *m)
{
	unsigned n = m->settings.workers != 0 ? (unsigned)m->settings.workers :
						(unsigned)get_nprocs();

	return n < CREW_MAX ? n : CREW_MAX;
}

/* ---- workers, children, signals --------------------------------------- */

static void
crew_changed(void *arg)
{
	struct master *m = arg;
	struct err e;

	if (m->state == MASTER_LEAVING && crew_is_empty(m->crew)) {
		event_base_loopbreak(m->base);
		return;
	}
	if (m->state != MASTER_STARTING || !crew_is_serving(m->crew))
		return;
	m->state = MASTER_SERVING;
	if (m->options->upgrade) {
		daemon_lock_pid(m->lock_fd);
		if (ipc_send(IPC_CHILD_FD, IPC_READY, 0, -1, NULL, &e) == -1)
			log_warn("the old master is gone: %s", e.text);
		close(IPC_CHILD_FD);
	}
	daemon_main_pid();
	daemon_ready(m->options->ready_fd);
	log_info("serving with %u worker(s)", n_workers(m));
}

static void
on_signal(evutil_socket_t sig, short what, void *arg)
{
	struct master *m = arg;
	struct err e;

	(void)what;
	switch (sig) {
	case SIGCHLD:
		reap(m);
		break;
	case SIGUSR1:
		if (log_writer_reopen(m->log, &e) == -1)
			log_error("%s; the old file stays open", e.text);
		break;
	case SIGUSR2:
		begin_upgrade(m);
		break;
	default:
		if (m->state == MASTER_SERVING)
			leave(m);
		else
			event_base_loopbreak(m->base); /* again, or early */
		break;
	}
}

static void
reap(struct master *m)
{
	static const struct timeval later = { .tv_sec =
						  FOLLOWER_AGAIN_MS / 1000 };
	char how[80];
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		child_describe(status, how, sizeof(how));
		if (crew_reaped(m->crew, pid, status)) {
			continue;
		} else if (pid == m->follower.pid) {
			m->follower.pid = 0;
			stop_follower(m);
			if (m->state == MASTER_LEAVING)
				continue;
			log_error("the follower %s; starting another", how);
			event_add(m->follower.again, &later);
		} else if (pid == m->successor.pid) {
			m->successor.pid = 0;
			if (m->state == MASTER_SERVING)
				log_error("upgrade: the new proxyd %s; going "
					  "on with this one",
				    how);
		}
	}
}

/* Drains: the listeners stay open in a successor, or close with us. */
static void
leave(struct master *m)
{
	log_info("draining for at most %lld ms",
	    (long long)m->settings.drain_ms);
	daemon_notify("STOPPING=1");
	m->state = MASTER_LEAVING;
	stop_follower(m);
	evtimer_del(m->follower.again);
	listeners_close(&m->listeners);
	crew_drain(m->crew, m->settings.drain_ms);
	if (crew_is_empty(m->crew))
		event_base_loopbreak(m->base);
}

/* Only a start can fail; later the last good state stays. */
static void
fail(struct master *m, const struct err *why)
{
	if (m->state != MASTER_STARTING) {
		log_error("%s", why->text);
		return;
	}
	*m->failure = *why;
	m->failed = true;
	event_base_loopbreak(m->base);
}

/* ---- upgrade ---------------------------------------------------------- */

static void
begin_upgrade(struct master *m)
{
	const struct legacy all = {
		.listeners = m->listeners,
		.status = *admin_status_listeners(m->admin),
		.board = m->board,
		.lock_fd = m->lock_fd,
		.admin_fd = admin_socket(m->admin),
	};
	const char *args[] = { "proxyd", "--state", m->options->state.dir,
		"run", "--upgrade", m->options->verbose ? "-v" : NULL, NULL };
	struct err e;

	if (m->state != MASTER_SERVING || m->successor.pid != 0) {
		log_warn("upgrade: not now, another change is under way");
		return;
	}
	io_close(&m->successor.fd);
	if (upgrade_start(m->program, args, &all, &m->successor.pid,
		&m->successor.fd, &e) == -1) {
		log_error("upgrade: %s", e.text);
		return;
	}
	if (m->successor.readable != NULL)
		event_free(m->successor.readable);
	m->successor.readable =
	    event_new(m->base, m->successor.fd, EV_READ, on_successor, m);
	if (m->successor.readable == NULL ||
	    event_add(m->successor.readable, NULL) == -1) {
		log_error("upgrade: out of memory");
		kill(m->successor.pid, SIGKILL);
	}
}

static void
on_successor(evutil_socket_t fd, short what, void *arg)
{
	struct master *m = arg;
	struct ipc_message msg;
	struct err e;

	(void)what;
	if (ipc_recv(fd, &msg, &e) != 1 || msg.type != IPC_READY)
		return; /* it failed; the reaper says so */
	log_info("upgrade: process %d serves; leaving", (int)m->successor.pid);
	leave(m);
}
