/*
 * master.c: see master.h.
 *
 * A snapshot comes from the follower and goes to everybody: the admin's
 * reports, the health checks, the workers.  An upgrade first ends the
 * follower, since two must not give out rows of one scoreboard; a master
 * that leaves ends it last, so that what is counted to the end is saved.
 */
#include "proxyd/process/master.h"

#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <sys/wait.h>
#include <assert.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <event2/event.h>

#include "common/base/daemon.h"
#include "common/base/io.h"
#include "common/base/json.h"
#include "common/base/log.h"
#include "common/registry/settings.h"
#include "proxyd/admin/admin.h"
#include "proxyd/process/crew.h"
#include "proxyd/process/following.h"
#include "proxyd/process/health.h"
#include "proxyd/process/ipc.h"
#include "proxyd/process/listeners.h"
#include "proxyd/process/log_writer.h"
#include "proxyd/process/tickets.h"
#include "proxyd/process/upgrade.h"

#define MIN_SLOTS    64 /* worker processes, draining ones too */
#define MAX_TARGETS  16384
#define MAX_ACCOUNTS (1U << 18) /* sites and owners */

enum master_state {
	MASTER_STARTING, /* until every worker serves */
	MASTER_SERVING,
	MASTER_CLEARING,  /* an upgrade: the follower ends */
	MASTER_UPGRADING, /* an upgrade: the successor starts */
	MASTER_LEAVING,	  /* the workers drain */
	MASTER_SAVING,	  /* the workers are gone, the follower ends */
	MASTER_ENDED,
	MASTER_N_STATES
};

#define TO(state) (1U << (state))

static const struct {
	const char *name;
	unsigned next;
} master_states[] = {
	[MASTER_STARTING] = { "starting",
	    TO(MASTER_SERVING) | TO(MASTER_ENDED) },
	[MASTER_SERVING] = { "serving",
	    TO(MASTER_CLEARING) | TO(MASTER_LEAVING) },
	[MASTER_CLEARING] = { "clearing",
	    TO(MASTER_UPGRADING) | TO(MASTER_SERVING) | TO(MASTER_LEAVING) },
	[MASTER_UPGRADING] = { "upgrading",
	    TO(MASTER_SERVING) | TO(MASTER_LEAVING) },
	[MASTER_LEAVING] = { "leaving", TO(MASTER_SAVING) | TO(MASTER_ENDED) },
	[MASTER_SAVING] = { "saving", TO(MASTER_ENDED) },
	[MASTER_ENDED] = { "ended", 0 },
};
_Static_assert(nitems(master_states) == MASTER_N_STATES, "a row per state");

enum master_signal { ON_TERM, ON_INT, ON_CHLD, ON_USR1, ON_USR2, N_SIGNALS };

struct master {
	const struct master_options *options;
	enum master_state state;
	char program[PATH_MAX]; /* what an upgrade starts */
	const char *follower_args[6], *successor_args[7];
	int lock_fd, admin_fd; /* admin_fd: until `admin` has it */
	struct event_base *base;
	struct event *signals[N_SIGNALS];
	struct scoreboard board;
	bool fresh_board; /* its counters are still to be restored */
	struct listeners listeners;
	struct listeners status; /* until `admin` has them */
	struct log_writer *log;
	struct crew *crew;
	struct tickets *tickets;
	struct ticket_keys keys; /* a predecessor's, at the start */
	int64_t keys_ms;	 /* until they are replaced */
	struct health *health;
	struct admin *admin;
	struct following *following;
	struct upgrade *upgrade;
	struct settings settings;
	struct notices notices;
	struct err *failure; /* why it does not start */
	bool failed;
};

static int set_up(struct master *, struct err *);
static void set_args(struct master *);
static int catch_signals(struct master *, struct err *);
static int make_parts(struct master *, struct err *);
static void set_spool(struct master *);
static int open_admin(struct master *, struct err *);
static int take_place(struct master *, struct err *);
static int take_over(struct master *, struct err *);
static void tear_down(struct master *);
static void move(struct master *, enum master_state);
static void fail(struct master *, const struct err *);
static void on_settings(const char *json, void *);
static void on_certs(int fd, void *);
static void on_snapshot(int fd, int64_t revision, void *);
static void on_failed(const struct err *, void *);
static void on_stopped(void *);
static void apply_settings(struct master *);
static int open_all(struct master *, bool *changed, struct err *);
static unsigned n_workers(const struct master *);
static void on_crew(const struct err *, void *);
static void serve(struct master *);
static void on_signal(evutil_socket_t, short, void *);
static void reap(struct master *);
static void stop(struct master *);
static void leave(struct master *);
static void succeed(struct master *);
static void on_upgrade(const struct err *, void *);

static const struct following_handlers following_handlers = {
	.settings = on_settings,
	.certs = on_certs,
	.snapshot = on_snapshot,
	.failed = on_failed,
	.stopped = on_stopped,
};

int
master_run(const struct master_options *options, struct err *e)
{
	struct master m = {
		.options = options,
		.lock_fd = -1,
		.admin_fd = -1,
		.board.fd = -1,
		.failure = e,
	};
	int rv = -1;

	if (set_up(&m, e) == 0 &&
	    following_start(m.following, m.fresh_board, e) == 0) {
		event_base_dispatch(m.base);
		rv = m.failed ? -1 : 0;
	}
	if (rv == -1 && options->upgrade)
		upgrade_tell(e);
	tear_down(&m);
	return rv;
}

static int
set_up(struct master *m, struct err *e)
{
	ssize_t n =
	    readlink("/proc/self/exe", m->program, sizeof(m->program) - 1);

	m->program[n > 0 ? n : 0] = '\0';
	set_args(m);
	option_defaults(&settings_table, &m->settings);
	if ((m->options->upgrade ? take_over(m, e) : take_place(m, e)) == -1)
		return -1;
	if ((m->base = event_base_new()) == NULL)
		return err_set(e, ERR_LOCAL, "cannot make an event loop");
	if (catch_signals(m, e) == -1 || make_parts(m, e) == -1)
		return -1;
	return open_admin(m, e);
}

static void
set_args(struct master *m)
{
	const char *dir = m->options->state.dir;
	const char *verbose = m->options->verbose ? "-v" : NULL;
	const char *follower[] = { "proxyd", "--state", dir, "follower",
		verbose, NULL };
	const char *successor[] = { "proxyd", "--state", dir, "run",
		"--upgrade", verbose, NULL };

	memcpy(m->follower_args, follower, sizeof(follower));
	memcpy(m->successor_args, successor, sizeof(successor));
}

static int
catch_signals(struct master *m, struct err *e)
{
	static const int numbers[N_SIGNALS] = {
		[ON_TERM] = SIGTERM,
		[ON_INT] = SIGINT,
		[ON_CHLD] = SIGCHLD,
		[ON_USR1] = SIGUSR1,
		[ON_USR2] = SIGUSR2,
	};

	for (int i = 0; i < N_SIGNALS; i++) {
		m->signals[i] = evsignal_new(m->base, numbers[i], on_signal, m);
		if (m->signals[i] == NULL ||
		    event_add(m->signals[i], NULL) == -1)
			return err_set(e, ERR_LOCAL, "cannot catch signals");
	}
	return 0;
}

static int
make_parts(struct master *m, struct err *e)
{
	m->following = following_new(m->base, m->follower_args, &m->board,
	    &following_handlers, m, e);
	if (m->following == NULL ||
	    (m->upgrade = upgrade_new(m->base, on_upgrade, m, e)) == NULL ||
	    (m->log = log_writer_new(e)) == NULL)
		return -1;
	m->crew =
	    crew_new(m->base, &m->board, &m->listeners, m->log, on_crew, m, e);
	if (m->crew == NULL ||
	    (m->health = health_new(m->base, &m->board, e)) == NULL)
		return -1;
	set_spool(m);
	m->tickets = tickets_new(m->base, m->crew, &m->keys, m->keys_ms, e);
	return m->tickets == NULL ? -1 : 0;
}

/* The crew says it if there is no such directory. */
static void
set_spool(struct master *m)
{
	char dir[PATH_MAX];
	struct err e;

	state_path(&m->options->state, STATE_SPOOL, dir);
	if (io_mkdir(dir, 0700, &e) == -1)
		log_debug("%s", e.text);
	crew_set_spool(m->crew, dir);
}

static int
open_admin(struct master *m, struct err *e)
{
	char run[PATH_MAX], path[PATH_MAX];

	state_path(&m->options->state, STATE_RUN, run);
	if (io_path(path, sizeof(path), run, ADMIN_SOCKET, e) == -1)
		return -1;
	m->admin =
	    admin_new(m->base, &m->board, &m->notices, path, m->admin_fd, e);
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
	    slots > MIN_SLOTS ? slots : MIN_SLOTS, MAX_TARGETS, MAX_ACCOUNTS,
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
	m->keys = old.keys;
	m->keys_ms = old.keys_ms;
	if (m->board.head != NULL)
		return 0;
	m->fresh_board = true;
	return scoreboard_create(&m->board, MIN_SLOTS, MAX_TARGETS,
	    MAX_ACCOUNTS, e);
}

static void
tear_down(struct master *m)
{
	if (m->crew != NULL)
		crew_kill(m->crew);
	if (m->failed && m->options->upgrade && m->admin != NULL)
		admin_close(m->admin); /* still the old one's */
	following_free(m->following);
	upgrade_free(m->upgrade);
	tickets_free(m->tickets);
	ticket_keys_wipe(&m->keys);
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
	io_close(&m->lock_fd);
	io_close(&m->admin_fd);
	if (m->base != NULL)
		event_base_free(m->base);
}

/* The only place where the state changes. */
static void
move(struct master *m, enum master_state to)
{
	assert(master_states[m->state].next & TO(to));
	log_debug("master: %s -> %s", master_states[m->state].name,
	    master_states[to].name);
	m->state = to;
	if (to == MASTER_ENDED)
		event_base_loopbreak(m->base);
}

/* Only a start can fail; later what was in force stays. */
static void
fail(struct master *m, const struct err *why)
{
	*m->failure = *why;
	m->failed = true;
	move(m, MASTER_ENDED);
}

/* ---- what the follower brings ------------------------------------------ */

static void
on_settings(const char *json, void *arg)
{
	struct master *m = arg;
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

static void
on_certs(int fd, void *arg)
{
	struct master *m = arg;
	struct cert_image *certs;
	struct err e;

	if (m->state >= MASTER_LEAVING) {
		close(fd);
		return;
	}
	if ((certs = cert_image_map(fd, &e)) == NULL) {
		log_error("%s; what was in force stays", e.text);
		close(fd);
		return;
	}
	admin_certs(m->admin, certs);
	crew_certs(m->crew, fd);
}

static void
on_snapshot(int fd, int64_t revision, void *arg)
{
	struct master *m = arg;
	struct snapshot *snapshot;
	struct err e;

	if (m->state >= MASTER_LEAVING) {
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
	apply_settings(m);
}

static void
on_failed(const struct err *why, void *arg)
{
	struct master *m = arg;

	if (m->state == MASTER_STARTING)
		fail(m, why);
	else
		log_error("%s", why->text);
}

static void
on_stopped(void *arg)
{
	struct master *m = arg;

	if (m->state == MASTER_CLEARING)
		succeed(m);
	else if (m->state == MASTER_SAVING)
		move(m, MASTER_ENDED);
}

/* At the start a fault ends us.  Later it is said once, and the old listeners
 * and log stay. */
static void
apply_settings(struct master *m)
{
	bool changed = false;
	struct err e;

	if (open_all(m, &changed, &e) == 0) {
		m->notices.settings[0] = '\0';
	} else if (m->state == MASTER_STARTING) {
		fail(m, &e);
		return;
	} else if (strcmp(m->notices.settings, e.text) != 0) {
		memcpy(m->notices.settings, e.text, sizeof(e.text));
		log_error("%s; what was in force stays", e.text);
	}
	crew_resize(m->crew, n_workers(m), m->settings.drain_ms, changed);
}

static int
open_all(struct master *m, bool *changed, struct err *e)
{
	if (m->state == MASTER_STARTING) {
		crew_set_user(m->crew, m->settings.user);
		health_dial_as(m->health, m->settings.user);
	}
	if (listeners_apply(&m->listeners, m->settings.http_listen,
		m->settings.https_listen, n_workers(m), changed, e) == -1 ||
	    admin_status_listen(m->admin, m->settings.status_listen, e) == -1)
		return -1;
	return log_writer_open(m->log, m->settings.access_log, e);
}

/* Half of the scoreboard's rows are for workers that drain. */
static unsigned
n_workers(const struct master *m)
{
	unsigned n = m->settings.workers != 0 ? (unsigned)m->settings.workers :
						(unsigned)get_nprocs();
	unsigned most = m->board.head->n_slots / 2;

	most = most < CREW_MAX ? most : CREW_MAX;
	return n < most ? n : most;
}

/* ---- workers, children, signals ---------------------------------------- */

/* A worker serves, has ended, or could not start. */
static void
on_crew(const struct err *why, void *arg)
{
	struct master *m = arg;

	if (why != NULL && m->state == MASTER_STARTING)
		fail(m, why);
	else if (why != NULL)
		log_error("a worker cannot start: %s", why->text);
	else if (m->state == MASTER_STARTING && crew_is_serving(m->crew))
		serve(m);
	else if (m->state == MASTER_LEAVING && crew_is_empty(m->crew)) {
		move(m, MASTER_SAVING);
		following_stop(m->following);
	}
}

static void
serve(struct master *m)
{
	move(m, MASTER_SERVING);
	if (m->options->upgrade) {
		daemon_lock_pid(m->lock_fd);
		upgrade_tell(NULL);
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
		if (m->state != MASTER_SERVING) {
			log_warn("upgrade: not while %s",
			    master_states[m->state].name);
			break;
		}
		move(m, MASTER_CLEARING);
		following_stop(m->following);
		break;
	default:
		if (m->state >= MASTER_SERVING && m->state < MASTER_LEAVING) {
			stop(m);
		} else if (m->state == MASTER_STARTING) {
			err_set(&e, ERR_LOCAL, "ended before it served");
			fail(m, &e);
		} else if (m->state != MASTER_ENDED) {
			move(m, MASTER_ENDED); /* again */
		}
		break;
	}
}

static void
reap(struct master *m)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		if (!crew_reaped(m->crew, pid, status) &&
		    !following_reaped(m->following, pid, status) &&
		    !upgrade_reaped(m->upgrade, pid, status))
			log_debug("process %d has ended", (int)pid);
}

/* For good: nobody succeeds us. */
static void
stop(struct master *m)
{
	bool changed;
	struct err e;

	upgrade_cancel(m->upgrade);
	daemon_notify("STOPPING=1");
	if (listeners_apply(&m->listeners, "", "", 1, &changed, &e) == -1)
		log_error("%s", e.text);
	leave(m);
}

static void
leave(struct master *m)
{
	log_info("draining for at most %lld ms",
	    (long long)m->settings.drain_ms);
	move(m, MASTER_LEAVING);
	crew_drain(m->crew, m->settings.drain_ms);
	on_crew(NULL, m);
}

/* ---- upgrade ----------------------------------------------------------- */

static void
succeed(struct master *m)
{
	struct legacy all = {
		.listeners = m->listeners,
		.status = *admin_status_listeners(m->admin),
		.board = m->board,
		.lock_fd = m->lock_fd,
		.admin_fd = admin_socket(m->admin),
		.keys = *tickets_keys(m->tickets),
		.keys_ms = tickets_left_ms(m->tickets),
	};
	struct err e;

	move(m, MASTER_UPGRADING);
	if (upgrade_start(m->upgrade, m->program, m->successor_args, &all,
		&e) == -1)
		on_upgrade(&e, m);
	ticket_keys_wipe(&all.keys);
}

static void
on_upgrade(const struct err *why, void *arg)
{
	struct master *m = arg;
	struct err e;

	if (why == NULL) {
		/* What follows is the successor's to answer and to check. */
		admin_close(m->admin);
		health_stop(m->health);
		listeners_close(&m->listeners);
		leave(m);
		return;
	}
	log_error("upgrade: %s; going on with this one", why->text);
	memcpy(m->notices.upgrade, why->text, sizeof(why->text));
	m->notices.n_upgrades++;
	move(m, MASTER_SERVING);
	if (following_start(m->following, false, &e) == -1)
		log_error("cannot follow the registry: %s", e.text);
}
