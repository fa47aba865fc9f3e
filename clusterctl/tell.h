/*
 * tell.h: after a change that must not wait (somebody lost his rights), every
 * agent is told to fetch the roster now.
 */
#ifndef CLUSTERCTL_TELL_H
#define CLUSTERCTL_TELL_H

#include "clusterctl/context.h"

/*
 * Needs NEEDS_REGISTRY and NEEDS_CLUSTER.  Says which nodes could not be
 * told; they learn it when they next reach a master.  Returns the exit
 * status: 0, or that of the worst of them.
 */
int tell_everybody(struct context *);

#endif
