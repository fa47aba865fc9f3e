/*
 * report.h: what a change says when it is done: a sentence on a terminal,
 * nothing in a pipe, {"done": sentence, "revision": number} with --json (the
 * revision where there is a registry).
 */
#ifndef CLUSTERCTL_REPORT_H
#define CLUSTERCTL_REPORT_H

#include "clusterctl/context.h"
#include "common/base/err.h"

/* Returns 0, the exit status of the command. */
int report_done(struct context *, const char *fmt, ...) PRINTF(2, 3);

#endif
