/* tokens.c: see tokens.h; joining with one is in join.c. */
#include "common/registry/tokens.h"

#include <stdio.h>
#include <string.h>

#include <sodium.h>

#include "common/base/clock.h"
#include "common/base/io.h"
#include "common/registry/db.h"
#include "common/registry/roles.h"

#define TOKEN_KEPT_MS (400LL * 86400000) /* spent ones are listed so long */

#define TOKEN_COLUMNS                                              \
	"id, psk, kind, name, from_cidr, uses, used, created_ms, " \
	"expires_ms, approve"

static int check_new(struct registry *, const struct token_row *, struct err *);
static int insert(struct registry *, const struct token_row *, struct err *);
static int prune(struct registry *, int64_t now_ms, struct err *);
static void row_token(struct rows *, struct token_row *);
static int load_roles(struct registry *, struct token_row *, struct err *);

static const char *const kind_words[] = {
	[HOLDER_NODE] = "node",
	[HOLDER_OPERATOR] = "operator",
};

int
tokens_add(struct registry *r, const struct token_row *t, struct err *e)
{
	static const char add_role[] =
	    "INSERT INTO token_roles (token_id, role) VALUES (?, ?) "
	    "ON CONFLICT DO NOTHING";
	int rv;

	if (registry_begin(r, e, "add token for %s %s", kind_words[t->kind],
		t->name[0] != '\0' ? t->name : "(any name)") == -1)
		return -1;
	rv = check_new(r, t, e);
	if (rv == 0)
		rv = prune(r, t->created_ms, e);
	if (rv == 0)
		rv = insert(r, t, e);
	for (size_t i = 0; rv == 0 && i < t->n_roles; i++)
		rv = db_run(r, e, add_role, BLOB(t->id, sizeof(t->id)),
		    TEXT(t->roles[i]));
	return registry_end(r, rv, e);
}

int
tokens_get(struct registry *r, const uint8_t id[TOKEN_ID_SIZE],
    struct token_row *t, struct err *e)
{
	static const char sql[] =
	    "SELECT " TOKEN_COLUMNS " FROM tokens WHERE id = ?";
	struct token_row out;
	struct rows q;
	int rv;

	if (rows_open(&q, r, e, sql, BLOB(id, TOKEN_ID_SIZE)) == -1)
		return -1;
	if ((rv = rows_next(&q, e)) != 1)
		return rv == 0 ? err_set(e, ERR_STRANGER,
				     "this token is not known here; ask for "
				     "a new one (clusterctl enroll)") :
				 -1;
	row_token(&q, &out);
	rows_close(&q);
	if (load_roles(r, &out, e) == -1)
		return -1;
	*t = out;
	return 0;
}

int
tokens_each(struct registry *r, token_fn *fn, void *arg, struct err *e)
{
	static const char sql[] =
	    "SELECT " TOKEN_COLUMNS " FROM tokens ORDER BY created_ms, id";
	struct token_row t;
	struct rows q;
	int rv;

	if (rows_open(&q, r, e, sql) == -1)
		return -1;
	while ((rv = rows_next(&q, e)) == 1) {
		row_token(&q, &t);
		if ((rv = load_roles(r, &t, e)) != 0 || (rv = fn(&t, arg)) != 0)
			break;
	}
	rows_close(&q);
	return rv;
}

int
tokens_revoke(struct registry *r, const uint8_t id[TOKEN_ID_SIZE],
    struct err *e)
{
	static const char sql[] =
	    "UPDATE tokens SET expires_ms = min(expires_ms, ?) WHERE id = ?";
	char hex[2 * TOKEN_ID_SIZE + 1];
	int rv;

	sodium_bin2hex(hex, sizeof(hex), id, TOKEN_ID_SIZE);
	if (registry_begin(r, e, "revoke token %s", hex) == -1)
		return -1;
	rv = db_run(r, e, sql, INT(clock_wall_ms()), BLOB(id, TOKEN_ID_SIZE));
	if (rv == 0 && db_n_changed(r) == 0)
		rv = err_set(e, ERR_NO_TARGET, "no such token %s", hex);
	return registry_end(r, rv, e);
}

static int
check_new(struct registry *r, const struct token_row *t, struct err *e)
{
	struct operator_row op;
	struct role role;
	struct cidr from;

	if (t->kind == HOLDER_OPERATOR)
		return operators_get(r, t->name, &op, e);
	if (t->name[0] != '\0' && name_check("node name", t->name, e) == -1)
		return -1;
	if (t->uses < 1 || t->uses > TOKEN_USES_MAX)
		return err_set(e, ERR_USAGE, "a token has 1 to %d uses",
		    TOKEN_USES_MAX);
	if (t->name[0] != '\0' && t->uses != 1)
		return err_set(e, ERR_USAGE,
		    "a token for one name has one use; leave the name out");
	if (t->expires_ms <= t->created_ms)
		return err_set(e, ERR_USAGE, "the token would be expired");
	if (t->from[0] != '\0' && cidr_parse(t->from, &from, e) == -1)
		return -1;
	for (size_t i = 0; i < t->n_roles; i++)
		if (roles_get(r, t->roles[i], &role, e) == -1)
			return -1;
	return 0;
}

static int
insert(struct registry *r, const struct token_row *t, struct err *e)
{
	static const char sql[] =
	    "INSERT INTO tokens (id, psk, kind, name, from_cidr, uses, "
	    "created_ms, expires_ms, approve) "
	    "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)";

	return db_run(r, e, sql, BLOB(t->id, sizeof(t->id)),
	    BLOB(t->psk, sizeof(t->psk)), TEXT(kind_words[t->kind]),
	    TEXT(t->name), TEXT(t->from),
	    INT(t->kind == HOLDER_OPERATOR ? 1 : t->uses), INT(t->created_ms),
	    INT(t->expires_ms), INT(t->approve));
}

/* One that is forgotten is unknown, and admits nobody either. */
static int
prune(struct registry *r, int64_t now_ms, struct err *e)
{
	static const char sql[] = "DELETE FROM tokens WHERE expires_ms < ?";

	return db_run(r, e, sql, INT(now_ms - TOKEN_KEPT_MS));
}

static void
row_token(struct rows *q, struct token_row *t)
{
	char kind[16];

	*t = (struct token_row){ .n_roles = 0 };
	row_blob(q, t->id, sizeof(t->id));
	row_blob(q, t->psk, sizeof(t->psk));
	row_text(q, kind, sizeof(kind));
	t->kind = strcmp(kind, kind_words[HOLDER_OPERATOR]) == 0 ?
	    HOLDER_OPERATOR :
	    HOLDER_NODE;
	row_text(q, t->name, sizeof(t->name));
	row_text(q, t->from, sizeof(t->from));
	t->uses = row_int(q);
	t->used = row_int(q);
	t->created_ms = row_int(q);
	t->expires_ms = row_int(q);
	t->approve = row_int(q) != 0;
}

static int
load_roles(struct registry *r, struct token_row *t, struct err *e)
{
	static const char sql[] =
	    "SELECT role FROM token_roles WHERE token_id = ? ORDER BY role";
	struct rows q;
	int rv = 0;

	if (rows_open(&q, r, e, sql, BLOB(t->id, sizeof(t->id))) == -1)
		return -1;
	while (t->n_roles < NODE_ROLES_MAX && (rv = rows_next(&q, e)) == 1)
		row_text(&q, t->roles[t->n_roles++], sizeof(t->roles[0]));
	rows_close(&q);
	return rv == -1 ? -1 : 0;
}
