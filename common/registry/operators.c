/* operators.c: see operators.h. */
#include "common/registry/operators.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "common/base/clock.h"
#include "common/registry/db.h"
#include "common/registry/join.h"

#define OPERATOR_SELECT                                                       \
	"SELECT o.name, o.grants, o.until_s, o.key, o.created_ms, c.serial, " \
	"c.not_after_s FROM operators o LEFT JOIN certs c ON c.serial = "     \
	"(SELECT max(serial) FROM certs WHERE operator_id = o.id AND "        \
	"revoked_ms IS NULL)"

static int row_operator(struct rows *, struct operator_row *, struct err *);
static int row_grants(const char *text, struct operator_row *, struct err *);
static char *grants_text(const char *const *grants, size_t n, struct err *);

int
operators_get(struct registry *r, const char *name, struct operator_row *op,
    struct err *e)
{
	static const char sql[] = OPERATOR_SELECT " WHERE o.name = ?";
	static const char names[] = "SELECT name FROM operators ORDER BY name";
	struct operator_row out;
	struct rows q;
	int rv;

	if (rows_open(&q, r, e, sql, TEXT(name)) == -1)
		return -1;
	if ((rv = rows_next(&q, e)) == 1)
		rv = row_operator(&q, &out, e);
	else if (rv == 0)
		rv = db_no_such(r, e, "operator", name, names);
	rows_close(&q);
	if (rv == 0)
		*op = out;
	return rv;
}

int
operators_each(struct registry *r, operator_fn *fn, void *arg, struct err *e)
{
	static const char sql[] = OPERATOR_SELECT " ORDER BY o.name";
	struct operator_row op;
	struct rows q;
	int rv;

	if (rows_open(&q, r, e, sql) == -1)
		return -1;
	while ((rv = rows_next(&q, e)) == 1)
		if ((rv = row_operator(&q, &op, e)) != 0 ||
		    (rv = fn(&op, arg)) != 0)
			break;
	rows_close(&q);
	return rv;
}

int
operators_add(struct registry *r, const char *name, const char *const *grants,
    size_t n_grants, int64_t until_s, struct err *e)
{
	static const char sql[] =
	    "INSERT INTO operators (name, grants, until_s, created_ms) "
	    "VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING";
	char *text;
	int rv;

	if (name_check("operator name", name, e) == -1 ||
	    (text = grants_text(grants, n_grants, e)) == NULL)
		return -1;
	if ((rv = registry_begin(r, e, "add operator %s %.120s", name, text)) ==
	    0) {
		rv = db_run(r, e, sql, TEXT(name), TEXT(text), INT(until_s),
		    INT(clock_wall_ms()));
		if (rv == 0 && db_n_changed(r) == 0)
			rv = err_set(e, ERR_CONFLICT,
			    "operator %s exists already", name);
		rv = registry_end(r, rv, e);
	}
	free(text);
	return rv;
}

int
operators_set(struct registry *r, const char *name, const char *const *grants,
    size_t n_grants, int64_t until_s, struct err *e)
{
	static const char sql[] =
	    "UPDATE operators SET grants = ?2, until_s = ?3 WHERE name = ?1 "
	    "AND (grants <> ?2 OR until_s <> ?3)";
	struct operator_row op;
	char *text;
	int rv;

	if ((text = grants_text(grants, n_grants, e)) == NULL)
		return -1;
	if ((rv = registry_begin(r, e, "set operator %s %.120s", name, text)) ==
	    0) {
		rv = operators_get(r, name, &op, e);
		if (rv == 0)
			rv = db_run(r, e, sql, TEXT(name), TEXT(text),
			    INT(until_s));
		rv = registry_end(r, rv, e);
	}
	free(text);
	return rv;
}

int
operators_check_last(struct registry *r, const char *name, struct err *e)
{
	static const char sql[] =
	    "SELECT max(name <> ?1) FROM operators, json_each(grants) WHERE "
	    "value = '*' AND (until_s = 0 OR until_s > ?2) HAVING "
	    "max(name = ?1)";
	int64_t other;
	int rv =
	    db_int(r, e, &other, sql, TEXT(name), INT(clock_wall_ms() / 1000));

	if (rv == 1 && !other)
		return err_set(e, ERR_USAGE,
		    "%s is the only operator who may do everything; add "
		    "another one first, with --grant '*'",
		    name);
	return rv == -1 ? -1 : 0;
}

int
operators_count_full(struct registry *r, int64_t *n, struct err *e)
{
	static const char sql[] =
	    "SELECT count(*) FROM operators, json_each(grants) WHERE "
	    "value = '*' AND (until_s = 0 OR until_s > ?)";

	return db_int(r, e, n, sql, INT(clock_wall_ms() / 1000)) == -1 ? -1 : 0;
}

int
operators_revoke(struct registry *r, const char *name, struct err *e)
{
	static const char spend[] =
	    "UPDATE tokens SET expires_ms = min(expires_ms, ?) "
	    "WHERE kind = 'operator' AND name = ?";
	static const char sql[] = "DELETE FROM operators WHERE name = ?";
	int64_t now_ms = clock_wall_ms();
	struct operator_row op;
	int rv;

	if (registry_begin(r, e, "revoke operator %s", name) == -1)
		return -1;
	rv = operators_get(r, name, &op, e);
	if (rv == 0)
		rv = operator_forget_key(r, name, e);
	if (rv == 0)
		rv = db_run(r, e, spend, INT(now_ms), TEXT(name));
	if (rv == 0)
		rv = db_run(r, e, sql, TEXT(name));
	return registry_end(r, rv, e);
}

int
operator_forget_key(struct registry *r, const char *name, struct err *e)
{
	static const char revoke[] =
	    "UPDATE certs SET revoked_ms = ? WHERE revoked_ms IS NULL AND "
	    "operator_id = (SELECT id FROM operators WHERE name = ?)";
	static const char sql[] =
	    "UPDATE operators SET key = NULL WHERE name = ?";

	if (db_run(r, e, revoke, INT(clock_wall_ms()), TEXT(name)) == -1)
		return -1;
	return db_run(r, e, sql, TEXT(name));
}

static int
row_operator(struct rows *q, struct operator_row *op, struct err *e)
{
	*op = (struct operator_row){ .n_grants = 0 };
	row_text(q, op->name, sizeof(op->name));
	if (row_grants(row_text_borrow(q), op, e) == -1)
		return -1;
	op->until_s = row_int(q);
	op->has_key = row_blob(q, op->key, sizeof(op->key));
	op->created_ms = row_int(q);
	op->serial = (uint64_t)row_int(q);
	op->cert_not_after_s = row_int(q);
	return 0;
}

static int
row_grants(const char *text, struct operator_row *op, struct err *e)
{
	json_t *list = json_loads(text, 0, NULL), *item;
	size_t i;
	int rv = json_is_array(list) ? 0 : -1;

	json_array_foreach (list, i, item) {
		const char *grant = json_string_value(item);

		if (grant == NULL || op->n_grants == GRANTS_MAX ||
		    grant_check(grant, e) == -1) {
			rv = -1;
			break;
		}
		snprintf(op->grants[op->n_grants++], GRANT_LEN + 1, "%s",
		    grant);
	}
	json_decref(list);
	if (rv == -1)
		err_set(e, ERR_CORRUPT, "operator %s: damaged grants",
		    op->name);
	return rv;
}

/* As a JSON array, malloc'ed. */
static char *
grants_text(const char *const *grants, size_t n, struct err *e)
{
	json_t *list = NULL;
	char *text = NULL;

	if (n == 0 || n > GRANTS_MAX) {
		err_set(e, ERR_USAGE, "an operator has 1 to %d grants",
		    GRANTS_MAX);
		return NULL;
	}
	if ((list = json_array()) == NULL)
		goto nomem;
	for (size_t i = 0; i < n; i++) {
		if (grant_check(grants[i], e) == -1)
			goto out;
		if (json_array_append_new(list, json_string(grants[i])) == -1)
			goto nomem;
	}
	if ((text = json_dumps(list, JSON_COMPACT)) == NULL)
		goto nomem;
	if (strlen(text) > GRANTS_LEN) {
		err_set(e, ERR_USAGE,
		    "the grants are too long for a certificate (%zu bytes, "
		    "at most %d); grant a verb on all roles, or make a role "
		    "of its own",
		    strlen(text), GRANTS_LEN);
		free(text);
		text = NULL;
	}
	goto out;
nomem:
	err_set(e, ERR_LOCAL, "out of memory");
out:
	json_decref(list);
	return text;
}
