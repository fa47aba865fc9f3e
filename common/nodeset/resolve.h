/*
 * resolve.h: the operands of an expression against what the cluster knows.
 * Only for expr.c.
 */
#ifndef MUSTER_RESOLVE_H
#define MUSTER_RESOLVE_H

#include "common/nodeset/nodeset.h"

struct resolve {
	const struct nodeset_resolver *resolver;
	struct nodeset *known; /* every node; NULL before it is needed */
};

void resolve_fini(struct resolve *);

/* Adds to *nodes the nodes of all these roles. */
int resolve_roles(struct resolve *, const struct nodeset *roles,
    struct nodeset *nodes, struct err *);

/* Adds every node. */
int resolve_all(struct resolve *, struct nodeset *nodes, struct err *);

/* Adds the nodes that match one of the masks. */
int resolve_masks(struct resolve *, const struct nodeset *masks,
    struct nodeset *nodes, struct err *);

/* Adds these names if they are known; addresses give way to the names of
 * their nodes.  `excluded` only shapes the sentence. */
int resolve_names(struct resolve *, const struct nodeset *names, bool excluded,
    struct nodeset *nodes, struct err *);

#endif
