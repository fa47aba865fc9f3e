/*
 * order_log.h: the operator's side of the audit log: one line before an
 * order leaves (who, from where, what as typed, which nodes) and one with
 * its result.  An order that cannot be noted is not given.
 */
#ifndef CLUSTERCTL_ORDER_LOG_H
#define CLUSTERCTL_ORDER_LOG_H

#include "clusterctl/fanout.h"
#include "clusterctl/targets.h"
#include "common/base/uuid.h"

struct order {
	char id[UUID_LEN + 1]; /* ties both lines together */
};

int order_log_begin(struct context *, const char *verb, const struct targets *,
    struct order *, struct err *);

/* A failure to note the result is only remarked: the order was carried
 * out. */
void order_log_end(struct context *, const struct order *, struct fanout *,
    int exit_status);

/* The registry was changed by this command line; also only remarked. */
void order_log_change(struct context *, int64_t revision);

#endif
