/*
 * founding.h: a new cluster in a state directory: authority, first master,
 * first operator, registry, roster.  All or nothing: the registry is made
 * under another name and renamed into its place last.  Until then a failed
 * or killed founding can be begun again; it clears what the other one left.
 */
#ifndef CLUSTERCTL_FOUNDING_H
#define CLUSTERCTL_FOUNDING_H

#include "common/base/addr.h"
#include "common/base/err.h"
#include "common/base/state.h"

#define FOUNDING_OPERATOR "admin"

struct founding {
	const char *cluster, *node; /* names, checked */
	struct addr addr;	    /* where the node's agent will listen */
	const char *passphrase;	    /* over the authority key; NULL: none */
};

/* ERR_CONFLICT: the directory has a registry, or keys of another cluster;
 * ERR_BUSY: another founding is under way. */
int founding_perform(const struct state *, const struct founding *,
    struct err *);

#endif
