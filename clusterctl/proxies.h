/*
 * proxies.h: what the proxies of the cluster say of their traffic: the one
 * of this machine through its admin socket (proxyd(8)), those of masters and
 * of nodes with the role proxy through their agents.
 */
#ifndef CLUSTERCTL_PROXIES_H
#define CLUSTERCTL_PROXIES_H

#include <jansson.h>

#include "clusterctl/context.h"

struct proxies {
	size_t n;	 /* that answered */
	size_t n_silent; /* that could not be asked */
	bool interrupted;
};

/*
 * Asks each the same question (borrowed; {"ask": ...}) and calls answer()
 * with what it says (borrowed).  A machine where no proxy runs is passed
 * over; one that cannot be asked gets a remark unless `quiet`.  After
 * context_need(NEEDS_CLUSTER).  -1 only when the run as a whole failed.
 */
int proxies_ask(struct context *, json_t *question, bool quiet,
    void (*answer)(const char *proxy, json_t *, void *arg), void *arg,
    struct proxies *, struct err *);

/* "no proxy runs ...", when none has answered: -1; else the exit status. */
int proxies_status(const struct proxies *, struct err *);

#endif
