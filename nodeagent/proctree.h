/*
 * proctree.h: finds the processes of an order: its session, and those below
 * them that made a session of their own.
 */
#ifndef NODEAGENT_PROCTREE_H
#define NODEAGENT_PROCTREE_H

#include <stddef.h>
#include <sys/types.h>

/*
 * Sends a signal (0: none) to every process of the session and to every
 * descendant of one.  Returns how many there were that live: a zombie waits
 * for its parent, not for us.
 */
size_t proctree_signal(pid_t session, int sig);

#endif
