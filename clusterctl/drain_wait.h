/*
 * drain_wait.h: waits until no proxy has a request under way at nodes that
 * were drained, or took out of service.
 */
#ifndef CLUSTERCTL_DRAIN_WAIT_H
#define CLUSTERCTL_DRAIN_WAIT_H

#include "clusterctl/context.h"
#include "common/nodeset/nodeset.h"

/*
 * A proxy counts only once all its workers know the revision.  ERR_TIMEOUT:
 * at the deadline something is still active, and what.  Returns the exit
 * status, or -1.
 */
int drain_wait(struct context *, const struct nodeset *, int64_t revision,
    int64_t deadline_ms, struct err *);

#endif
