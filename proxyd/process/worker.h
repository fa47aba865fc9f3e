/*
 * worker.h: one worker process: takes what the master hands it, gives up its
 * privileges, and runs the HTTP engine until it is told to drain.
 */
#ifndef MUSTER_WORKER_H
#define MUSTER_WORKER_H

/* Runs; returns the exit status.  IPC_CHILD_FD is the master. */
int worker_run(void);

#endif
