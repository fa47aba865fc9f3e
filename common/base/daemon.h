/*
 * daemon.h: what both daemons do alike: signals, the pid lock, telling the
 * parent that they are ready.
 */
#ifndef MUSTER_DAEMON_H
#define MUSTER_DAEMON_H

#include "common/base/err.h"

/* Ignores SIGPIPE, sets umask 077, opens 0-2 if they are closed, and raises
 * the descriptor limit to the hard limit. */
void daemon_prepare(void);

/* Undoes it for a child that is about to exec: signal mask and handlers. */
void daemon_child_signals(void);

/* Takes the lock file for life (flock, with our pid inside).  ERR_BUSY names
 * the pid that holds it.  *fd stays open. */
int daemon_lock(const char *path, int *fd, struct err *);

/* Writes our pid into a lock that was handed to us. */
void daemon_lock_pid(int fd);

/* Tells systemd ($NOTIFY_SOCKET), e.g. "READY=1". */
void daemon_notify(const char *state);

/* READY=1 to systemd, and "ready\n" to ready_fd (unless -1), which is
 * closed. */
void daemon_ready(int ready_fd);

/* MAINPID= to systemd: after an upgrade the service is this process. */
void daemon_main_pid(void);

#endif
