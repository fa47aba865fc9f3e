/* node_roles.c: rows of nodes, and the roles they have; see nodes.h. */
#include <stdio.h>
#include <string.h>

#include "common/registry/node_row.h"
#include "common/registry/roles.h"

static int row_columns(struct rows *, struct node *, struct err *);
static int row_joined(struct rows *, struct node *, struct err *);

int
nodes_add_role(struct registry *r, const char *name, const char *role,
    struct err *e)
{
	static const char sql[] =
	    "INSERT INTO node_roles (node_id, role) "
	    "SELECT id, ? FROM nodes WHERE name = ? ON CONFLICT DO NOTHING";
	struct role known;
	struct node n;
	int rv;

	if (registry_begin(r, e, "add role %s to node %s", role, name) == -1)
		return -1;
	rv = nodes_get(r, name, &n, e);
	if (rv == 0)
		rv = roles_get(r, role, &known, e);
	if (rv == 0 && n.n_roles == NODE_ROLES_MAX &&
	    node_find_role(&n, role) == NULL)
		rv = err_set(e, ERR_USAGE,
		    "node %s has %d roles already, "
		    "the most there can be",
		    name, NODE_ROLES_MAX);
	if (rv == 0)
		rv = db_run(r, e, sql, TEXT(role), TEXT(name));
	return registry_end(r, rv, e);
}

int
nodes_remove_role(struct registry *r, const char *name, const char *role,
    struct err *e)
{
	static const char sql[] =
	    "DELETE FROM node_roles WHERE role = ? AND node_id = "
	    "(SELECT id FROM nodes WHERE name = ?)";
	struct node n;
	int rv;

	if (registry_begin(r, e, "remove role %s from node %s", role, name) ==
	    -1)
		return -1;
	rv = nodes_get(r, name, &n, e);
	if (rv == 0 && node_find_role(&n, role) == NULL)
		rv = err_set(e, ERR_NO_TARGET, "node %s has no role %.64s",
		    name, role);
	if (rv == 0 && strcmp(role, ROLE_MASTER) == 0)
		rv = node_check_last_master(r, name, e);
	if (rv == 0)
		rv = db_run(r, e, sql, TEXT(role), TEXT(name));
	return registry_end(r, rv, e);
}

int
nodes_set_port(struct registry *r, const char *name, const char *role,
    uint16_t port, struct err *e)
{
	static const char sql[] =
	    "UPDATE node_roles SET port = ?1 WHERE role = ?2 AND node_id = "
	    "(SELECT id FROM nodes WHERE name = ?3) AND port <> ?1";
	struct node n;
	int rv;

	if (registry_begin(r, e, "set node %s port of %s to %u", name, role,
		port) == -1)
		return -1;
	rv = nodes_get(r, name, &n, e);
	if (rv == 0 && node_find_role(&n, role) == NULL)
		rv = err_set(e, ERR_NO_TARGET, "node %s has no role %.64s",
		    name, role);
	if (rv == 0 && port != 0 && node_is_unix(&n))
		rv = err_set(e, ERR_USAGE,
		    "node %s is a Unix socket, which has no port", name);
	if (rv == 0)
		rv = db_run(r, e, sql, INT(port), TEXT(role), TEXT(name));
	return registry_end(r, rv, e);
}

/* A cluster without a master could be changed by nobody. */
int
node_check_last_master(struct registry *r, const char *name, struct err *e)
{
	static const char sql[] =
	    "SELECT 1 FROM node_roles JOIN nodes ON id = node_id "
	    "WHERE role = 'master' AND name <> ?";
	int64_t found;
	int rv = db_int(r, e, &found, sql, TEXT(name));

	if (rv == 0)
		return err_set(e, ERR_USAGE,
		    "%s is the only master; give another node the role "
		    "first",
		    name);
	return rv == 1 ? 0 : -1;
}

int
row_node(struct rows *q, struct node *n, struct err *e)
{
	int64_t id = row_int(q);
	int rv;

	*n = (struct node){ .n_roles = 0 };
	do {
		if (row_joined(q, n, e) == -1 ||
		    (*n->name == '\0' && row_columns(q, n, e) == -1))
			return -1;
		if ((rv = rows_next(q, e)) != 1)
			return rv;
	} while (row_int(q) == id);
	row_again(q);
	return 1;
}

/* One role and one certificate; each comes again with each of the other. */
static int
row_joined(struct rows *q, struct node *n, struct err *e)
{
	struct node_role role = { .port = 0 };

	row_text(q, role.name, sizeof(role.name));
	role.port = (uint16_t)row_int(q);
	n->serial = (uint64_t)row_int(q);
	n->cert_not_after_s = row_int(q);
	if (*role.name == '\0' ||
	    (n->n_roles > 0 &&
		strcmp(n->roles[n->n_roles - 1].name, role.name) == 0))
		return 0;
	if (n->n_roles == NODE_ROLES_MAX)
		return err_set(e, ERR_CORRUPT, "node %s: its roles do not fit",
		    n->name);
	n->roles[n->n_roles++] = role;
	return 0;
}

static int
row_columns(struct rows *q, struct node *n, struct err *e)
{
	char state[16];

	row_text(q, n->name, sizeof(n->name));
	row_text(q, n->uuid, sizeof(n->uuid));
	row_text(q, n->addr, sizeof(n->addr));
	n->agent_port = (uint16_t)row_int(q);
	n->has_key = row_blob(q, n->key, sizeof(n->key));
	row_text(q, state, sizeof(state));
	n->state_since_ms = row_int(q);
	if (node_state_parse(state, &n->state, e) == -1 ||
	    row_options(q, &node_options, n, e) == -1)
		return err_wrap(e, "node %s", n->name);
	return 0;
}
