/*
 * worker.c: see worker.h.
 *
 * Until IPC_START it reads the master's messages one by one; from then on
 * they come through the event loop.
 */
#include "proxyd/process/worker.h"

#include <fcntl.h>
#include <signal.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <event2/event.h>

#include "common/base/clock.h"
#include "common/base/io.h"
#include "common/base/log.h"
#include "proxyd/http/engine.h"
#include "proxyd/process/confine.h"
#include "proxyd/process/ipc.h"
#include "proxyd/process/listeners.h"
#include "proxyd/static/files.h"
#include "proxyd/tls/server.h"

#define ORPHAN_DRAIN_MS 30000

struct worker {
	struct event_base *base;
	struct engine *engine;
	struct files *files;
	struct tls_server *tls;
	struct scoreboard board;
	struct log_ring ring, *log;
	struct sb_worker *row;
	struct event *control, *term;
	uint32_t slot;
	bool draining;
};

typedef int message_fn(struct worker *, struct ipc_message *, struct err *);

static message_fn take_scoreboard, take_log_ring, take_snapshot, take_spool,
    take_opener, take_certs, take_tickets, take_listener, drop_listeners, start,
    drain;

static message_fn *const messages[IPC_N_TYPES] = {
	[IPC_SCOREBOARD] = take_scoreboard,
	[IPC_LOG_RING] = take_log_ring,
	[IPC_SNAPSHOT] = take_snapshot,
	[IPC_SPOOL] = take_spool,
	[IPC_OPENER] = take_opener,
	[IPC_LISTENER] = take_listener,
	[IPC_UNLISTEN] = drop_listeners,
	[IPC_START] = start,
	[IPC_DRAIN] = drain,
	[IPC_CERTS] = take_certs,
	[IPC_TICKETS] = take_tickets,
};

static void fail(const struct err *);
static int handle(struct worker *, struct ipc_message *, struct err *);
static int prepare(struct worker *, struct err *);
static int watch(struct worker *, struct err *);
static void begin_drain(struct worker *, int64_t ms);
static void on_control(evutil_socket_t, short, void *);
static void on_term(evutil_socket_t, short, void *);
static void on_idle(void *);

int
worker_run(void)
{
	struct worker w = { .board.fd = -1 };
	struct err e;

	if (prepare(&w, &e) == -1 || watch(&w, &e) == -1) {
		fail(&e);
		return err_exit_status(e.code);
	}
	event_base_dispatch(w.base);
	engine_free(w.engine);
	tls_server_free(w.tls);
	files_free(w.files);
	event_free(w.control);
	event_free(w.term);
	event_base_free(w.base);
	return 0;
}

/* The master says it: if it starts just now, to the terminal.  If it has gone,
 * that is why, and nobody needs us. */
static void
fail(const struct err *why)
{
	struct err e;

	if (ipc_send(IPC_CHILD_FD, IPC_FAILED, why->code, -1, why->text, &e) ==
		-1 &&
	    e.code != ERR_UNREACHABLE)
		log_error("worker: %s", why->text);
}

/* All up to IPC_START, in the order that the master sends it. */
static int
prepare(struct worker *w, struct err *e)
{
	struct ipc_message m;

	signal(SIGXFSZ, SIG_IGN); /* a limit is an error like a full disk */
	tzset(); /* reads a file, which is forbidden later on */
	if ((w->base = engine_event_base(e)) == NULL ||
	    (w->files = files_new(w->base, e)) == NULL ||
	    (w->tls = tls_server_new(e)) == NULL)
		return -1;
	do {
		if (ipc_recv(IPC_CHILD_FD, &m, e) != 1)
			return err_set(e, ERR_LOCAL,
			    "the master went away before the start");
		if (handle(w, &m, e) == -1)
			return -1;
	} while (m.type != IPC_START);
	return 0;
}

static int
handle(struct worker *w, struct ipc_message *m, struct err *e)
{
	if (messages[m->type] != NULL)
		return messages[m->type](w, m, e);
	io_close(&m->fd);
	return err_set(e, ERR_PROTOCOL, "message %u is not for a worker",
	    m->type);
}

static int
take_scoreboard(struct worker *w, struct ipc_message *m, struct err *e)
{
	if (scoreboard_map(&w->board, m->fd, e) == -1)
		return -1;
	w->slot = (uint32_t)m->number;
	w->row = sb_worker(&w->board, w->slot);
	return 0;
}

static int
take_log_ring(struct worker *w, struct ipc_message *m, struct err *e)
{
	if (log_ring_map(&w->ring, m->fd, -1, e) == -1)
		return -1;
	w->log = &w->ring;
	return 0;
}

static int
take_snapshot(struct worker *w, struct ipc_message *m, struct err *e)
{
	struct snapshot *s = snapshot_map(m->fd, e);
	int told = 0;

	/* The opener first: it is asked by what the engine knows. */
	if (s != NULL)
		told = opener_link_snapshot(files_opener(w->files), m->fd, e);
	io_close(&m->fd);
	if (s == NULL)
		return -1;
	if (told == -1)
		log_error("worker: %s", e->text);
	atomic_store(&w->row->revision, m->number);
	if (w->engine != NULL) {
		engine_snapshot(w->engine, s);
		return 0;
	}
	w->engine = engine_new(w->base, &w->board, w->slot, w->log, s, e);
	if (w->engine == NULL)
		return -1;
	engine_serve_files(w->engine, w->files);
	return engine_serve_tls(w->engine, w->tls, e);
}

static int
take_opener(struct worker *w, struct ipc_message *m, struct err *e)
{
	return opener_link_attach(files_opener(w->files), m->fd, e);
}

static int
take_spool(struct worker *w, struct ipc_message *m, struct err *e)
{
	if (w->engine == NULL) {
		io_close(&m->fd);
		return err_set(e, ERR_PROTOCOL, "a spool before a snapshot");
	}
	return engine_spool(w->engine, m->fd, e);
}

static int
take_listener(struct worker *w, struct ipc_message *m, struct err *e)
{
	if (w->engine == NULL) {
		io_close(&m->fd);
		return err_set(e, ERR_PROTOCOL, "a listener before a snapshot");
	}
	if (w->draining) {
		io_close(&m->fd);
		return 0;
	}
	if (m->number == LISTENER_TLS && tls_server_open(w->tls, e) == -1) {
		io_close(&m->fd);
		return -1;
	}
	return engine_listen(w->engine, m->fd, m->number == LISTENER_TLS, e);
}

static int
take_certs(struct worker *w, struct ipc_message *m, struct err *e)
{
	struct cert_image *certs = cert_image_map(m->fd, e);

	io_close(&m->fd);
	if (certs == NULL)
		return -1;
	tls_server_certs(w->tls, certs);
	return 0;
}

static int
take_tickets(struct worker *w, struct ipc_message *m, struct err *e)
{
	struct ticket_keys keys;

	if (ticket_keys_from_text(&keys, m->text, e) == -1)
		return -1;
	tls_server_tickets(w->tls, &keys);
	ticket_keys_wipe(&keys);
	sodium_memzero(m->text, sizeof(m->text));
	return 0;
}

static int
drop_listeners(struct worker *w, struct ipc_message *m, struct err *e)
{
	(void)m;
	(void)e;
	engine_unlisten(w->engine);
	return 0;
}

static int
start(struct worker *w, struct ipc_message *m, struct err *e)
{
	if (confine(m->text, CONFINE_WORKER, e) == -1)
		return -1;
	atomic_store(&w->row->state, SB_SERVING);
	return ipc_send(IPC_CHILD_FD, IPC_READY, 0, -1, NULL, e);
}

static int
drain(struct worker *w, struct ipc_message *m, struct err *e)
{
	(void)e;
	begin_drain(w, m->number);
	return 0;
}

static int
watch(struct worker *w, struct err *e)
{
	if (fcntl(IPC_CHILD_FD, F_SETFL, O_NONBLOCK) == -1)
		return err_errno(e, ERR_LOCAL,
		    "cannot set up the master's end");
	w->control = event_new(w->base, IPC_CHILD_FD, EV_READ | EV_PERSIST,
	    on_control, w);
	w->term = evsignal_new(w->base, SIGTERM, on_term, w);
	if (w->control == NULL || w->term == NULL ||
	    event_add(w->control, NULL) == -1 || event_add(w->term, NULL) == -1)
		return err_set(e, ERR_LOCAL, "out of memory for events");
	engine_on_idle(w->engine, on_idle, w);
	return 0;
}

static void
begin_drain(struct worker *w, int64_t ms)
{
	w->draining = true;
	atomic_store(&w->row->state, SB_DRAINING);
	engine_drain(w->engine, clock_mono_ms() + ms);
	if (engine_idle(w->engine))
		on_idle(w);
}

static void
on_control(evutil_socket_t fd, short what, void *arg)
{
	struct worker *w = arg;
	struct ipc_message m;
	struct err e;
	int rv;

	(void)what;
	while ((rv = ipc_recv(fd, &m, &e)) == 1)
		if (handle(w, &m, &e) == -1)
			log_error("worker: %s", e.text);
	if (rv == 0) {
		/* Nobody replaces us; what is under way may still finish. */
		event_del(w->control);
		begin_drain(w, ORPHAN_DRAIN_MS);
	} else if (e.code != ERR_BUSY) {
		log_error("worker: %s", e.text);
	}
}

static void
on_term(evutil_socket_t sig, short what, void *arg)
{
	(void)sig;
	(void)what;
	begin_drain(arg, ORPHAN_DRAIN_MS);
}

static void
on_idle(void *arg)
{
	struct worker *w = arg;

	event_base_loopbreak(w->base);
}
