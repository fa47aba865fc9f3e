/*
 * engine_parts.h: one worker's engine, as the files of this folder share it.
 * Everybody else sees engine.h.
 */
#ifndef MUSTER_ENGINE_PARTS_H
#define MUSTER_ENGINE_PARTS_H

#include <sys/queue.h>

#include "proxyd/balance/balance.h"
#include "proxyd/balance/queue.h"
#include "proxyd/http/buf.h"
#include "proxyd/http/compress_memory.h"
#include "proxyd/http/engine.h"
#include "proxyd/http/flow.h"
#include "proxyd/http/forward.h"
#include "proxyd/http/pipe.h"
#include "proxyd/http/spare.h"

struct access_log_entry;
struct client;
struct exchange;
struct files;
struct handshakes;
struct tls_server;
struct node_conn;
struct sending;

/* The idle connections to one node in one role, newest first: what was used
 * last is warm, and the oldest may run out. */
LIST_HEAD(node_pool, node_conn);

struct listener {
	LIST_ENTRY(listener) link;
	struct engine *e;
	int fd;
	bool secure;
	struct event *ev;
};

struct engine {
	struct event_base *base;
	const struct scoreboard *sb;
	struct sb_worker *row; /* ours in it */
	uint32_t slot;
	struct snapshot *snap;
	struct balance *balance;
	struct log_ring *log; /* NULL: none */
	struct buf_pool bufs;
	struct pipe_pool pipes;
	struct compress_memory compress;
	struct flow_tools tools;
	struct sock_loop loop;
	int64_t now_us, now_ms; /* monotonic, of the event under way */
	uint64_t random[2];

	LIST_HEAD(listeners, listener) listeners;
	bool paused;	     /* no descriptors, or too many clients */
	uint32_t client_fds; /* descriptors that clients may take */

	struct client **clients; /* all of them, in no order */
	uint32_t n_clients, room, sweep_at;
	uint32_t n_tunnels; /* of the clients */
	uint32_t n_exchanges;
	uint32_t n_collecting, n_delivering; /* of them */
	struct client *dead_clients;
	struct spare spare_clients;

	struct node_pool *pools; /* by target row */
	TAILQ_HEAD(node_list, node_conn)
	idle_nodes;	  /* of all pools, oldest first */
	uint32_t n_nodes; /* idle or not */
	uint32_t n_idle;
	struct node_conn *dead_nodes;
	struct spare spare_nodes;

	struct files *files; /* NULL: no static files */
	struct tls_server *tls;
	struct handshakes *handshakes; /* NULL: no TLS */
	struct spare spare_sendings;

	struct exchange *dead_exchanges;
	struct spare spare_exchanges;
	struct queue **queues; /* by the role's target row */
	uint32_t n_queued;
	bool serving; /* a queue, just now */

	TAILQ_HEAD(waiting_list, client)
	waiting; /* for leave to send: limit.h */
	uint32_t n_waiting;

	struct event *tick, *queue_tick, *limit_tick;
	bool draining;
	int64_t drain_ms; /* then all is cut */
	void (*idle_cb)(void *);
	void *idle_arg;

	uint32_t n_refused;  /* for their PROXY header, not yet in the log */
	int64_t complain_ms; /* not before then again */

	int64_t tidy_ms;   /* when spare memory was last looked at */
	uint32_t n_tidied; /* blocks that malloc has, and the system not yet */

	int64_t date_s;
	char date[32];
	char scratch[FORWARD_MAX]; /* the head being put together */
};

/* Around every callback: the clock before, the dead after. */
void engine_enter(struct engine *);
void engine_leave(struct engine *);

/* The date for a Date field, made once a second. */
const char *engine_date(struct engine *);

uint64_t engine_random(struct engine *);

/* Writes a line into the access log, if there is one. */
void engine_log(struct engine *, const struct access_log_entry *);

/* Descriptors are free again, or clients fewer. */
void engine_resume(struct engine *);
void engine_pause(struct engine *);

/* Looks after the queues soon: other workers give places back, too, and
 * nobody tells us. */
void engine_serve_soon(struct engine *);

/* A role's queue, made when first needed; NULL: no memory. */
struct queue *engine_queue(struct engine *, const struct snap_role *);

static inline void
engine_count(_Atomic uint64_t *counter)
{
	/* Only this worker writes its row: no locked addition needed. */
	atomic_store_explicit(counter,
	    atomic_load_explicit(counter, memory_order_relaxed) + 1,
	    memory_order_relaxed);
}

#endif
