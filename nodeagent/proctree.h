/*
 * proctree.h: finds the processes of an order: its session, those below them
 * that made a session of their own, and the orphans of either.
 */
#ifndef NODEAGENT_PROCTREE_H
#define NODEAGENT_PROCTREE_H

#include <stddef.h>
#include <sys/types.h>

/* From now on a process below us that loses its parent becomes our child,
 * not init's, so that proctree_signal() finds it. */
void proctree_adopt(void);

/*
 * Sends a signal (0: none) to every process of the session, to every
 * descendant of one, and to the adopted ones that have `mark` (NAME=VALUE;
 * "": none) in the environment which they were started with.  Returns how
 * many there were that live: a zombie waits for its parent, not for us.
 */
size_t proctree_signal(pid_t session, const char *mark, int sig);

#endif
