/*
 * node_conn.h: connections to nodes, and the pool of idle ones.
 *
 * An idle one keeps its event, so that the node's FIN is seen at once and it
 * is never handed out dead, as far as that can be known.  One that began with
 * whose it is (introduce.h) is kept with its client; it counts and ages like
 * those in the pool.
 */
#ifndef MUSTER_NODE_CONN_H
#define MUSTER_NODE_CONN_H

#include <sys/queue.h>
#include <stdbool.h>
#include <stdint.h>

#include "proxyd/http/buf.h"
#include "proxyd/http/sock.h"

struct client;
struct engine;
struct snap_node;
struct snapshot;

enum node_state { NODE_CONNECTING, NODE_BUSY, NODE_IDLE, NODE_DEAD };

struct node_conn {
	struct sock s;
	struct engine *e;
	union {
		struct node_conn *next;	       /* among the dead */
		LIST_ENTRY(node_conn) in_pool; /* or with its client */
	};
	TAILQ_ENTRY(node_conn) in_idle;
	struct client *client; /* NULL: idle */
	struct buf *in;	       /* a response head as far as it came */
	int64_t since_ms;      /* idle since */
	uint64_t way;	       /* snap_node's: what it was made for */
	uint64_t key;	       /* introduce_key(): for whom; 0: anybody */
	uint32_t target;       /* row in the scoreboard */
	uint8_t state;	       /* enum node_state */
	bool reused;	       /* it has served before */
};

/*
 * A connection to a node for a client: an idle one (NODE_BUSY) unless
 * `fresh`, else a new one (NODE_CONNECTING).  NULL: errno; EAGAIN: the node
 * takes no more for the moment.  `careful` looks once more whether an idle one
 * is alive: for what cannot be sent twice.  key: of introduce.h.
 */
struct node_conn *node_conn_get(struct engine *, const struct snapshot *,
    const struct snap_node *, struct client *, uint64_t key, bool fresh,
    bool careful);

/* Whether the connect is through: 1, 0 not yet, -1 and errno. */
int node_conn_connected(struct node_conn *);

/* Back into the pool, or to its client (closed when there are too many). */
void node_conn_put(struct node_conn *);

/* Closes it. */
void node_conn_drop(struct node_conn *);

/* Closes what was idle too long; all of them when `all`. */
void node_conn_sweep(struct engine *, bool all);

#endif
