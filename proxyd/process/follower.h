/*
 * follower.h: the child that follows the registry (or roster): it looks for
 * a new revision, compiles it and hands the snapshot to the master.
 *
 * A process of its own, so that a large, locked or damaged registry never
 * stops the master's health checks or the workers.  What cannot be read is
 * said once, and the last good snapshot stays in force.
 */
#ifndef MUSTER_FOLLOWER_H
#define MUSTER_FOLLOWER_H

#include "common/base/state.h"

/* Runs until the master goes away; returns the exit status.  Its first
 * message is the scoreboard, from the master. */
int follower_run(const struct state *);

#endif
