/*
 * balance.h: which node gets the next request (or connection) of a role.
 *
 * Decisions look at the snapshot (weights, bounds, what the administrator
 * wants) and the scoreboard (who holds what, who is well), so they are global
 * over all workers without a round trip.  They take now_ms and return an
 * action; nothing here knows a socket.
 */
#ifndef MUSTER_BALANCE_H
#define MUSTER_BALANCE_H

#include <stdbool.h>
#include <stdint.h>

#include "proxyd/process/scoreboard.h"
#include "proxyd/process/snapshot.h"

#define BALANCE_TRIES 11 /* nodes a request may try at most */

/* One worker's: turns of round robin, the retry budget. */
struct balance;

struct balance *balance_new(const struct scoreboard *, uint32_t slot,
    struct err *);
void balance_free(struct balance *);

struct balance_ask {
	const struct snapshot *snap;
	const struct snap_role *role;
	int64_t now_ms;
	uint64_t key;	 /* of the client, URI or cookie; for hash:* */
	uint32_t sticky; /* node index the cookie named, or SNAP_NONE */
	uint32_t tried[BALANCE_TRIES]; /* node indexes, not again */
	uint32_t n_tried;
};

enum balance_action {
	BALANCE_NODE, /* this one; a place is held there */
	BALANCE_WAIT, /* every usable node is full */
	BALANCE_NONE, /* no node is left to try */
};

struct balance_answer {
	enum balance_action action;
	uint32_t node; /* index in the snapshot */
	enum why why;  /* why not the first choice, or none at all */
};

/*
 * Nodes that are down or ejected are passed over; when nothing else is left
 * they are tried all the same (a check may be wrong, and a failing node is
 * no worse than no answer).  A node in maintenance or draining never is,
 * except a draining one for its own sticky clients.
 */
void balance_pick(struct balance *, const struct balance_ask *,
    struct balance_answer *);

/* How an exchange with a held node ended. */
enum balance_end {
	BALANCE_OK,	 /* it answered */
	BALANCE_FAILED,	 /* connect, reset, time-out, garbage: its fault */
	BALANCE_NEUTRAL, /* the client left; says nothing about the node */
};

/*
 * Gives the place back and keeps the health record.  Too many failures in a
 * row eject the node, for a time that doubles each time, unless it is the
 * last usable one (then its `why` says so).
 */
void balance_end(struct balance *, const struct snapshot *, uint32_t role,
    uint32_t node, enum balance_end, enum why, int64_t now_ms);

/* Whether a retry may be spent; spends it.  Each request earns a part. */
bool balance_retry(struct balance *, const struct snapshot *);
void balance_request(struct balance *, const struct snapshot *);

/* Whether a node gets new requests, and the word for why not (WHY_NONE). */
bool balance_usable(const struct snap_node *, const struct sb_target *,
    int64_t now_ms, enum why *);

/* Its weight now, in hundredths: slow start lets it grow from a tenth. */
uint32_t balance_weight(const struct snap_role *, const struct snap_node *,
    const struct sb_target *, int64_t now_ms);

/* A stable hash for keys. */
uint64_t balance_hash(const void *bytes, size_t len);

#endif
