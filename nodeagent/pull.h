/*
 * pull.h: keeps the roster of this node fresh: asks the masters, in order,
 * at the start, each minute (with jitter), and when told; seldom once they
 * say that the node was removed.
 */
#ifndef NODEAGENT_PULL_H
#define NODEAGENT_PULL_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/err.h"

struct agent;
struct pull;

/* Told once when it holds the revision that was waited for, or why not. */
typedef void pull_fn(const struct err *why, void *arg);

struct pull *pull_new(struct agent *, struct err *);
void pull_free(struct pull *);

/* Asks now. */
void pull_now(struct pull *);

/*
 * Asks now until a roster of at least this revision is here, or every master
 * was tried.  Returns an id for pull_forget(), 0 with the err when too many
 * wait.
 */
uint64_t pull_wait(struct pull *, int64_t revision, pull_fn *, void *arg,
    struct err *);
void pull_forget(struct pull *, uint64_t id);

/* How long until the next one, after so many failures in a row. */
int64_t pull_rest_ms(unsigned n_failed, bool enrolled);

#endif
