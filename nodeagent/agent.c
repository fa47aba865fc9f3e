/* agent.c: see agent.h. */
#include "nodeagent/agent.h"

#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "common/base/clock.h"
#include "common/base/daemon.h"
#include "common/base/io.h"
#include "common/base/log.h"
#include "common/base/text.h"
#include "common/net/identity.h"
#include "nodeagent/cgroup.h"
#include "nodeagent/control.h"
#include "nodeagent/fetch.h"
#include "nodeagent/frugal.h"
#include "nodeagent/job.h"
#include "nodeagent/journal.h"
#include "nodeagent/master.h"
#include "nodeagent/options.h"
#include "nodeagent/pull.h"
#include "nodeagent/renew.h"
#include "nodeagent/server.h"

#define STOP_POLL_MS 20
#define STOP_MAX_MS  8000 /* for orders to end and answers to leave */

/* What runs beside the agent's shared parts. */
struct run {
	struct agent agent;
	int lock_fd;
	char run_dir[PATH_MAX];
	struct event *on_term, *on_int, *on_hup;
	struct event *stopping; /* pending: the agent is being stopped */
	int64_t stop_began_ms;
};

static void say_enrolled(const struct agent *);
static void follow_address(struct agent *, const struct addr *before);
static int open_state(struct run *, const struct options *, struct err *);
static int load_identity(struct agent *, struct err *);
static int load_roster(struct agent *, struct err *);
static int listen_address(const struct agent *, const struct options *,
    struct addr *, struct err *);
static int open_parts(struct run *, const struct options *, struct err *);
static int watch_signals(struct run *, struct err *);
static void say_ready(const struct run *, int ready_fd);
static void on_stop(evutil_socket_t, short, void *);
static void on_stop_poll(evutil_socket_t, short, void *);
static void on_reload(evutil_socket_t, short, void *);
static void settle(struct agent *);
static void run_fini(struct run *);

int
agent_run(const struct options *o, struct err *e)
{
	static struct run run = { .lock_fd = -1 };
	struct agent *a = &run.agent;
	int rv = -1;

	frugal_setup();
	a->started_ms = clock_mono_ms();
	if (open_state(&run, o, e) == -1 || load_identity(a, e) == -1 ||
	    open_parts(&run, o, e) == -1)
		goto out;
	say_ready(&run, o->ready_fd);
	if (event_base_dispatch(a->base) == -1)
		err_set(e, ERR_LOCAL, "the event loop has failed");
	else
		rv = 0;
	daemon_notify("STOPPING=1");
	log_info("stopped");
out:
	run_fini(&run);
	return rv;
}

int
agent_adopt_roster(struct agent *a, struct err *e)
{
	char path[PATH_MAX];
	int64_t before = a->view.revision;
	struct addr registered = a->view.addr;
	bool was_enrolled = a->view.enrolled;

	if (view_load(&a->view, state_path(&a->state, STATE_ROSTER, path),
		a->identity.authority, a->identity.public, e) == -1)
		return -1;
	frugal_trim();
	if (before == 0)
		return 0;
	if (a->view.revision != before)
		log_info("roster: revision %" PRId64, a->view.revision);
	if (was_enrolled != a->view.enrolled)
		say_enrolled(a);
	if (a->server != NULL) {
		follow_address(a, &registered);
		server_recheck(a->server);
		renewal_look(a->renewal);
		fetch_now(a->fetch);
	}
	return 0;
}

void
agent_was_removed(struct agent *a)
{
	if (!a->view.enrolled)
		return;
	a->view.enrolled = false;
	say_enrolled(a);
	server_recheck(a->server);
}

static void
say_enrolled(const struct agent *a)
{
	if (a->view.enrolled)
		log_info("%s is in the cluster again", a->view.name);
	else
		log_warn("%s was removed from the cluster and takes no more "
			 "orders (to bring it back: clusterctl enroll on a "
			 "master, then the line that it prints here)",
		    a->view.name);
}

/* A node that was given another address in the registry. */
static void
follow_address(struct agent *a, const struct addr *before)
{
	char at[ADDR_TEXT_MAX];
	struct err e;

	if (a->listens_elsewhere || !a->view.enrolled ||
	    (addr_same_ip(before, &a->view.addr) &&
		addr_port(before) == addr_port(&a->view.addr)))
		return;
	if (server_move(a->server, &a->view.addr, &e) == -1) {
		log_warn("cannot follow to the new address: %s", e.text);
		return;
	}
	addr_format(server_addr(a->server), at);
	log_info("serving on %s from now on", at);
}

static int
open_state(struct run *r, const struct options *o, struct err *e)
{
	char lock[PATH_MAX];

	if (state_open(&r->agent.state, state_dir(o->state), e) == -1)
		return -1;
	state_path(&r->agent.state, STATE_RUN, r->run_dir);
	if (io_mkdir(r->run_dir, 0700, e) == -1 ||
	    io_path(lock, sizeof(lock), r->run_dir, "nodeagent.lock", e) == -1)
		return -1;
	return daemon_lock(lock, &r->lock_fd, e);
}

/* With a certificate that is out of time the agent runs on: the clock may be
 * what is wrong, and a master can tell. */
static int
load_identity(struct agent *a, struct err *e)
{
	if (identity_load(&a->state, CERT_NODE, clock_wall_ms() / 1000,
		&a->identity, &a->cert, e) == 0)
		return 0;
	if (e->code != ERR_EXPIRED && e->code != ERR_NOT_YET)
		return -1;
	log_error("%s", e->text);
	return 0;
}

static int
load_roster(struct agent *a, struct err *e)
{
	bool there = state_has(&a->state, STATE_ROSTER);

	if (!there && a->master == NULL)
		return err_set(e, ERR_LOCAL,
		    "this node has no roster yet: it has not finished joining "
		    "(run the same nodeagent join line again)");
	if (there && agent_adopt_roster(a, e) == -1) {
		if (a->master == NULL)
			return err_set(e, e->code,
			    "%.150s (put another node's file in its place: it "
			    "is the same everywhere)",
			    e->text);
		log_warn("%s; making a new one", e->text);
	}
	/* When it cannot sign a new one (it is locked, the disk is full), it
	 * serves on with the last; master.c tries again, and warns. */
	if (a->master != NULL && master_refresh(a->master, e) == -1 &&
	    a->view.revision == 0)
		return -1;
	return 0;
}

static int
open_parts(struct run *r, const struct options *o, struct err *e)
{
	struct event_config *config = event_config_new();
	struct agent *a = &r->agent;
	struct addr listen;

	if (config != NULL)
		event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK);
	a->base = config != NULL ? event_base_new_with_config(config) : NULL;
	if (config != NULL)
		event_config_free(config);
	if (a->base == NULL)
		return err_set(e, ERR_LOCAL, "cannot make an event loop");
	if ((a->jobs = jobs_new(a->base, e)) == NULL ||
	    (a->journal = journal_new(a, e)) == NULL)
		return -1;
	if (state_has(&a->state, STATE_REGISTRY) &&
	    (a->master = master_new(a, e)) == NULL)
		return -1;
	if (load_roster(a, e) == -1 || listen_address(a, o, &listen, e) == -1)
		return -1;
	a->listens_elsewhere = o->listen != NULL;
	if ((a->server = server_new(a, &listen, o->listen == NULL, e)) ==
		NULL ||
	    (a->control = control_new(a, r->run_dir, e)) == NULL ||
	    (a->pull = pull_new(a, e)) == NULL ||
	    (a->renewal = renewal_new(a, e)) == NULL ||
	    (a->fetch = fetch_new(a, e)) == NULL)
		return -1;
	cgroup_setup();
	return watch_signals(r, e);
}

/* --listen is "IP:PORT", "IP" or "PORT"; what it leaves open is as
 * registered. */
static int
listen_address(const struct agent *a, const struct options *o,
    struct addr *listen, struct err *e)
{
	uint64_t port;

	if (!a->view.enrolled && o->listen == NULL)
		return err_set(e, ERR_DENIED,
		    "this node is not in the roster: it was removed from the "
		    "cluster (join again with a new token)");
	*listen = a->view.addr;
	if (o->listen == NULL)
		return 0;
	if (o->listen[strspn(o->listen, "0123456789")] == '\0') {
		if (text_parse_u64("--listen", o->listen, 0, 65535, &port, e) ==
		    -1)
			return -1;
		addr_set_port(listen, (uint16_t)port);
		return 0;
	}
	return addr_parse(o->listen,
	    a->view.enrolled ? addr_port(&a->view.addr) : PROTO_DEFAULT_PORT,
	    listen, e);
}

static int
watch_signals(struct run *r, struct err *e)
{
	struct event_base *base = r->agent.base;

	r->on_term = evsignal_new(base, SIGTERM, on_stop, r);
	r->on_int = evsignal_new(base, SIGINT, on_stop, r);
	r->on_hup = evsignal_new(base, SIGHUP, on_reload, r);
	r->stopping = event_new(base, -1, EV_PERSIST, on_stop_poll, r);
	if (r->on_term == NULL || r->on_int == NULL || r->on_hup == NULL ||
	    r->stopping == NULL || event_add(r->on_term, NULL) == -1 ||
	    event_add(r->on_int, NULL) == -1 ||
	    event_add(r->on_hup, NULL) == -1)
		return err_set(e, ERR_LOCAL, "cannot watch for signals");
	return 0;
}

static void
say_ready(const struct run *r, int ready_fd)
{
	char at[ADDR_TEXT_MAX];

	addr_format(server_addr(r->agent.server), at);
	log_info("%s: serving on %s, roster revision %" PRId64,
	    r->agent.view.name, at, r->agent.view.revision);
	frugal_trim();
	daemon_ready(ready_fd);
}

static void
on_stop(evutil_socket_t sig, short what, void *arg)
{
	static const struct timeval poll = { 0, STOP_POLL_MS * 1000 };
	struct run *r = arg;
	struct err why;

	(void)what;
	if (evtimer_pending(r->stopping, NULL)) {
		/* The second time somebody is in a hurry. */
		jobs_kill(r->agent.jobs);
		event_base_loopbreak(r->agent.base);
		return;
	}
	log_info("stopping (%s)", sig == SIGTERM ? "SIGTERM" : "SIGINT");
	err_set(&why, ERR_UNREACHABLE, "the agent of %s is being stopped",
	    r->agent.view.name);
	server_stop(r->agent.server, &why);
	jobs_stop(r->agent.jobs);
	r->stop_began_ms = clock_mono_ms();
	event_add(r->stopping, &poll);
}

static void
on_stop_poll(evutil_socket_t fd, short what, void *arg)
{
	struct run *r = arg;
	struct agent *a = &r->agent;

	(void)fd;
	(void)what;
	if ((jobs_count_bound(a->jobs) > 0 ||
		server_n_sessions(a->server) > 0) &&
	    clock_mono_ms() - r->stop_began_ms < STOP_MAX_MS)
		return;
	jobs_kill(a->jobs);
	event_base_loopbreak(a->base);
}

static void
on_reload(evutil_socket_t sig, short what, void *arg)
{
	struct run *r = arg;

	(void)sig;
	(void)what;
	pull_now(r->agent.pull);
}

/* Channels that were ended go away on the next turn of the loop. */
static void
settle(struct agent *a)
{
	if (a->base != NULL)
		event_base_loop(a->base, EVLOOP_NONBLOCK);
}

static void
run_fini(struct run *r)
{
	struct event *const events[] = { r->on_term, r->on_int, r->on_hup,
		r->stopping };
	struct agent *a = &r->agent;

	for (size_t i = 0; i < nitems(events); i++)
		if (events[i] != NULL)
			event_free(events[i]);
	if (a->server != NULL)
		server_abort(a->server);
	settle(a);
	renewal_free(a->renewal);
	fetch_free(a->fetch);
	pull_free(a->pull);
	control_free(a->control);
	master_free(a->master);
	settle(a);
	server_free(a->server);
	jobs_free(a->jobs);
	journal_free(a->journal);
	if (a->base != NULL)
		event_base_free(a->base);
	view_fini(&a->view);
	identity_wipe(&a->identity);
	io_close(&r->lock_fd);
}
