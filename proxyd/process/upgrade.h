/*
 * upgrade.h: one master hands everything over to a new one, which may be
 * another version of the program: listening sockets, scoreboard, lock, admin
 * socket.  The old one goes on until the new one serves; then it drains.
 */
#ifndef MUSTER_UPGRADE_H
#define MUSTER_UPGRADE_H

#include <sys/types.h>

#include "common/base/err.h"
#include "proxyd/process/listeners.h"
#include "proxyd/process/scoreboard.h"

struct legacy {
	struct listeners listeners, status;
	struct scoreboard board;
	int lock_fd, admin_fd; /* -1: none */
};

/* The old one's side: starts the successor with all of it.  *fd brings
 * IPC_READY once it serves. */
int upgrade_start(const char *program, const char *const *args,
    const struct legacy *, pid_t *pid, int *fd, struct err *);

/* The new one's side: takes it from IPC_CHILD_FD.  A scoreboard that this
 * version cannot read is left out (board.head NULL). */
int upgrade_take(struct legacy *, struct err *);

#endif
