/*
 * opener.h: the process that touches the disk for a worker.
 *
 * A worker, confined, can open no file; its opener can, and nothing else: no
 * network, no program.  It answers from snapshots of the master only, so a
 * worker gone bad reaches the plain files of static sites, and no others.
 * And since it has a few threads, a disk that makes one wait makes no client
 * of the worker wait that asks for something else.
 *
 * The master starts it and says whom it becomes (process/opener_child.h); the
 * worker sends it the snapshots, and it ends when the worker does.
 */
#ifndef MUSTER_OPENER_H
#define MUSTER_OPENER_H

/* The whole process, its worker at IPC_CHILD_FD.  The exit status. */
int opener_run(void);

#endif
