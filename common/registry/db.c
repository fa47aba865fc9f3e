/* db.c: see db.h. */
#include "common/registry/db.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define SUGGEST_AMONG 1000 /* names looked at for a "did you mean" */

static sqlite3_stmt *statement_get(struct registry *, const char *sql,
    bool *own, struct err *);
static int bind_all(struct registry *, sqlite3_stmt *, const struct bind *,
    struct err *);

/* What SQLite's primary result codes mean to a person. */
static const struct {
	int sqlite_code;
	int code;
	const char *text; /* behind the path */
} db_errors[] = {
	{ SQLITE_BUSY, ERR_BUSY,
	    "another program has been writing to it for too long; try again" },
	{ SQLITE_LOCKED, ERR_BUSY, "it is locked; try again" },
	{ SQLITE_FULL, ERR_LOCAL,
	    "the disk is full; nothing was changed (free some space and try "
	    "again)" },
	{ SQLITE_CORRUPT, ERR_CORRUPT,
	    "it is damaged; restore a backup (clusterctl registry backup)" },
	{ SQLITE_NOTADB, ERR_CORRUPT,
	    "it is not a registry or damaged; restore a backup (clusterctl "
	    "registry backup)" },
	{ SQLITE_READONLY, ERR_LOCAL,
	    "it cannot be written here; nothing was changed" },
	{ SQLITE_CANTOPEN, ERR_LOCAL,
	    "it cannot be opened (does it exist, and is its directory "
	    "writable?)" },
	{ SQLITE_PERM, ERR_LOCAL, "no permission" },
	{ SQLITE_NOMEM, ERR_LOCAL, "out of memory; nothing was changed" },
	{ SQLITE_IOERR, ERR_LOCAL,
	    "the disk fails to read or write it; nothing was changed" },
	{ SQLITE_CONSTRAINT, ERR_CONFLICT,
	    "the change contradicts what is there; nothing was changed" },
};

int
db_run_binds(struct registry *r, struct err *e, const char *sql,
    const struct bind *binds)
{
	struct rows q;
	int rv;

	if (rows_open_binds(&q, r, e, sql, binds) == -1)
		return -1;
	while ((rv = rows_next(&q, e)) == 1)
		continue;
	return rv;
}

int
db_n_changed(const struct registry *r)
{
	return sqlite3_changes(r->db);
}

int
db_int_binds(struct registry *r, struct err *e, int64_t *value, const char *sql,
    const struct bind *binds)
{
	struct rows q;
	int rv;

	if (rows_open_binds(&q, r, e, sql, binds) == -1)
		return -1;
	if ((rv = rows_next(&q, e)) == 1) {
		*value = row_int(&q);
		rows_close(&q);
	}
	return rv;
}

int
rows_open_binds(struct rows *q, struct registry *r, struct err *e,
    const char *sql, const struct bind *binds)
{
	*q = (struct rows){ .r = r };
	if ((q->stmt = statement_get(r, sql, &q->own, e)) == NULL)
		return -1;
	if (bind_all(r, q->stmt, binds, e) == -1) {
		rows_close(q);
		return -1;
	}
	return 0;
}

int
rows_next(struct rows *q, struct err *e)
{
	int rc = sqlite3_step(q->stmt);

	q->column = 0;
	if (rc == SQLITE_ROW)
		return 1;
	if (rc != SQLITE_DONE)
		db_error(q->r, e);
	rows_close(q);
	return rc == SQLITE_DONE ? 0 : -1;
}

void
rows_close(struct rows *q)
{
	if (q->stmt == NULL)
		return;
	if (q->own)
		sqlite3_finalize(q->stmt);
	else
		sqlite3_reset(q->stmt);
	q->stmt = NULL;
}

void
row_again(struct rows *q)
{
	q->column = 0;
}

int64_t
row_int(struct rows *q)
{
	return sqlite3_column_int64(q->stmt, q->column++);
}

const char *
row_text_borrow(struct rows *q)
{
	const unsigned char *text = sqlite3_column_text(q->stmt, q->column++);

	return text != NULL ? (const char *)text : "";
}

void
row_text(struct rows *q, char *buf, size_t size)
{
	const char *text = row_text_borrow(q);
	size_t len = strlen(text);

	if (len >= size)
		len = size - 1;
	memcpy(buf, text, len);
	buf[len] = '\0';
}

bool
row_blob(struct rows *q, void *buf, size_t size)
{
	const void *blob = sqlite3_column_blob(q->stmt, q->column);
	int n = sqlite3_column_bytes(q->stmt, q->column++);

	if (blob == NULL || (size_t)n != size)
		return false;
	memcpy(buf, blob, size);
	return true;
}

int
row_options(struct rows *q, const struct option_table *t, void *object,
    struct err *e)
{
	const char *text = row_text_borrow(q);
	json_t *o;
	int rv;

	/* What most sites have: nothing set, nothing to parse. */
	if (strcmp(text, "{}") == 0) {
		option_defaults(t, object);
		return 0;
	}
	o = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
	if (!json_is_object(o))
		rv = err_set(e, ERR_CORRUPT, "its options are no JSON object");
	else
		rv = option_from_json(t, object, o, e);
	if (rv == -1)
		e->code = ERR_CORRUPT;
	json_decref(o);
	return rv;
}

char *
db_options_text(const struct option_table *t, const void *object, struct err *e)
{
	json_t *o = option_to_json(t, object);
	char *text =
	    o != NULL ? json_dumps(o, JSON_COMPACT | JSON_SORT_KEYS) : NULL;

	json_decref(o);
	if (text == NULL)
		err_set(e, ERR_LOCAL, "out of memory");
	return text;
}

int
db_save_options(struct registry *r, struct err *e, const struct option_table *t,
    const void *object, const char *sql, struct bind id)
{
	char *text = db_options_text(t, object, e);
	int rv;

	if (text == NULL)
		return -1;
	rv = db_run(r, e, sql, id, TEXT(text));
	free(text);
	return rv;
}

int
db_error(struct registry *r, struct err *e)
{
	int rc = sqlite3_extended_errcode(r->db);

	for (size_t i = 0; i < sizeof(db_errors) / sizeof(db_errors[0]); i++)
		if (db_errors[i].sqlite_code == (rc & 0xff))
			return err_set(e, db_errors[i].code,
			    "registry %.80s: %s", r->path, db_errors[i].text);
	return err_set(e, ERR_LOCAL, "registry %.80s: %.100s", r->path,
	    sqlite3_errmsg(r->db));
}

int
db_no_such(struct registry *r, struct err *e, const char *what,
    const char *name, const char *names_sql)
{
	char(*names)[HOST_MAX_LEN + 1] = NULL;
	const char *list[SUGGEST_AMONG], *near = NULL;
	struct err ignored;
	struct rows q;
	size_t n = 0;

	names = calloc(SUGGEST_AMONG, sizeof(*names));
	if (names != NULL && rows_open(&q, r, &ignored, names_sql) == 0) {
		while (n < SUGGEST_AMONG && rows_next(&q, &ignored) == 1) {
			row_text(&q, names[n], sizeof(names[n]));
			list[n] = names[n];
			n++;
		}
		rows_close(&q);
		near = name_suggest(name, list, n);
	}
	if (near != NULL)
		err_set(e, ERR_NO_TARGET,
		    "no such %s '%.64s'; did you mean "
		    "'%.64s'?",
		    what, name, near);
	else
		err_set(e, ERR_NO_TARGET, "no such %s '%.64s'", what, name);
	free(names);
	return -1;
}

/*
 * The cached statement, or one of our own while the cached one is being
 * stepped (a walk whose callback asks the same question).
 */
static sqlite3_stmt *
statement_get(struct registry *r, const char *sql, bool *own, struct err *e)
{
	sqlite3_stmt *stmt;

	*own = false;
	for (size_t i = 0; i < r->n_statements; i++) {
		if (r->statements[i].sql != sql)
			continue;
		if (!sqlite3_stmt_busy(r->statements[i].stmt))
			return r->statements[i].stmt;
		*own = true;
		break;
	}
	if (sqlite3_prepare_v3(r->db, sql, -1, SQLITE_PREPARE_PERSISTENT, &stmt,
		NULL) != SQLITE_OK) {
		db_error(r, e);
		return NULL;
	}
	if (!*own) {
		assert(r->n_statements < DB_STATEMENTS_MAX);
		r->statements[r->n_statements].sql = sql;
		r->statements[r->n_statements++].stmt = stmt;
	}
	return stmt;
}

static int
bind_all(struct registry *r, sqlite3_stmt *stmt, const struct bind *binds,
    struct err *e)
{
	int rc = SQLITE_OK;

	for (int i = 0; rc == SQLITE_OK && binds[i].type != BIND_END; i++) {
		const struct bind *b = &binds[i];

		if (b->type == BIND_INT)
			rc = sqlite3_bind_int64(stmt, i + 1, b->number);
		else if (b->type == BIND_TEXT)
			rc = sqlite3_bind_text(stmt, i + 1, b->bytes, -1,
			    SQLITE_TRANSIENT);
		else if (b->type == BIND_BLOB)
			rc = sqlite3_bind_blob(stmt, i + 1, b->bytes,
			    (int)b->size, SQLITE_TRANSIENT);
		else
			rc = sqlite3_bind_null(stmt, i + 1);
	}
	return rc == SQLITE_OK ? 0 : db_error(r, e);
}
