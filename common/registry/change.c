/* change.c: transactions, the revision and the change log; see
 * registry.h. */
#include "common/registry/registry.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/registry/db.h"

#define CHANGES_KEPT	100000	/* rows of the change log */
#define NOTE_BUSY_MS	100	/* a daemon's loop must not stand still */
#define SERIALS_SKIPPED 1000000 /* more than are issued between backups */

/* Nested changes are save points; SQLite takes the innermost of a name. */
static const char savepoint_sql[] = "SAVEPOINT change";
static const char undo_sql[] = "ROLLBACK TO change";
static const char release_sql[] = "RELEASE change";

static int begin(struct registry *, int busy_ms, struct err *);
static int log_change(struct registry *, struct err *);
static int commit(struct registry *, struct err *);

int
registry_revision(struct registry *r, int64_t *revision, struct err *e)
{
	static const char sql[] = "SELECT revision FROM cluster";

	if (r->depth == 0 && r->n_snapshots == 0 && db_check_file(r, e) == -1)
		return -1;
	return db_int(r, e, revision, sql) == -1 ? -1 : 0;
}

int64_t
registry_last_change(const struct registry *r)
{
	return r->last_change;
}

int
registry_advance(struct registry *r, int64_t revision, struct err *e)
{
	static const char sql[] =
	    "UPDATE cluster SET revision = ?1, next_serial = next_serial + ?2 "
	    "WHERE revision < ?1";
	static const char end_tokens[] =
	    "UPDATE tokens SET expires_ms = min(expires_ms, ?)";
	int rv;

	if (registry_begin(r, e, "restored: go on behind revision %" PRId64,
		revision) == -1)
		return -1;
	rv = db_run(r, e, sql, INT(revision), INT(SERIALS_SKIPPED));
	if (rv == 0 && db_n_changed(r) > 0)
		rv = db_run(r, e, end_tokens, INT(clock_wall_ms()));
	return registry_end(r, rv, e);
}

int
registry_begin(struct registry *r, struct err *e, const char *what, ...)
{
	va_list ap;

	if (begin(r, REGISTRY_BUSY_MS, e) == -1)
		return -1;
	if (r->depth == 1) {
		va_start(ap, what);
		vsnprintf(r->what, sizeof(r->what), what, ap);
		va_end(ap);
	}
	return 0;
}

int
registry_begin_note(struct registry *r, struct err *e)
{
	return begin(r, NOTE_BUSY_MS, e);
}

int
registry_end(struct registry *r, int rv, struct err *e)
{
	assert(r->depth > 0);
	if (r->depth > 1) {
		struct err ignored;

		if (rv != 0)
			db_run(r, &ignored, undo_sql);
		if (db_run(r, rv == 0 ? e : &ignored, release_sql) == -1 &&
		    rv == 0)
			rv = -1;
		r->depth--;
		return rv;
	}
	if (rv == 0 && (log_change(r, e) == -1 || commit(r, e) == -1))
		rv = -1;
	if (rv == 0 && r->logged != 0)
		r->last_change = r->logged;
	/* A full disk may have ended the transaction already. */
	if (rv != 0 && !sqlite3_get_autocommit(r->db))
		sqlite3_exec(r->db, "ROLLBACK", NULL, NULL, NULL);
	r->depth = 0;
	return rv;
}

int
registry_snapshot(struct registry *r, struct err *e)
{
	static const char sql[] = "SELECT revision FROM cluster";
	int64_t revision;

	if (r->depth > 0 || r->n_snapshots > 0) {
		r->n_snapshots++;
		return 0;
	}
	if (db_check_file(r, e) == -1)
		return -1;
	if (sqlite3_exec(r->db, "BEGIN", NULL, NULL, NULL) != SQLITE_OK)
		return db_error(r, e);
	/* The first read is what fixes the state. */
	if (db_int(r, e, &revision, sql) == -1) {
		sqlite3_exec(r->db, "ROLLBACK", NULL, NULL, NULL);
		return -1;
	}
	r->n_snapshots = 1;
	return 0;
}

void
registry_snapshot_end(struct registry *r)
{
	assert(r->n_snapshots > 0);
	if (--r->n_snapshots == 0 && r->depth == 0)
		sqlite3_exec(r->db, "ROLLBACK", NULL, NULL, NULL);
}

int
registry_changes(struct registry *r, size_t n,
    int (*fn)(const struct change *, void *arg), void *arg, struct err *e)
{
	static const char sql[] =
	    "SELECT revision, at_ms, who, what FROM changes "
	    "ORDER BY revision DESC LIMIT ?";
	struct rows q;
	int rv;

	if (rows_open(&q, r, e, sql, INT(n)) == -1)
		return -1;
	while ((rv = rows_next(&q, e)) == 1) {
		struct change c;

		c.revision = row_int(&q);
		c.at_ms = row_int(&q);
		c.who = row_text_borrow(&q);
		c.what = row_text_borrow(&q);
		if ((rv = fn(&c, arg)) != 0)
			break;
	}
	rows_close(&q);
	return rv;
}

static int
begin(struct registry *r, int busy_ms, struct err *e)
{
	assert(r->n_snapshots == 0 || r->depth > 0);
	if (r->depth > 0) {
		/* SQLite undid all of it (a full disk), and the caller went
		 * on: a save point would now begin a transaction. */
		if (sqlite3_get_autocommit(r->db))
			return err_set(e, ERR_LOCAL,
			    "registry %s: the change was undone already",
			    r->path);
		r->depth++;
		if (db_run(r, e, savepoint_sql) == 0)
			return 0;
		r->depth--;
		return -1;
	}
	if (r->mode == REGISTRY_READ)
		return err_set(e, ERR_LOCAL,
		    "registry %s is open for reading only", r->path);
	if (db_check_file(r, e) == -1)
		return -1;
	sqlite3_busy_timeout(r->db, busy_ms);
	if (sqlite3_exec(r->db, "BEGIN IMMEDIATE", NULL, NULL, NULL) !=
	    SQLITE_OK)
		return db_error(r, e);
	r->depth = 1;
	r->logged = 0;
	r->what[0] = '\0';
	r->changes_before = sqlite3_total_changes64(r->db);
	return 0;
}

/* What changed no row is no change, and what has no words is a note. */
static int
log_change(struct registry *r, struct err *e)
{
	static const char bump[] = "UPDATE cluster SET revision = revision + 1";
	static const char log[] =
	    "INSERT INTO changes (revision, at_ms, who, what) "
	    "SELECT revision, ?, ?, ? FROM cluster";
	static const char forget[] = "DELETE FROM changes WHERE revision <= "
				     "(SELECT revision FROM cluster) - ?";

	if (r->what[0] == '\0' ||
	    sqlite3_total_changes64(r->db) == r->changes_before)
		return 0;
	if (db_run(r, e, bump) == -1 ||
	    db_run(r, e, log, INT(clock_wall_ms()), TEXT(r->actor),
		TEXT(r->what)) == -1 ||
	    registry_revision(r, &r->logged, e) == -1)
		return -1;
	return db_run(r, e, forget, INT(CHANGES_KEPT));
}

static int
commit(struct registry *r, struct err *e)
{
	if (sqlite3_exec(r->db, "COMMIT", NULL, NULL, NULL) != SQLITE_OK)
		return db_error(r, e);
	return 0;
}
