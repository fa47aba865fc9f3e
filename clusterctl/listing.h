/*
 * listing.h: which nodes a command that takes a node set is about, in
 * natural order.  Unlike the targets of an order, all of them count, also
 * those in maintenance.
 */
#ifndef CLUSTERCTL_LISTING_H
#define CLUSTERCTL_LISTING_H

#include "clusterctl/context.h"
#include "clusterctl/opts.h"
#include "common/nodeset/nodeset.h"

/*
 * The union of node sets (argv) and of the members of roles (may be NULL);
 * every node when neither is given.  nodeset_free() it.  Needs
 * NEEDS_CLUSTER.  ERR_NO_TARGET for an unknown name or role.
 */
int listing_select(const struct context *, const struct opt_list *roles,
    int argc, char *const *argv, struct nodeset **, struct err *);

#endif
