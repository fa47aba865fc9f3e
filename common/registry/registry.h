/*
 * registry.h: the one source of truth, an SQLite database on the masters:
 * opening, making, and changing it.  What is in it: nodes.h, roles.h,
 * sites.h, operators.h, tokens.h, certs.h, settings.h.
 *
 * Every change is one transaction that bumps the revision and leaves a row
 * in the change log.  Changes nest: inside an open change each function joins
 * it, and one that fails undoes only its own part.  A handle is never carried
 * across fork(2), and nothing else may open the database file (closing it
 * would drop SQLite's locks).
 */
#ifndef MUSTER_REGISTRY_H
#define MUSTER_REGISTRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

#define REGISTRY_BUSY_MS 10000 /* waits so long for another writer */

enum registry_mode { REGISTRY_READ, REGISTRY_WRITE };

struct registry;

/*
 * Makes a new registry (0600 from its first instant, also -wal and -shm) with
 * the predefined roles, and opens it for writing.  An existing file is
 * refused.  NULL on failure, and nothing is left.
 */
struct registry *registry_create(const char *path, const char *cluster_name,
    struct err *);

/*
 * Opens an existing one; REGISTRY_WRITE brings an older schema up to date.
 * NULL and ERR_VERSION: written by a newer version; ERR_CORRUPT: not a
 * registry or damaged; ERR_BUSY: another writer held it too long; ERR_LOCAL:
 * anything else (missing, no permission, disk full).
 */
struct registry *registry_open(const char *path, enum registry_mode,
    struct err *);
void registry_close(struct registry *);

/* Borrowed for the life of the handle. */
const char *registry_cluster_uuid(const struct registry *);
const char *registry_cluster_name(const struct registry *);

/* The number of the last change.  Cheap (microseconds): fit for a poll.  As
 * with changes and snapshots, ERR_LOCAL when the file was removed or replaced
 * since it was opened. */
int registry_revision(struct registry *, int64_t *revision, struct err *);

/* The revision of this handle's own last change; 0: it made none. */
int64_t registry_last_change(const struct registry *);

/*
 * For a registry that was restored from a backup: its next revision is above
 * `revision`, which nodes have seen already, its next serial above any that
 * was issued since, and its open tokens end, as some were used since.  No
 * change when it is further on.
 */
int registry_advance(struct registry *, int64_t revision, struct err *);

/* Who the following changes are logged for ("operator admin"). */
void registry_set_actor(struct registry *, const char *who);

/*
 * One change.  `what` says it as a person would ("add node web01"); only the
 * outermost change's words are logged.  Each begun change is ended exactly
 * once: registry_end() commits when rv is 0, undoes otherwise, and returns
 * rv, or -1 when the commit fails (then all is undone).
 */
int registry_begin(struct registry *, struct err *, const char *what, ...)
    PRINTF(3, 4);
int registry_end(struct registry *, int rv, struct err *);

/* The same for what is kept beside the configuration (who was seen): no
 * revision and no row in the change log, and it hardly waits for another
 * writer. */
int registry_begin_note(struct registry *, struct err *);

/* Several reads that see one state, whatever others write meanwhile.
 * Nests. */
int registry_snapshot(struct registry *, struct err *);
void registry_snapshot_end(struct registry *);

/* The last `n` changes, newest first.  Stops when fn returns non-zero, and
 * returns that. */
struct change {
	int64_t revision, at_ms;
	const char *who, *what;
};
int registry_changes(struct registry *, size_t n,
    int (*fn)(const struct change *, void *arg), void *arg, struct err *);

/*
 * Looks for damage: SQLite's own checks, then the rules that the tables
 * cannot express.  Tells each finding as a sentence; 0 and *n_found = 0:
 * sound.
 */
int registry_check(struct registry *,
    void (*tell)(const char *sentence, void *arg), void *arg, size_t *n_found,
    struct err *);

/* A copy at one revision, while others write; 0600, atomic, replaces `path`
 * only once it is whole. */
int registry_backup(struct registry *, const char *path, struct err *);

#endif
