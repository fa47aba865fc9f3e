/*
 * pace.h: the options that say how an order spreads: how many nodes at once,
 * how long to wait for one, after how many failures to stop.
 */
#ifndef CLUSTERCTL_PACE_H
#define CLUSTERCTL_PACE_H

#include "clusterctl/fanout.h"
#include "clusterctl/opts.h"

struct pace_opts {
	int64_t connect_ms;
	uint64_t fanout;
	bool serial, fail_fast;
	const char *batch, *max_fail;
};

#define N_PACE_ROWS 6
extern const struct opt pace_rows[N_PACE_ROWS];

/* A set for a command's table; `type` has a struct pace_opts `pace`. */
#define PACE_OPTS(type)                                          \
	{                                                        \
		.title = "How it spreads", .rows = pace_rows,    \
		.n = N_PACE_ROWS, .offset = offsetof(type, pace) \
	}

/* Fills window, connect_ms and max_fail for plan->n nodes. */
int pace_apply(const struct pace_opts *, struct fanout_plan *, struct err *);

#endif
