/*
 * child.h: a child process of the master: this very program again, with one
 * end of a socket as IPC_CHILD_FD and nothing else inherited.
 */
#ifndef MUSTER_PROXYD_CHILD_H
#define MUSTER_PROXYD_CHILD_H

#include <sys/types.h>

#include "common/base/err.h"

/*
 * Starts `PROGRAM job` (PROGRAM NULL: the running binary, also when its file
 * has been replaced) with a state directory.  *fd: our end, non-blocking.
 */
int child_start(const char *program, const char *const *args, pid_t *pid,
    int *fd, struct err *);

/* "was killed by signal 9 (Killed)", "exited with status 1" */
void child_describe(int wait_status, char *buf, size_t size);

#endif
