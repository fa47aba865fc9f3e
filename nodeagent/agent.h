/*
 * agent.h: what the parts of a running agent share.  agent.c makes it, runs
 * it and takes it down.
 */
#ifndef NODEAGENT_AGENT_H
#define NODEAGENT_AGENT_H

#include <stdbool.h>
#include <stdint.h>

#include <event2/event.h>

#include "common/base/err.h"
#include "common/base/state.h"
#include "common/net/channel.h"
#include "nodeagent/view.h"

struct agent {
	struct event_base *base;
	struct state state;
	struct channel_identity identity;
	struct cert cert; /* our own */
	struct view view; /* of the last good roster */
	int64_t started_ms;
	bool listens_elsewhere; /* than the roster says: --listen */
	uint64_t n_orders;	/* begun since the start */

	struct journal *journal;
	struct jobs *jobs;
	struct server *server;
	struct control *control;
	struct pull *pull; /* of the roster, from the masters */
	struct renewal *renewal;
	struct fetch *fetch;   /* of keys of sites */
	struct master *master; /* NULL: this node has no registry */
};

struct options;

/* `nodeagent run`. */
int agent_run(const struct options *, struct err *);

/* A new roster is on disk: reads it and acts on what has changed. */
int agent_adopt_roster(struct agent *, struct err *);

/* A master says that we are not of the cluster any more. */
void agent_was_removed(struct agent *);

#endif
