/*
 * cert_keep.h: certificates of sites in the registry and their files in
 * custody, changed together; on a master.
 */
#ifndef CLUSTERCTL_CERT_KEEP_H
#define CLUSTERCTL_CERT_KEEP_H

#include "clusterctl/cert_ask.h"
#include "clusterctl/context.h"

/* Files first, then the registry; what nobody uses any more goes last.  The
 * key may be one that is in custody already. */
int cert_keep(struct context *, const char *site, const struct cert_answer *,
    struct err *);

/* Removes the files that no certificate uses any more: after any change that
 * may have taken one away.  What fails is said, and left to the next one. */
void cert_sweep(struct context *);

#endif
