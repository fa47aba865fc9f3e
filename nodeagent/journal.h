/*
 * journal.h: the node's audit log (audit.h): each order when it begins and
 * when it ends, and each that was denied.
 *
 * An order does not wait for the disk: what was written is made durable
 * within a second (durable.h).
 */
#ifndef NODEAGENT_JOURNAL_H
#define NODEAGENT_JOURNAL_H

#include <jansson.h>

#include "common/base/err.h"

#define JOURNAL_ORDER_LEN 16

struct agent;
struct journal;
struct session;

struct journal *journal_new(struct agent *, struct err *);
void journal_free(struct journal *); /* what is unsynced is synced first */

/* Gives the order its id. */
void journal_begin(struct journal *, const struct session *, const char *verb,
    json_t *request, char order[JOURNAL_ORDER_LEN + 1]);

/* How it ended: the fields of an EXIT record, an err, or both NULL: well. */
void journal_end(struct journal *, const char *order, json_t *how,
    const struct err *);

/* Its client went away; journal_end() follows if it has to be stopped. */
void journal_lost(struct journal *, const char *order);

/* What is begun and ended at once; the name of whom it was about is taken
 * from `about`. */
void journal_note(struct journal *, const struct session *, const char *verb,
    json_t *about);

void journal_denied(struct journal *, const struct session *, const char *verb,
    const struct err *);

#endif
