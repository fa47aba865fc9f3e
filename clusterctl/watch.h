/*
 * watch.h: --watch: a command that shows something shows it again and again:
 * redrawn on a terminal, one after another in a pipe.
 */
#ifndef CLUSTERCTL_WATCH_H
#define CLUSTERCTL_WATCH_H

#include <stdint.h>

#include "clusterctl/context.h"
#include "clusterctl/opts.h"

struct watch_opts {
	int64_t every_ms; /* 0: once */
};

#define N_WATCH_ROWS 1
extern const struct opt watch_rows[N_WATCH_ROWS];

/* A set for a command's table; `type` has a struct watch_opts `watch`. */
#define WATCH_OPTS(type)                                           \
	{                                                          \
		.title = "Again and again", .rows = watch_rows,    \
		.n = N_WATCH_ROWS, .offset = offsetof(type, watch) \
	}

/*
 * Calls show() once, or until Ctrl-C, with what the cluster knows read anew
 * each time.  show() returns the command's exit status, or -1; a failure is
 * said and does not end a watch.
 */
int watch_run(struct context *, const struct watch_opts *,
    int (*show)(struct context *, const void *arg, struct err *),
    const void *arg, struct err *);

#endif
