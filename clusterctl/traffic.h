/*
 * traffic.h: the nodes as the proxies see them: state, requests, latency,
 * one row a node, role and proxy.
 */
#ifndef CLUSTERCTL_TRAFFIC_H
#define CLUSTERCTL_TRAFFIC_H

#include "clusterctl/context.h"
#include "clusterctl/proxies.h"

/* Shows it, under an empty line when `below` another table; shows nothing,
 * and says nothing when `quiet`, where no proxy runs. */
int traffic_show(struct context *, bool below, bool quiet, struct proxies *,
    struct err *);

#endif
