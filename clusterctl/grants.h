/*
 * grants.h: what an operator can be allowed to do.
 */
#ifndef CLUSTERCTL_GRANTS_H
#define CLUSTERCTL_GRANTS_H

#include "clusterctl/opts.h"
#include "common/base/err.h"
#include "common/registry/registry.h"

/* Whether each is VERB or VERB:ROLE with a verb that can be granted (did you
 * mean ...) and a role that exists. */
int grants_check(struct registry *, const struct opt_list *, struct err *);

#endif
