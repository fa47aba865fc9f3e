/*
 * ask.h: one short question to one or many nodes: a request, then a REPLY or
 * an ERROR (ping, status, sync, renew, roster).  Built on the fan-out.
 */
#ifndef CLUSTERCTL_ASK_H
#define CLUSTERCTL_ASK_H

#include <jansson.h>

#include "clusterctl/fanout.h"

#define ASK_CONNECT_MS 5000
#define ASK_LIMIT_MS   10000

struct ask {
	json_t *request;	      /* {"verb": ...}; borrowed */
	int64_t connect_ms, limit_ms; /* 0: the defaults above */
	bool show_progress;
	/* Bytes of FILE records before the reply; NULL: none are expected. */
	int (*file)(const void *bytes, size_t size, void *arg, struct err *);
	void *file_arg;
	/* Once for each node that was asked: reply (borrowed) when the outcome is OK, else
	 * NULL, and task->result says why.  NULL: not interested. */
	void (*answer)(const struct task *, json_t *reply, void *arg);
	void *arg;
};

/*
 * Asks them all.  *status (may be NULL) is the exit status of the worst
 * outcome.  -1 only when the run as a whole failed.
 */
int ask_nodes(struct context *, const struct dir_node *const *nodes, size_t n,
    const struct ask *, int *status, struct err *);

/* Asks one; *reply is the caller's to decref (NULL: not wanted). */
int ask_node(struct context *, const struct dir_node *, const struct ask *,
    json_t **reply, struct err *);

#endif
