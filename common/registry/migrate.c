/* migrate.c: the numbered schema files of schema/, built in; see db.h. */
#include "common/registry/db.h"

#include <stdio.h>

#include "common/base/io.h"

static const struct {
	const char *file, *sql;
} migrations[] = {
#include "schema_sql.h"
};

static int migrate_one(struct registry *, int to, struct err *);

int
db_schema_version(void)
{
	return (int)nitems(migrations);
}

int
db_migrate(struct registry *r, struct err *e)
{
	for (;;) {
		int64_t version = 0;

		if (db_int(r, e, &version, "PRAGMA user_version") == -1)
			return -1;
		if (version >= db_schema_version())
			return 0;
		if (migrate_one(r, (int)version + 1, e) == -1)
			return -1;
	}
}

/* From version to-1.  Another process may have been faster: looked up again
 * under the write lock. */
static int
migrate_one(struct registry *r, int to, struct err *e)
{
	int64_t version = 0;
	char pragma[40];
	int rc;

	snprintf(pragma, sizeof(pragma), "PRAGMA user_version = %d", to);
	if (sqlite3_exec(r->db, "BEGIN IMMEDIATE", NULL, NULL, NULL) !=
	    SQLITE_OK)
		return db_error(r, e);
	if (db_int(r, e, &version, "PRAGMA user_version") == -1)
		goto undo;
	if (version < to) {
		rc = sqlite3_exec(r->db, migrations[to - 1].sql, NULL, NULL,
		    NULL);
		if (rc == SQLITE_OK)
			rc = sqlite3_exec(r->db, pragma, NULL, NULL, NULL);
		if (rc != SQLITE_OK) {
			db_error(r, e);
			err_wrap(e, "%s", migrations[to - 1].file);
			goto undo;
		}
	}
	if (sqlite3_exec(r->db, "COMMIT", NULL, NULL, NULL) == SQLITE_OK)
		return 0;
	db_error(r, e);
undo:
	if (!sqlite3_get_autocommit(r->db))
		sqlite3_exec(r->db, "ROLLBACK", NULL, NULL, NULL);
	return -1;
}
