/*
 * master.h: the privileged process: it holds the listening sockets, starts
 * the follower and the workers, checks the nodes' health, and answers
 * administrators.  It never reads a byte that a client sent.
 */
#ifndef MUSTER_MASTER_H
#define MUSTER_MASTER_H

#include <stdbool.h>

#include "common/base/err.h"
#include "common/base/state.h"

struct master_options {
	struct state state;
	int ready_fd; /* told when it serves; -1: none */
	bool upgrade; /* take over from the master at IPC_CHILD_FD */
	bool verbose;
};

/* Runs until it is ended; 0, or -1 when it did not start. */
int master_run(const struct master_options *, struct err *);

#endif
