/* engine.c: see engine.h. */
#include "proxyd/http/engine.h"

#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <event2/event.h>

#include "proxyd/http/access_log.h"
#include "proxyd/http/client.h"
#include "proxyd/http/engine_parts.h"
#include "proxyd/http/exchange.h"
#include "proxyd/http/handshake.h"
#include "proxyd/http/limit.h"
#include "proxyd/http/node_conn.h"
#include "proxyd/static/serve.h"
#include "proxyd/tls/server.h"

#define TICK_MS	       50  /* the grain of every deadline */
#define QUEUE_MS       5   /* and how often queues are looked after */
#define SWEEP_PARTS    20  /* each client is looked at once a second... */
#define SWEEP_MIN      512 /* ...and at each tick while they are few */
#define ACCEPTS_A_TURN 64
#define TIDY_MS	       1000
#define TIDY_MANY      500 /* blocks that are worth the system's time */
#define FDS_OURS       24  /* event loop, listeners, pipes, shared memory */

static void tick(int fd, short what, void *);
static uint32_t descriptors_for_clients(void);
static void sweep_clients(struct engine *);
static void tidy_spool(struct engine *);
static void tidy_memory(struct engine *);
static void serve_queues(int fd, short what, void *);
static void accept_ready(int fd, short what, void *);
static void check_idle(struct engine *);

struct event_base *
engine_event_base(struct err *e)
{
	struct event_config *cfg = event_config_new();
	struct event_base *base = NULL;

	if (cfg != NULL &&
	    event_config_set_flag(cfg,
		EVENT_BASE_FLAG_NOLOCK |
		    EVENT_BASE_FLAG_EPOLL_USE_CHANGELIST) == 0 &&
	    event_config_require_features(cfg,
		EV_FEATURE_ET | EV_FEATURE_EARLY_CLOSE) == 0)
		base = event_base_new_with_config(cfg);
	if (cfg != NULL)
		event_config_free(cfg);
	if (base == NULL)
		err_set(e, ERR_LOCAL, "cannot make an event loop");
	return base;
}

struct engine *
engine_new(struct event_base *base, const struct scoreboard *sb, uint32_t slot,
    struct log_ring *log, struct snapshot *snap, struct err *err)
{
	struct timeval every = { .tv_usec = TICK_MS * 1000 };
	struct engine *e = calloc(1, sizeof(*e));

	if (e == NULL) {
		snapshot_release(snap);
		err_set(err, ERR_LOCAL, "out of memory for the engine");
		return NULL;
	}
	e->base = base;
	e->sb = sb;
	e->slot = slot;
	e->row = sb_worker(sb, slot);
	e->snap = snap;
	e->log = log;
	e->date_s = -1;
	e->client_fds = descriptors_for_clients();
	e->tools.bufs = &e->bufs;
	e->tools.pipes = &e->pipes;
	e->tools.slow_rate = FLOW_SLOW;
	LIST_INIT(&e->listeners);
	TAILQ_INIT(&e->idle_nodes);
	TAILQ_INIT(&e->waiting);
	e->pools = calloc(sb->head->n_targets, sizeof(*e->pools));
	e->queues = calloc(sb->head->n_targets, sizeof(*e->queues));
	e->tick = event_new(base, -1, EV_PERSIST, tick, e);
	e->queue_tick = event_new(base, -1, 0, serve_queues, e);
	e->limit_tick = event_new(base, -1, 0, limit_tick, e);
	if (sock_loop_init(&e->loop, base) == -1 || e->pools == NULL ||
	    e->queues == NULL || e->tick == NULL || e->queue_tick == NULL ||
	    e->limit_tick == NULL || event_add(e->tick, &every) == -1 ||
	    getrandom(e->random, sizeof(e->random), 0) == -1) {
		err_set(err, ERR_LOCAL, "cannot start the engine");
		engine_free(e);
		return NULL;
	}
	if ((e->balance = balance_new(sb, slot, err)) == NULL) {
		engine_free(e);
		return NULL;
	}
	engine_enter(e);
	engine_snapshot(e, snapshot_hold(snap));
	return e;
}

void
engine_free(struct engine *e)
{
	if (e == NULL)
		return;
	e->idle_cb = NULL;
	engine_unlisten(e);
	while (e->n_clients > 0)
		client_cut(e->clients[e->n_clients - 1], WHY_DRAINING);
	if (e->pools != NULL)
		node_conn_sweep(e, true);
	engine_leave(e);
	handshakes_free(e->handshakes);
	spare_fini(&e->spare_clients);
	spare_fini(&e->spare_nodes);
	spare_fini(&e->spare_exchanges);
	spare_fini(&e->spare_sendings);
	for (uint32_t i = 0; e->queues != NULL && i < e->sb->head->n_targets;
	     i++)
		queue_free(e->queues[i]);
	free(e->queues);
	free(e->pools);
	free(e->clients);
	balance_free(e->balance);
	buf_pool_free(&e->bufs);
	pipe_pool_free(&e->pipes);
	spool_free(e->tools.spool);
	sock_loop_fini(&e->loop);
	compress_memory_fini(&e->compress);
	snapshot_release(e->snap);
	if (e->tick != NULL)
		event_free(e->tick);
	if (e->queue_tick != NULL)
		event_free(e->queue_tick);
	if (e->limit_tick != NULL)
		event_free(e->limit_tick);
	free(e);
}

void
engine_serve_files(struct engine *e, struct files *files)
{
	e->files = files;
}

int
engine_serve_tls(struct engine *e, struct tls_server *tls, struct err *err)
{
	e->tls = tls;
	tls_server_profile(tls, e->snap->head->settings.tls_profile);
	return (e->handshakes = handshakes_new(e, tls, err)) == NULL ? -1 : 0;
}

int
engine_spool(struct engine *e, int fd, struct err *err)
{
	if ((e->tools.spool = spool_new(fd)) == NULL)
		return err_set(err, ERR_LOCAL, "out of memory for a spool");
	spool_limit(e->tools.spool, e->snap->head->settings.spool_size);
	spool_tidy(e->tools.spool, e->now_ms);
	return 0;
}

void
engine_snapshot(struct engine *e, struct snapshot *snap)
{
	snapshot_release(e->snap);
	e->snap = snap;
	if (e->tls != NULL)
		tls_server_profile(e->tls, snap->head->settings.tls_profile);
	if (e->tools.spool != NULL)
		spool_limit(e->tools.spool, snap->head->settings.spool_size);
	atomic_store_explicit(&e->row->revision, snap->head->revision,
	    memory_order_relaxed);
}

/* --- around each callback */

void
engine_enter(struct engine *e)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	e->now_us = (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
	e->now_ms = e->tools.now_ms = e->now_us / 1000;
}

void
engine_leave(struct engine *e)
{
	while (e->dead_clients != NULL) {
		struct client *c = e->dead_clients;

		e->dead_clients = c->next;
		spare_put(&e->spare_clients, c);
	}
	while (e->dead_exchanges != NULL) {
		struct exchange *x = e->dead_exchanges;

		e->dead_exchanges = x->next;
		spare_put(&e->spare_exchanges, x);
	}
	while (e->dead_nodes != NULL) {
		struct node_conn *n = e->dead_nodes;

		e->dead_nodes = n->next;
		spare_put(&e->spare_nodes, n);
	}
}

const char *
engine_date(struct engine *e)
{
	struct timespec now;
	struct tm tm;

	clock_gettime(CLOCK_REALTIME_COARSE, &now);
	if (now.tv_sec != e->date_s) {
		gmtime_r(&now.tv_sec, &tm);
		strftime(e->date, sizeof(e->date), "%a, %d %b %Y %H:%M:%S GMT",
		    &tm);
		e->date_s = now.tv_sec;
	}
	return e->date;
}

/* xorshift128+: ids need not be secret, only different. */
uint64_t
engine_random(struct engine *e)
{
	uint64_t a = e->random[0], b = e->random[1];

	e->random[0] = b;
	a ^= a << 23;
	e->random[1] = a ^ b ^ a >> 18 ^ b >> 5;
	return e->random[1] + b;
}

void
engine_log(struct engine *e, const struct access_log_entry *entry)
{
	enum snap_log_format format =
	    (enum snap_log_format)e->snap->head->settings.log_format;
	char *room;

	if (e->log == NULL || format == SNAP_LOG_OFF)
		return;
	if ((room = log_ring_room(e->log, LOG_LINE_MAX)) == NULL) {
		engine_count(&e->row->log_dropped);
		return;
	}
	log_ring_put(e->log,
	    access_log_format(room, LOG_LINE_MAX, format, entry));
}

struct queue *
engine_queue(struct engine *e, const struct snap_role *role)
{
	if (e->queues[role->target] == NULL)
		e->queues[role->target] = queue_new();
	return e->queues[role->target];
}

/* --- listening */

int
engine_listen(struct engine *e, int fd, bool secure, struct err *err)
{
	struct listener *l = calloc(1, sizeof(*l));

	if (l == NULL || (secure && e->handshakes == NULL) ||
	    (l->ev = event_new(e->base, fd, EV_READ | EV_PERSIST, accept_ready,
		 l)) == NULL ||
	    (!e->paused && event_add(l->ev, NULL) == -1)) {
		if (l != NULL && l->ev != NULL)
			event_free(l->ev);
		free(l);
		close(fd);
		return err_set(err, ERR_LOCAL, "cannot listen: no memory");
	}
	l->e = e;
	l->fd = fd;
	l->secure = secure;
	LIST_INSERT_HEAD(&e->listeners, l, link);
	return 0;
}

void
engine_unlisten(struct engine *e)
{
	struct listener *l;

	while ((l = LIST_FIRST(&e->listeners)) != NULL) {
		LIST_REMOVE(l, link);
		event_free(l->ev);
		close(l->fd);
		free(l);
	}
}

/* Clients must not take the last descriptors: some are for the nodes that
 * serve them. */
static uint32_t
descriptors_for_clients(void)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) == -1 ||
	    files.rlim_cur >= UINT32_MAX)
		return UINT32_MAX;
	return files.rlim_cur <= FDS_OURS ?
	    1 :
	    (uint32_t)(files.rlim_cur - FDS_OURS) / 8 * 7;
}

static uint32_t
max_clients(const struct engine *e)
{
	uint32_t wanted = e->snap->head->settings.max_clients;

	return wanted < e->client_fds ? wanted : e->client_fds;
}

void
engine_pause(struct engine *e)
{
	struct listener *l;

	if (e->paused)
		return;
	e->paused = true;
	LIST_FOREACH (l, &e->listeners, link)
		event_del(l->ev);
}

void
engine_resume(struct engine *e)
{
	struct listener *l;

	if (!e->paused || e->n_clients >= max_clients(e))
		return;
	e->paused = false;
	LIST_FOREACH (l, &e->listeners, link)
		event_add(l->ev, NULL);
}

/* How many to accept now.  An accept4() in vain makes a socket and throws it
 * away, at twenty times the price of this question. */
static unsigned
n_waiting(int fd)
{
	struct tcp_info info = { 0 };
	socklen_t len = sizeof(info);

	/* Of a listening socket tcpi_unacked is who waits in its backlog. */
	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) == -1 ||
	    info.tcpi_unacked > ACCEPTS_A_TURN)
		return ACCEPTS_A_TURN;
	return info.tcpi_unacked > 0 ? info.tcpi_unacked : 1;
}

static void
accept_ready(int fd, short what, void *arg)
{
	struct listener *l = arg;
	struct engine *e = l->e;
	unsigned n = n_waiting(fd);

	(void)what;
	engine_enter(e);
	while (n-- > 0) {
		struct addr peer;
		int client;

		if (e->n_clients >= max_clients(e)) {
			engine_pause(e);
			break;
		}
		peer.len = sizeof(peer.u);
		client = accept4(fd, &peer.u.sa, &peer.len,
		    SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (client == -1) {
			if (errno == ECONNABORTED || errno == EINTR)
				continue;
			/* Out of descriptors: what waits in the backlog stays
			 * there until one is free. */
			if (errno != EAGAIN)
				engine_pause(e);
			break;
		}
		/* A local peer's path is longer than what we keep of it. */
		if (peer.len > sizeof(peer.u))
			peer.len = sizeof(peer.u);
		client_new(e, client, &peer, l->secure);
	}
	engine_leave(e);
}

/* --- draining */

void
engine_drain(struct engine *e, int64_t deadline_ms)
{
	engine_enter(e);
	engine_unlisten(e);
	e->draining = true;
	e->drain_ms = deadline_ms;
	node_conn_sweep(e, true);
	check_idle(e);
	engine_leave(e);
}

bool
engine_idle(const struct engine *e)
{
	return e->draining && e->n_clients == 0;
}

void
engine_on_idle(struct engine *e, void (*idle_cb)(void *), void *arg)
{
	e->idle_cb = idle_cb;
	e->idle_arg = arg;
}

static void
check_idle(struct engine *e)
{
	void (*cb)(void *) = e->idle_cb;

	if (!e->draining)
		return;
	while (e->now_ms >= e->drain_ms && e->n_clients > 0)
		client_cut(e->clients[e->n_clients - 1], WHY_DRAINING);
	if (!engine_idle(e) || cb == NULL)
		return;
	e->idle_cb = NULL; /* once */
	cb(e->idle_arg);
}

/* --- time */

static void
tick(int fd, short what, void *arg)
{
	struct engine *e = arg;

	(void)fd;
	(void)what;
	engine_enter(e);
	atomic_store_explicit(&e->row->beat_ms, e->now_ms,
	    memory_order_relaxed);
	sweep_clients(e);
	node_conn_sweep(e, false);
	tidy_spool(e);
	tidy_memory(e);
	engine_resume(e);
	check_idle(e);
	engine_leave(e);
}

static void
tidy_spool(struct engine *e)
{
	struct spool *sp = e->tools.spool;

	if (sp == NULL)
		return;
	spool_tidy(sp, e->now_ms);
	atomic_store_explicit(&e->row->spool_used, spool_used(sp),
	    memory_order_relaxed);
	atomic_store_explicit(&e->row->spool_full, spool_fulls(sp),
	    memory_order_relaxed);
	atomic_store_explicit(&e->row->spool_errors, spool_errors(sp),
	    memory_order_relaxed);
}

/* A crowd that has left leaves its memory: to malloc by and by, and in the end
 * to the system. */
static void
tidy_memory(struct engine *e)
{
	uint32_t n;

	if (e->now_ms - e->tidy_ms < TIDY_MS)
		return;
	e->tidy_ms = e->now_ms;
	n = spare_tidy(&e->spare_clients) + spare_tidy(&e->spare_nodes) +
	    spare_tidy(&e->spare_exchanges) + spare_tidy(&e->spare_sendings);
	e->n_tidied += n;
	if (n == 0 && e->n_tidied >= TIDY_MANY) {
		malloc_trim(0);
		e->n_tidied = 0;
	}
}

static void
sweep_clients(struct engine *e)
{
	uint32_t n = e->n_clients / SWEEP_PARTS + 1;

	if (n < SWEEP_MIN)
		n = SWEEP_MIN;
	if (n > e->n_clients)
		n = e->n_clients;
	/* Backwards: whoever is closed is replaced by one already seen. */
	while (n-- > 0 && e->n_clients > 0) {
		if (e->sweep_at == 0 || e->sweep_at > e->n_clients)
			e->sweep_at = e->n_clients;
		client_sweep(e->clients[--e->sweep_at]);
	}
}

void
engine_serve_soon(struct engine *e)
{
	struct timeval soon = { .tv_usec = QUEUE_MS * 1000 };

	if (!event_pending(e->queue_tick, EV_TIMEOUT, NULL))
		event_add(e->queue_tick, &soon);
}

static void
serve_queues(int fd, short what, void *arg)
{
	struct engine *e = arg;

	(void)fd;
	(void)what;
	engine_enter(e);
	for (uint32_t i = 0; i < e->snap->head->n_roles; i++)
		exchange_serve_queue(e, snapshot_role(e->snap, i));
	if (e->n_queued > 0)
		engine_serve_soon(e);
	engine_leave(e);
}
