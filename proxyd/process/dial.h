/*
 * dial.h: a socket that connects to a node, over TCP or to a Unix socket: for
 * the workers' requests and for the master's checks.
 */
#ifndef MUSTER_DIAL_H
#define MUSTER_DIAL_H

#include <sys/types.h>
#include <stdbool.h>

#include "common/base/err.h"
#include "proxyd/process/snapshot.h"

/*
 * Non-blocking, close-on-exec, perhaps not through yet; -1 and errno.  EAGAIN:
 * a Unix socket with more waiting than it takes, where TCP would wait.
 */
int dial_node(const struct snapshot *, const struct snap_node *);

/* Both ends of a connection, with len 0 where they are no IP addresses.
 * NULL: that one does not matter. */
void dial_ends(int fd, struct addr *ours, struct addr *theirs);

/* An account that may connect to less than we may. */
struct dialer {
	uid_t uid; /* 0: we dial as ourselves */
	gid_t gid;
};

/* An empty name, one that does not exist, or not being root: as ourselves. */
void dialer_init(struct dialer *, const char *account);

/* As that account: a Unix socket that it may not connect to is refused,
 * though root could. */
int dial_node_as(const struct dialer *, const struct snapshot *,
    const struct snap_node *);

#endif
