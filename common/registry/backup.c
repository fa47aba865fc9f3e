/* backup.c: a copy of the registry while it is used; see registry.h. */
#include <stdio.h>

#include "common/base/io.h"
#include "common/registry/db.h"

static int copy(struct registry *, const char *path, struct err *);
static int copy_error(sqlite3 *to, const char *path, struct err *);

int
registry_backup(struct registry *r, const char *path, struct err *e)
{
	struct io_replacement f;

	if (io_replace_begin(&f, path, e) == -1)
		return -1;
	if (copy(r, f.tmp, e) == -1) {
		io_replace_abort(&f);
		return -1;
	}
	return io_replace_commit(&f, 0600, e);
}

static int
copy(struct registry *r, const char *path, struct err *e)
{
	sqlite3_backup *b = NULL;
	sqlite3 *to = NULL;
	int rv = -1;

	if (sqlite3_open_v2(path, &to,
		SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX,
		NULL) != SQLITE_OK) {
		copy_error(to, path, e);
		goto out;
	}
	if ((b = sqlite3_backup_init(to, "main", r->db, "main")) == NULL) {
		copy_error(to, path, e);
		goto out;
	}
	/* All pages in one step: one revision, whatever others write. */
	if (sqlite3_backup_step(b, -1) != SQLITE_DONE) {
		sqlite3_backup_finish(b);
		copy_error(to, path, e);
		goto out;
	}
	if (sqlite3_backup_finish(b) != SQLITE_OK ||
	    /* One file alone, without -wal and -shm. */
	    sqlite3_exec(to, "PRAGMA journal_mode = DELETE", NULL, NULL,
		NULL) != SQLITE_OK) {
		copy_error(to, path, e);
		goto out;
	}
	rv = 0;
out:
	sqlite3_close(to);
	return rv;
}

static int
copy_error(sqlite3 *to, const char *path, struct err *e)
{
	return err_set(e, ERR_LOCAL, "cannot write the backup %.80s: %.100s",
	    path, sqlite3_errmsg(to));
}
