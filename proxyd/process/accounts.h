/*
 * accounts.h: the counters of sites and owners on disk, so that they survive
 * a restart of the whole proxy (at most ACCOUNTS_EVERY_MS are lost).
 *
 * The file: a line "muster-accounts 2", then a line an account: kind, id,
 * requests, bytes in and out, node time in us, tunnels, six status counts,
 * requests refused by limits (not in version 1, which is read, too).
 */
#ifndef MUSTER_ACCOUNTS_H
#define MUSTER_ACCOUNTS_H

#include "proxyd/process/scoreboard.h"

#define ACCOUNTS_EVERY_MS 10000

/* Atomic, 0600. */
int accounts_save(const struct scoreboard *, const char *path, struct err *);

/* Adds what the file says; a missing file is none.  ERR_CORRUPT: it is not
 * such a file, nothing was added. */
int accounts_restore(struct scoreboard *, const char *path, struct err *);

#endif
