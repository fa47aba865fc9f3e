/*
 * health.h: active checks, by the master: it connects to each node of a role
 * that asks for checks, says what check.h says, and writes what it found into
 * the scoreboard, where every worker's balancing sees it.
 */
#ifndef MUSTER_HEALTH_H
#define MUSTER_HEALTH_H

#include <event2/event.h>

#include "proxyd/process/scoreboard.h"
#include "proxyd/process/snapshot.h"

struct health;

struct health *health_new(struct event_base *, struct scoreboard *,
    struct err *);
void health_free(struct health *);

/* Checks the nodes of this snapshot from now on; what is known of those that
 * stay is kept.  The reference is taken. */
void health_apply(struct health *, struct snapshot *);

/* Whose permissions count for Unix sockets: the workers' account. */
void health_dial_as(struct health *, const char *account);

/* Checks nothing any more. */
void health_stop(struct health *);

/* ---- the decision, for tests: no sockets, no clock ----------------------- */

struct health_count {
	bool known; /* a first result decides at once */
	bool up;
	uint32_t ups, downs; /* in a row */
};

/* Counts a result; whether the state changed. */
bool health_decide(struct health_count *, bool good, uint32_t rise,
    uint32_t fall);

#endif
