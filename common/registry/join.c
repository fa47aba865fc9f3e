/* join.c: a token redeemed: who is admitted, as what; see tokens.h. */
#include "common/registry/join.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/registry/db.h"
#include "common/registry/tokens.h"

/* What became of an earlier join with the same token and key. */
enum earlier { EARLIER_NONE, EARLIER_NODE, EARLIER_PENDING, EARLIER_GONE };

static int redeem_node(struct registry *, const struct join *, struct node *,
    enum join_status *, struct err *);
static int redeem_operator(struct registry *, const struct join *,
    struct operator_row *, struct err *);
static int check_token(struct registry *, const struct join *, enum cert_holder,
    struct token_row *, struct err *);
static int check_unspent(const struct token_row *, int64_t now_ms,
    struct err *);
static int find_earlier(struct registry *, const struct join *, enum earlier *,
    struct node *, struct err *);
static int consume(struct registry *, const struct join *,
    const char *node_name, const char *operator_name, struct err *);
static int check_key_new(struct registry *, const struct join *, struct err *);

int
join_node(struct registry *r, const struct join *j, struct node *n,
    enum join_status *status, struct err *e)
{
	enum join_status s = JOIN_PENDING;
	struct node out;
	int rv;

	if (registry_begin(r, e, "join") == -1)
		return -1;
	rv = redeem_node(r, j, &out, &s, e);
	if (registry_end(r, rv, e) == -1)
		return -1;
	*n = out;
	*status = s;
	return 0;
}

int
join_operator(struct registry *r, const struct join *j, struct operator_row *op,
    struct err *e)
{
	struct operator_row out;
	int rv;

	if (registry_begin(r, e, "join of an operator") == -1)
		return -1;
	rv = redeem_operator(r, j, &out, e);
	if (registry_end(r, rv, e) == -1)
		return -1;
	*op = out;
	return 0;
}

int
join_describe(const struct token_row *t, const struct join *j,
    struct join_request *req, struct err *e)
{
	bool wish = j->name != NULL && *j->name != '\0';
	const char *name = wish ? j->name :
	    j->hostname != NULL ? j->hostname :
				  "";
	struct addr a = *j->peer;

	*req = (struct join_request){ .port = j->port, .at_ms = j->now_ms };
	memcpy(req->key, j->key, KEY_SIZE);
	if (t->name[0] != '\0' && wish && strcmp(t->name, name) != 0)
		return err_set(e, ERR_DENIED, "this token is for node %s",
		    t->name);
	if (t->name[0] != '\0') {
		memcpy(req->name, t->name, sizeof(req->name));
	} else if (wish) {
		if (name_check("node name", name, e) == -1)
			return -1;
		snprintf(req->name, sizeof(req->name), "%s", name);
	} else {
		snprintf(req->name, sizeof(req->name), "%.*s",
		    (int)strcspn(name, "."), name);
		for (char *p = req->name; *p != '\0'; p++)
			*p = (char)tolower((unsigned char)*p);
		if (!name_valid(req->name))
			return err_set(e, ERR_USAGE,
			    "the host name '%.64s' is no node name; choose "
			    "one with --name",
			    name);
	}
	if (j->address != NULL && *j->address != '\0' &&
	    addr_parse(j->address, 0, &a, e) == -1)
		return -1;
	addr_format_ip(&a, req->addr);
	return 0;
}

static int
redeem_node(struct registry *r, const struct join *j, struct node *n,
    enum join_status *status, struct err *e)
{
	struct join_request req;
	struct token_row t;
	enum earlier earlier;

	if (check_token(r, j, HOLDER_NODE, &t, e) == -1 ||
	    find_earlier(r, j, &earlier, n, e) == -1)
		return -1;
	*status = earlier == EARLIER_PENDING ? JOIN_PENDING : JOIN_ADMITTED;
	if (earlier == EARLIER_NODE || earlier == EARLIER_PENDING)
		return 0;
	if (earlier == EARLIER_GONE)
		return err_set(e, ERR_DENIED,
		    "this token was used by this machine, and the node was "
		    "removed since; ask for a new token");
	if (check_unspent(&t, j->now_ms, e) == -1 ||
	    join_describe(&t, j, &req, e) == -1 || check_key_new(r, j, e) == -1)
		return -1;
	if (t.approve) {
		*status = JOIN_PENDING;
		node_init(n, req.name);
		return pending_insert(r, &req, t.id, e) == -1 ?
		    -1 :
		    consume(r, j, NULL, NULL, e);
	}
	if (join_admit(r, &req, &t, e) == -1 ||
	    consume(r, j, req.name, NULL, e) == -1)
		return -1;
	return nodes_get(r, req.name, n, e);
}

static int
redeem_operator(struct registry *r, const struct join *j,
    struct operator_row *op, struct err *e)
{
	static const char earlier[] =
	    "SELECT operator_id IS NOT NULL FROM token_uses "
	    "WHERE token_id = ? AND key = ?";
	struct token_row t;
	int64_t alive = 0;
	int rv;

	if (check_token(r, j, HOLDER_OPERATOR, &t, e) == -1)
		return -1;
	rv = db_int(r, e, &alive, earlier, BLOB(j->token_id, TOKEN_ID_SIZE),
	    BLOB(j->key, KEY_SIZE));
	if (rv == -1)
		return -1;
	if (rv == 1 && !alive)
		return err_set(e, ERR_DENIED,
		    "this token was used, and the operator was revoked since");
	if (rv == 1)
		return operators_get(r, t.name, op, e);
	if (check_unspent(&t, j->now_ms, e) == -1 ||
	    operators_get(r, t.name, op, e) == -1)
		return -1;
	/* A further token for the same person means a new key: what was
	 * issued to the old one ends. */
	if (op->has_key && operator_forget_key(r, t.name, e) == -1)
		return -1;
	if (consume(r, j, NULL, t.name, e) == -1)
		return -1;
	return operators_get(r, t.name, op, e);
}

static int
check_token(struct registry *r, const struct join *j, enum cert_holder kind,
    struct token_row *t, struct err *e)
{
	struct cidr from;

	if (tokens_get(r, j->token_id, t, e) == -1)
		return -1;
	if (t->kind != kind)
		return err_set(e, ERR_DENIED,
		    kind == HOLDER_NODE ?
			"this token is for an operator (clusterctl operator "
			"join)" :
			"this token is for a node (nodeagent join)");
	if (t->from[0] == '\0')
		return 0;
	if (cidr_parse(t->from, &from, e) == -1)
		return -1;
	if (!cidr_contains(&from, j->peer))
		return err_set(e, ERR_DENIED,
		    "this token is for machines in %s", t->from);
	return 0;
}

static int
check_unspent(const struct token_row *t, int64_t now_ms, struct err *e)
{
	char when[32];

	if (t->expires_ms <= now_ms) {
		clock_format_utc(t->expires_ms, when, sizeof(when));
		return err_set(e, ERR_EXPIRED,
		    "this token expired at %s; ask for a new one", when);
	}
	if (t->used >= t->uses)
		return err_set(e, ERR_DENIED,
		    "this token is used up (%" PRId64 " of %" PRId64
		    "); ask for a new one",
		    t->used, t->uses);
	return 0;
}

static int
find_earlier(struct registry *r, const struct join *j, enum earlier *found,
    struct node *n, struct err *e)
{
	static const char used[] = "SELECT node_id IS NOT NULL FROM token_uses "
				   "WHERE token_id = ? AND key = ?";
	static const char waits[] =
	    "SELECT name FROM pending WHERE token_id = ? AND key = ?";
	struct bind id = BLOB(j->token_id, TOKEN_ID_SIZE);
	struct bind key = BLOB(j->key, KEY_SIZE);
	char name[NAME_MAX_LEN + 1];
	int64_t alive = 0;
	struct rows q;
	int rv;

	*found = EARLIER_NONE;
	if ((rv = db_int(r, e, &alive, used, id, key)) != 1)
		return rv;
	if (alive) {
		*found = EARLIER_NODE;
		return nodes_get_key(r, j->key, n, e);
	}
	*found = EARLIER_GONE;
	if (rows_open(&q, r, e, waits, id, key) == -1)
		return -1;
	if ((rv = rows_next(&q, e)) != 1)
		return rv;
	row_text(&q, name, sizeof(name));
	rows_close(&q);
	node_init(n, name);
	*found = EARLIER_PENDING;
	return 0;
}

/* The use and what came of it; the count is what makes one of two racing
 * joins the last. */
static int
consume(struct registry *r, const struct join *j, const char *node_name,
    const char *operator_name, struct err *e)
{
	static const char count[] =
	    "UPDATE tokens SET used = used + 1 WHERE id = ? AND used < uses";
	static const char note[] =
	    "INSERT INTO token_uses (token_id, key, at_ms, node_id, "
	    "operator_id) VALUES (?, ?, ?, "
	    "(SELECT id FROM nodes WHERE name = ?), "
	    "(SELECT id FROM operators WHERE name = ?))";
	struct bind id = BLOB(j->token_id, TOKEN_ID_SIZE);

	if (db_run(r, e, count, id) == -1)
		return -1;
	if (db_n_changed(r) == 0)
		return err_set(e, ERR_DENIED,
		    "this token is used up; ask for a new one");
	return db_run(r, e, note, id, BLOB(j->key, KEY_SIZE), INT(j->now_ms),
	    TEXT(node_name), TEXT(operator_name));
}

static int
check_key_new(struct registry *r, const struct join *j, struct err *e)
{
	static const char sql[] = "SELECT name FROM nodes WHERE key = ?";
	char name[NAME_MAX_LEN + 1];
	struct rows q;
	int rv;

	if (rows_open(&q, r, e, sql, BLOB(j->key, KEY_SIZE)) == -1)
		return -1;
	if ((rv = rows_next(&q, e)) != 1)
		return rv;
	row_text(&q, name, sizeof(name));
	rows_close(&q);
	return err_set(e, ERR_DENIED,
	    "this machine is node %s already; remove that first", name);
}
