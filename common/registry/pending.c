/* pending.c: joins that wait for approval, and joins that were refused; see
 * tokens.h. */
#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/registry/db.h"
#include "common/registry/join.h"

#define CONFLICTS_KEPT 1000 /* a stranger cannot fill the disk */

static int each_request(struct registry *, const char *sql, join_request_fn *,
    void *arg, struct err *);
static int approve(struct registry *, const char *name, struct err *);
static int get_request(struct registry *, const char *name,
    struct join_request *, uint8_t token_id[TOKEN_ID_SIZE], struct err *);
static void row_request(struct rows *, struct join_request *);
static int give_agent(struct registry *, const struct join_request *,
    const struct token_row *, const struct node *, struct err *);
static int taken(const struct join_request *, struct err *);

int
pending_each(struct registry *r, join_request_fn *fn, void *arg, struct err *e)
{
	static const char sql[] =
	    "SELECT name, key, addr, port, at_ms, 0 FROM pending "
	    "ORDER BY name";

	return each_request(r, sql, fn, arg, e);
}

int
pending_approve(struct registry *r, const char *name, struct err *e)
{
	int rv;

	if (registry_begin(r, e, "approve node %s", name) == -1)
		return -1;
	rv = approve(r, name, e);
	return registry_end(r, rv, e);
}

int
pending_reject(struct registry *r, const char *name, struct err *e)
{
	static const char sql[] = "DELETE FROM pending WHERE name = ?";
	struct join_request req;
	uint8_t token_id[TOKEN_ID_SIZE];
	int rv;

	if (registry_begin(r, e, "reject node %s", name) == -1)
		return -1;
	rv = get_request(r, name, &req, token_id, e);
	if (rv == 0)
		rv = db_run(r, e, sql, TEXT(name));
	return registry_end(r, rv, e);
}

int
conflicts_note(struct registry *r, const struct join *j, struct err *e)
{
	static const char sql[] =
	    "INSERT INTO conflicts (name, key, addr, port, at_ms) "
	    "VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT DO UPDATE SET "
	    "addr = ?3, port = ?4, at_ms = ?5";
	static const char forget[] =
	    "DELETE FROM conflicts WHERE (name, key) IN (SELECT name, key "
	    "FROM conflicts ORDER BY at_ms DESC LIMIT -1 OFFSET ?)";
	struct join_request req;
	struct token_row t;
	int rv;

	if (tokens_get(r, j->token_id, &t, e) == -1 ||
	    join_describe(&t, j, &req, e) == -1 ||
	    registry_begin_note(r, e) == -1)
		return -1;
	rv = db_run(r, e, sql, TEXT(req.name), BLOB(req.key, KEY_SIZE),
	    TEXT(req.addr), INT(req.port), INT(req.at_ms));
	if (rv == 0)
		rv = db_run(r, e, forget, INT(CONFLICTS_KEPT));
	return registry_end(r, rv, e);
}

int
conflicts_note_copy(struct registry *r, const char *name,
    const struct addr *from, int64_t at_ms, struct err *e)
{
	static const char sql[] =
	    "INSERT INTO conflicts (name, key, addr, port, at_ms) "
	    "SELECT name, key, ?2, ?3, ?4 FROM nodes WHERE name = ?1 AND "
	    "key IS NOT NULL ON CONFLICT DO UPDATE SET addr = ?2, port = ?3, "
	    "at_ms = ?4";
	char addr[ADDR_TEXT_MAX];
	int rv;

	addr_format_ip(from, addr);
	if (registry_begin_note(r, e) == -1)
		return -1;
	rv = db_run(r, e, sql, TEXT(name), TEXT(addr), INT(addr_port(from)),
	    INT(at_ms));
	return registry_end(r, rv, e);
}

int
conflicts_each(struct registry *r, join_request_fn *fn, void *arg,
    struct err *e)
{
	static const char sql[] =
	    "SELECT c.name, c.key, c.addr, c.port, c.at_ms, n.id IS NOT NULL "
	    "FROM conflicts c LEFT JOIN nodes n ON n.name = c.name AND "
	    "n.key = c.key ORDER BY c.at_ms DESC, c.name";

	return each_request(r, sql, fn, arg, e);
}

int
conflicts_clear(struct registry *r, const char *name, struct err *e)
{
	static const char sql[] = "DELETE FROM conflicts WHERE name = ?";
	int rv;

	if (registry_begin_note(r, e) == -1)
		return -1;
	rv = db_run(r, e, sql, TEXT(name));
	return registry_end(r, rv, e);
}

int
pending_insert(struct registry *r, const struct join_request *req,
    const uint8_t token_id[TOKEN_ID_SIZE], struct err *e)
{
	static const char used[] =
	    "SELECT 1 FROM nodes WHERE name = ?1 AND key IS NOT NULL "
	    "UNION ALL SELECT 1 FROM pending WHERE name = ?1 OR key = ?2";
	static const char sql[] =
	    "INSERT INTO pending (name, key, addr, port, token_id, at_ms) "
	    "VALUES (?, ?, ?, ?, ?, ?)";
	int64_t found;
	int rv;

	rv = db_int(r, e, &found, used, TEXT(req->name),
	    BLOB(req->key, KEY_SIZE));
	if (rv != 0)
		return rv == 1 ? taken(req, e) : -1;
	return db_run(r, e, sql, TEXT(req->name), BLOB(req->key, KEY_SIZE),
	    TEXT(req->addr), INT(req->port), BLOB(token_id, TOKEN_ID_SIZE),
	    INT(req->at_ms));
}

int
join_admit(struct registry *r, const struct join_request *req,
    const struct token_row *t, struct err *e)
{
	/* A conflict that ends so. */
	static const char settle[] =
	    "DELETE FROM conflicts WHERE name = ? AND key = ?";
	struct node n;
	int rv =
	    db_run(r, e, settle, TEXT(req->name), BLOB(req->key, KEY_SIZE));

	if (rv == -1)
		return -1;
	rv = nodes_get(r, req->name, &n, e);
	if (rv == 0)
		return give_agent(r, req, t, &n, e);
	if (e->code != ERR_NO_TARGET)
		return -1;
	node_init(&n, req->name);
	snprintf(n.addr, sizeof(n.addr), "%s", req->addr);
	n.agent_port = req->port;
	n.has_key = true;
	memcpy(n.key, req->key, KEY_SIZE);
	n.n_roles = t->n_roles;
	for (size_t i = 0; i < t->n_roles; i++)
		memcpy(n.roles[i].name, t->roles[i], sizeof(t->roles[i]));
	return nodes_add(r, &n, e);
}

static int
give_agent(struct registry *r, const struct join_request *req,
    const struct token_row *t, const struct node *n, struct err *e)
{
	static const char sql[] =
	    "UPDATE nodes SET key = ?, addr = ?, agent_port = ? "
	    "WHERE name = ?";

	if (n->has_key || strcmp(t->name, n->name) != 0)
		return taken(req, e);
	for (size_t i = 0; i < t->n_roles; i++)
		if (nodes_add_role(r, n->name, t->roles[i], e) == -1)
			return -1;
	return db_run(r, e, sql, BLOB(req->key, KEY_SIZE), TEXT(req->addr),
	    INT(req->port), TEXT(n->name));
}

static int
taken(const struct join_request *req, struct err *e)
{
	return err_set(e, ERR_CONFLICT,
	    "the name %s belongs to a machine with another key; choose "
	    "another with --name, or remove that node first",
	    req->name);
}

static int
approve(struct registry *r, const char *name, struct err *e)
{
	static const char use[] =
	    "UPDATE token_uses SET node_id = (SELECT id FROM nodes "
	    "WHERE name = ?) WHERE token_id = ? AND key = ?";
	static const char sql[] = "DELETE FROM pending WHERE name = ?";
	uint8_t token_id[TOKEN_ID_SIZE];
	struct join_request req;
	struct token_row t;

	if (get_request(r, name, &req, token_id, e) == -1 ||
	    tokens_get(r, token_id, &t, e) == -1 ||
	    join_admit(r, &req, &t, e) == -1 ||
	    db_run(r, e, use, TEXT(name), BLOB(token_id, TOKEN_ID_SIZE),
		BLOB(req.key, KEY_SIZE)) == -1)
		return -1;
	return db_run(r, e, sql, TEXT(name));
}

static int
get_request(struct registry *r, const char *name, struct join_request *req,
    uint8_t token_id[TOKEN_ID_SIZE], struct err *e)
{
	static const char sql[] =
	    "SELECT name, key, addr, port, at_ms, 0, token_id FROM pending "
	    "WHERE name = ?";
	static const char names[] = "SELECT name FROM pending ORDER BY name";
	struct rows q;
	int rv;

	if (rows_open(&q, r, e, sql, TEXT(name)) == -1)
		return -1;
	if ((rv = rows_next(&q, e)) != 1)
		return rv == 0 ? db_no_such(r, e, "pending node", name, names) :
				 -1;
	row_request(&q, req);
	row_blob(&q, token_id, TOKEN_ID_SIZE);
	rows_close(&q);
	return 0;
}

static int
each_request(struct registry *r, const char *sql, join_request_fn *fn,
    void *arg, struct err *e)
{
	struct join_request req;
	struct rows q;
	int rv;

	if (rows_open(&q, r, e, sql) == -1)
		return -1;
	while ((rv = rows_next(&q, e)) == 1) {
		row_request(&q, &req);
		if ((rv = fn(&req, arg)) != 0)
			break;
	}
	rows_close(&q);
	return rv;
}

static void
row_request(struct rows *q, struct join_request *req)
{
	*req = (struct join_request){ .port = 0 };
	row_text(q, req->name, sizeof(req->name));
	row_blob(q, req->key, sizeof(req->key));
	row_text(q, req->addr, sizeof(req->addr));
	req->port = (uint16_t)row_int(q);
	req->at_ms = row_int(q);
	req->copied = row_int(q) != 0;
}
