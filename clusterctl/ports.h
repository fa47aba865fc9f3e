/*
 * ports.h: --port ROLE=PORT of `node add` and `node set`.
 */
#ifndef CLUSTERCTL_PORTS_H
#define CLUSTERCTL_PORTS_H

#include "clusterctl/opts.h"
#include "common/base/err.h"
#include "common/registry/registry.h"

/* Sets each; PORT "role" is the role's own again. */
int ports_apply(struct registry *, const char *node, const struct opt_list *,
    struct err *);

#endif
