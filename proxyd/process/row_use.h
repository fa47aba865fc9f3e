/*
 * row_use.h: which rows of the scoreboard the newest snapshot names, so that
 * those of removed nodes and sites can be given back once every worker has
 * switched to it.  The follower's.
 */
#ifndef MUSTER_ROW_USE_H
#define MUSTER_ROW_USE_H

#include "proxyd/process/scoreboard.h"

struct row_use;

struct row_use *row_use_new(struct scoreboard *, struct err *);
void row_use_free(struct row_use *);

/* Before a compilation; then each row that it names. */
void row_use_begin(struct row_use *);
void row_use_target(struct row_use *, uint32_t row);
void row_use_account(struct row_use *, uint32_t row);

/* Gives back what nothing names, if all workers are at this revision and
 * hold nothing there; what is held is left for the next time. */
void row_use_sweep(struct row_use *, int64_t revision);

#endif
