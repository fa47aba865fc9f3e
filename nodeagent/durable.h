/*
 * durable.h: makes a file durable while the loop goes on: the kernel syncs it
 * (native AIO, Linux 4.18) and tells when it is done.  A sick disk takes
 * seconds, which the loop has not; a process for each would cost more than
 * most orders.
 */
#ifndef NODEAGENT_DURABLE_H
#define NODEAGENT_DURABLE_H

#include <stdbool.h>

#include <event2/event.h>

#include "common/base/err.h"

struct durable;

/* `done` comes from the loop, with why it failed or NULL. */
struct durable *durable_new(struct event_base *,
    void (*done)(const struct err *why, void *arg), void *arg, struct err *);
/* Waits for what is under way. */
void durable_free(struct durable *);

/* One at a time.  -1: it could not begin, and `done` will not come. */
int durable_begin(struct durable *, const char *path, struct err *);
bool durable_is_busy(const struct durable *);

#endif
