/*
 * db.h: the typed layer between common/registry and SQLite, private to this
 * folder: statements are prepared once and cached by their text's address
 * (so write them as constants), values are bound and read by type.
 */
#ifndef MUSTER_DB_H
#define MUSTER_DB_H

#include <sys/types.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sqlite3.h>

#include "common/base/name.h"
#include "common/base/uuid.h"
#include "common/registry/option.h"
#include "common/registry/registry.h"

#define DB_STATEMENTS_MAX 160
#define DB_WHAT_LEN	  200

struct registry {
	sqlite3 *db;
	dev_t dev; /* of the file that is open */
	ino_t ino;
	enum registry_mode mode;
	char path[PATH_MAX];
	char cluster_uuid[UUID_LEN + 1];
	char cluster_name[NAME_MAX_LEN + 1];
	char actor[DB_WHAT_LEN + 1];
	char what[DB_WHAT_LEN + 1]; /* of the open change; "": a note */
	unsigned depth;		    /* of nested changes */
	unsigned n_snapshots;
	int64_t changes_before; /* sqlite3_total_changes64 at its begin */
	int64_t logged;		/* revision of the open change; 0: none yet */
	int64_t last_change;	/* of the last one that was committed */
	size_t n_statements;
	struct {
		const char *sql;
		sqlite3_stmt *stmt;
	} statements[DB_STATEMENTS_MAX];
};

/* ---- values ----------------------------------------------------------- */

enum bind_type { BIND_END, BIND_NULL, BIND_INT, BIND_TEXT, BIND_BLOB };

struct bind {
	enum bind_type type;
	int64_t number;
	const void *bytes;
	size_t size;
};

#define INT(n)	((struct bind){ .type = BIND_INT, .number = (int64_t)(n) })
#define TEXT(s) ((struct bind){ .type = BIND_TEXT, .bytes = (s) })
#define BLOB(p, n) \
	((struct bind){ .type = BIND_BLOB, .bytes = (p), .size = (n) })
#define BLOB_IF(c, p, n) \
	((struct bind){ (c) ? BIND_BLOB : BIND_NULL, 0, (p), (n) })
#define BINDS_MAX  31 /* the last one is BIND_END, which is zero */
#define BINDS(...) ((const struct bind[BINDS_MAX + 1]){ __VA_ARGS__ })

/* ---- statements ------------------------------------------------------- */

/* A statement without rows, e.g. db_run(r, e, SQL, TEXT(name), INT(3)). */
#define db_run(r, e, sql, ...) db_run_binds(r, e, sql, BINDS(__VA_ARGS__))
int db_run_binds(struct registry *, struct err *, const char *sql,
    const struct bind *);

/* How many rows the last db_run() inserted, changed or removed. */
int db_n_changed(const struct registry *);

/* The first column of the first row as a number.  1, 0 (no row; *value
 * stands) or -1. */
#define db_int(r, e, value, sql, ...) \
	db_int_binds(r, e, value, sql, BINDS(__VA_ARGS__))
int db_int_binds(struct registry *, struct err *, int64_t *value,
    const char *sql, const struct bind *);

/*
 * Rows.  rows_next() is 1 with a row, 0 behind the last, -1 on error; at 0
 * and -1 the rows are closed.  Leave earlier with rows_close().  The readers
 * take the columns one after another.
 */
struct rows {
	struct registry *r;
	sqlite3_stmt *stmt;
	bool own; /* not in the cache: in use there, finalised at the end */
	int column;
};

#define rows_open(q, r, e, sql, ...) \
	rows_open_binds(q, r, e, sql, BINDS(__VA_ARGS__))
int rows_open_binds(struct rows *, struct registry *, struct err *,
    const char *sql, const struct bind *);
int rows_next(struct rows *, struct err *);
void rows_close(struct rows *);

/* Reads the row under the cursor from its first column on once more. */
void row_again(struct rows *);
int64_t row_int(struct rows *);
void row_text(struct rows *, char *buf, size_t size); /* cut to fit */
const char *row_text_borrow(struct rows *);	      /* until rows_next() */
/* Whether it was there (not NULL) with exactly this size. */
bool row_blob(struct rows *, void *buf, size_t size);

/* ---- options, kept as JSON -------------------------------------------- */

/* The next column into the fields of an object.  ERR_CORRUPT. */
int row_options(struct rows *, const struct option_table *, void *object,
    struct err *);
/* The options of an object as what the column holds; malloc'ed. */
char *db_options_text(const struct option_table *, const void *object,
    struct err *);
/* Runs an UPDATE whose ?1 is the object and ?2 its options. */
int db_save_options(struct registry *, struct err *,
    const struct option_table *, const void *object, const char *sql,
    struct bind id);

/* ---- transactions, errors --------------------------------------------- */

/* Whether the path still leads to the file that is open: what is written to
 * a file that was removed or replaced is lost.  ERR_LOCAL otherwise. */
int db_check_file(struct registry *, struct err *);

/* The handle's last error as a sentence.  Returns -1. */
int db_error(struct registry *, struct err *);

/* "no such WHAT 'name'", with a "did you mean" among the first column of
 * sql.  Returns -1, ERR_NO_TARGET. */
int db_no_such(struct registry *, struct err *, const char *what,
    const char *name, const char *names_sql);

/* Brings the schema up to date, each migration in its own transaction. */
int db_migrate(struct registry *, struct err *);
/* The schema version this build knows. */
int db_schema_version(void);

#endif
