/*
 * child.h: one process of an order.  It has its own session and process
 * group, a clean environment, no descriptor of ours, and cannot outlive the
 * agent (unless told to).
 *
 * What goes wrong between fork and exec comes back through the `report`
 * pipe, as the JSON of an ERROR record; a function run in the child's place
 * (child_spec.call) answers there too.
 */
#ifndef NODEAGENT_CHILD_H
#define NODEAGENT_CHILD_H

#include <sys/types.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/base/err.h"

#define CHILD_ORDER "MUSTER_ORDER" /* the variable that marks a child */

struct cgroup;

struct child_pty {
	uint16_t rows, columns;
	const char *term;
};

/* Everything is borrowed, and only until child_start() returns. */
struct child_spec {
	const char *const *argv; /* ends with NULL */
	const char *shell;	 /* or a line for /bin/sh -c */
	/* or a function of ours, for work that may block: it reads
	 * descriptor 0, writes 1, reports to `report`, and returns the exit
	 * status */
	int (*call)(const void *arg, int report);
	const void *call_arg;

	const char *user;	     /* NULL: as the agent */
	const char *cwd;	     /* NULL: the user's home */
	const char *const *env;	     /* NAME=VALUE, ends with NULL; or NULL */
	const char *node;	     /* for MUSTER_NODE */
	const char *roles;	     /* for MUSTER_ROLES */
	const char *order;	     /* for MUSTER_ORDER; NULL: none */
	const struct child_pty *pty; /* NULL: pipes */
	bool keep;		     /* outlives the agent */
	const struct cgroup *cgroup; /* to live in; NULL: none */
};

/* Our ends, non-blocking and close-on-exec; -1 for none. */
struct child {
	pid_t pid; /* also its session and process group */
	int in, out, err;
	int report;
};

int child_start(const struct child_spec *, struct child *, struct err *);

/* Remembers the resource limits we were started with, which a child gets
 * back.  Call before anything changes them. */
void child_save_limits(void);

#endif
