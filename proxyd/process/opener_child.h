/*
 * opener_child.h: the master's part of a worker's opener (static/opener.h):
 * it is the master's child, as the worker is, for a confined worker can start
 * nothing.  One that dies is replaced, later each time it does so soon.
 */
#ifndef MUSTER_OPENER_CHILD_H
#define MUSTER_OPENER_CHILD_H

#include <sys/types.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/base/err.h"

struct opener_child {
	pid_t pid; /* 0: none runs */
	int64_t started_ms;
	int64_t rest_ms; /* before the next one */
	int64_t due_ms;	 /* when that is */
};

/* Starts one that works as `user`.  *fd is the end for its worker, the
 * caller's. */
int opener_child_start(struct opener_child *, const char *user, int *fd,
    struct err *);

/* From the reaper: whether the process was it. */
bool opener_child_reaped(struct opener_child *, pid_t, int wait_status,
    pid_t worker);

/* In how many ms another one may be started; 0: now; -1: one runs. */
int opener_child_due(const struct opener_child *);

#endif
