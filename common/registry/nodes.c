/* nodes.c: see nodes.h; what a node has for a role is in node_roles.c. */
#include "common/registry/nodes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/io.h"
#include "common/base/text.h"
#include "common/registry/node_row.h"
#include "common/registry/roles.h"

#define ROW(type, unit, ...) OPTION_ROW(OPTION_##type, unit, node, __VA_ARGS__)

/* What `nodes_set` changes that is a column, not an option. */
typedef int set_column_fn(struct registry *, const struct node *,
    const char *value, struct err *);

static set_column_fn set_address, set_agent_port;
static int get_by(struct registry *, const char *sql, struct bind,
    struct node *, struct err *);
static int check_new(struct registry *, const struct node *, struct err *);
static int check_free(struct registry *, const struct node *, struct err *);
static int check_address(const struct node *, const char *text,
    char addr[ADDR_PLACE_MAX], struct err *);
static int check_unix(const struct node *, const char *text,
    char addr[ADDR_PLACE_MAX], struct err *);
static bool is_nowhere(const struct addr *);
static int insert(struct registry *, const struct node *, struct err *);
static int set_value(struct registry *, const char *name, const char *option,
    const char *value, struct err *);

static const struct option node_rows[] = {
	ROW(COUNT, "", weight, "weight", 1, 256, "1",
	    "its share of the work, beside the other nodes of a role"),
	ROW(COUNT, "connections", maxconn, "maxconn", 1, 1000000, "none",
	    "at once on this node; none: as its role says", .word = "none"),
};

const struct option_table node_options = { "node option", node_rows,
	nitems(node_rows) };

static const char *const state_names[] = {
	[NODE_UP] = "up",
	[NODE_DRAIN] = "drain",
	[NODE_MAINTENANCE] = "maintenance",
};

static const struct {
	const char *option;
	set_column_fn *set;
} columns[] = {
	{ "address", set_address },
	{ "agent_port", set_agent_port },
};

const char *
node_state_name(enum node_state state)
{
	return state_names[state];
}

int
node_state_parse(const char *text, enum node_state *state, struct err *e)
{
	for (size_t i = 0; i < nitems(state_names); i++) {
		if (strcmp(text, state_names[i]) == 0) {
			*state = (enum node_state)i;
			return 0;
		}
	}
	return err_set(e, ERR_USAGE,
	    "node state '%.40s' is not up, drain or maintenance", text);
}

const struct node_role *
node_find_role(const struct node *n, const char *role)
{
	for (size_t i = 0; i < n->n_roles; i++)
		if (strcmp(n->roles[i].name, role) == 0)
			return &n->roles[i];
	return NULL;
}

bool
node_is_unix(const struct node *n)
{
	return addr_unix_path(n->addr) != NULL;
}

void
node_init(struct node *n, const char *name)
{
	*n = (struct node){ .state = NODE_UP };
	option_defaults(&node_options, n);
	snprintf(n->name, sizeof(n->name), "%s", name);
	uuid_make(n->uuid);
	n->state_since_ms = clock_wall_ms();
}

int
nodes_get(struct registry *r, const char *name, struct node *n, struct err *e)
{
	static const char sql[] = NODE_SELECT "WHERE n.name = ?" NODE_ORDER;
	static const char names[] = "SELECT name FROM nodes ORDER BY name";
	int rv = get_by(r, sql, TEXT(name), n, e);

	return rv == 1 ? db_no_such(r, e, "node", name, names) : rv;
}

int
nodes_get_key(struct registry *r, const uint8_t key[KEY_SIZE], struct node *n,
    struct err *e)
{
	static const char sql[] = NODE_SELECT "WHERE n.key = ?" NODE_ORDER;
	int rv = get_by(r, sql, BLOB(key, KEY_SIZE), n, e);

	return rv == 1 ? err_set(e, ERR_NO_TARGET, "no node has this key") : rv;
}

int
nodes_each(struct registry *r, node_fn *fn, void *arg, struct err *e)
{
	static const char sql[] = NODE_SELECT NODE_ORDER;
	int more, rv = 0;
	struct rows q;
	struct node n;

	if (rows_open(&q, r, e, sql) == -1)
		return -1;
	more = rows_next(&q, e);
	while (more == 1 && (more = row_node(&q, &n, e)) != -1)
		if ((rv = fn(&n, arg)) != 0)
			break;
	rows_close(&q);
	return more == -1 ? -1 : rv;
}

int
nodes_add(struct registry *r, const struct node *n, struct err *e)
{
	struct node clean = *n;
	int rv;

	if (registry_begin(r, e, "add node %s %s", n->name, n->addr) == -1)
		return -1;
	rv = check_address(n, n->addr, clean.addr, e);
	if (rv == 0)
		rv = check_new(r, &clean, e);
	if (rv == 0)
		rv = insert(r, &clean, e);
	for (size_t i = 0; rv == 0 && i < n->n_roles; i++) {
		rv = nodes_add_role(r, n->name, n->roles[i].name, e);
		if (rv == 0 && n->roles[i].port != 0)
			rv = nodes_set_port(r, n->name, n->roles[i].name,
			    n->roles[i].port, e);
	}
	return registry_end(r, rv, e);
}

int
nodes_remove(struct registry *r, const char *name, struct err *e)
{
	static const char revoke[] =
	    "UPDATE certs SET revoked_ms = ? WHERE revoked_ms IS NULL AND "
	    "node_id = (SELECT id FROM nodes WHERE name = ?)";
	/* A copy of a key that is worth nothing any more. */
	static const char settle[] = "DELETE FROM conflicts WHERE name = ?1 "
				     "AND key = (SELECT key FROM nodes WHERE "
				     "name = ?1)";
	static const char sql[] = "DELETE FROM nodes WHERE name = ?";
	struct node n;
	int rv;

	if (registry_begin(r, e, "remove node %s", name) == -1)
		return -1;
	rv = nodes_get(r, name, &n, e);
	if (rv == 0 && node_find_role(&n, ROLE_MASTER) != NULL)
		rv = node_check_last_master(r, name, e);
	if (rv == 0)
		rv = db_run(r, e, revoke, INT(clock_wall_ms()), TEXT(name));
	if (rv == 0)
		rv = db_run(r, e, settle, TEXT(name));
	if (rv == 0)
		rv = db_run(r, e, sql, TEXT(name));
	return registry_end(r, rv, e);
}

int
nodes_rename(struct registry *r, const char *name, const char *to,
    struct err *e)
{
	static const char sql[] = "UPDATE nodes SET name = ? WHERE uuid = ?";
	static const char taken[] = "SELECT 1 FROM nodes WHERE name = ?";
	struct node n;
	int64_t found;
	int rv;

	if (name_check("node name", to, e) == -1 ||
	    registry_begin(r, e, "rename node %s to %s", name, to) == -1)
		return -1;
	rv = nodes_get(r, name, &n, e);
	if (rv == 0 && (rv = db_int(r, e, &found, taken, TEXT(to))) == 1)
		rv = err_set(e, ERR_CONFLICT, "node %s exists already", to);
	if (rv == 0)
		rv = db_run(r, e, sql, TEXT(to), TEXT(n.uuid));
	return registry_end(r, rv, e);
}

int
nodes_set_state(struct registry *r, const char *name, enum node_state state,
    struct err *e)
{
	static const char sql[] =
	    "UPDATE nodes SET state = ?2, state_since_ms = ?3 "
	    "WHERE name = ?1 AND state <> ?2";
	struct node n;
	int rv;

	if (registry_begin(r, e, "set node %s state %s", name,
		state_names[state]) == -1)
		return -1;
	rv = nodes_get(r, name, &n, e);
	if (rv == 0)
		rv = db_run(r, e, sql, TEXT(name), TEXT(state_names[state]),
		    INT(clock_wall_ms()));
	return registry_end(r, rv, e);
}

int
nodes_set(struct registry *r, const char *name, const char *option,
    const char *value, struct err *e)
{
	int rv;

	if (registry_begin(r, e, "set node %s %s %.80s", name, option, value) ==
	    -1)
		return -1;
	rv = set_value(r, name, option, value, e);
	return registry_end(r, rv, e);
}

static int
set_value(struct registry *r, const char *name, const char *option,
    const char *value, struct err *e)
{
	static const char sql[] =
	    "UPDATE nodes SET options = ?2 WHERE name = ?1 AND options <> ?2";
	struct node n;

	if (nodes_get(r, name, &n, e) == -1)
		return -1;
	for (size_t i = 0; i < nitems(columns); i++)
		if (strcmp(option, columns[i].option) == 0)
			return columns[i].set(r, &n, value, e);
	if (option_set(&node_options, &n, option, value, e) == -1)
		return -1;
	return db_save_options(r, e, &node_options, &n, sql, TEXT(name));
}

static int
set_address(struct registry *r, const struct node *n, const char *value,
    struct err *e)
{
	static const char sql[] =
	    "UPDATE nodes SET addr = ?2 WHERE name = ?1 AND addr <> ?2";
	struct node moved = *n;

	if (check_address(n, value, moved.addr, e) == -1 ||
	    check_free(r, &moved, e) == -1)
		return -1;
	return db_run(r, e, sql, TEXT(n->name), TEXT(moved.addr));
}

static int
set_agent_port(struct registry *r, const struct node *n, const char *value,
    struct err *e)
{
	static const char sql[] = "UPDATE nodes SET agent_port = ?2 "
				  "WHERE name = ?1 AND agent_port <> ?2";
	struct node moved = *n;
	uint64_t port;

	if (text_parse_u64("agent_port", value, n->has_key ? 1 : 0, 65535,
		&port, e) == -1)
		return -1;
	if (port != 0 && node_is_unix(n))
		return err_set(e, ERR_USAGE,
		    "node %s is a Unix socket: no agent listens there",
		    n->name);
	moved.agent_port = (uint16_t)port;
	if (check_free(r, &moved, e) == -1)
		return -1;
	return db_run(r, e, sql, TEXT(n->name), INT(port));
}

/* 1: no such row. */
static int
get_by(struct registry *r, const char *sql, struct bind what, struct node *n,
    struct err *e)
{
	struct node out;
	struct rows q;
	int rv;

	if (rows_open(&q, r, e, sql, what) == -1)
		return -1;
	if ((rv = rows_next(&q, e)) != 1)
		return rv == 0 ? 1 : -1;
	rv = row_node(&q, &out, e);
	rows_close(&q);
	if (rv == -1)
		return -1;
	*n = out;
	return 0;
}

static int
check_new(struct registry *r, const struct node *n, struct err *e)
{
	static const char taken[] = "SELECT 1 FROM nodes WHERE name = ?";
	int64_t found;
	int rv;

	if (name_check("node name", n->name, e) == -1)
		return -1;
	if (!uuid_valid(n->uuid))
		return err_set(e, ERR_USAGE, "node %s: '%.40s' is no UUID",
		    n->name, n->uuid);
	if ((rv = db_int(r, e, &found, taken, TEXT(n->name))) == 1)
		return err_set(e, ERR_CONFLICT, "node %s exists already",
		    n->name);
	return rv == 0 ? check_free(r, n, e) : -1;
}

/* Key and agent's address belong to no other node. */
static int
check_free(struct registry *r, const struct node *n, struct err *e)
{
	static const char sql[] =
	    "SELECT name, key IS ?2 FROM nodes WHERE name <> ?1 AND "
	    "(key = ?2 OR (agent_port > 0 AND agent_port = ?3 AND "
	    "addr = ?4))";
	char other[NAME_MAX_LEN + 1];
	struct rows q;
	int rv;

	if (rows_open(&q, r, e, sql, TEXT(n->name),
		BLOB_IF(n->has_key, n->key, KEY_SIZE), INT(n->agent_port),
		TEXT(n->addr)) == -1)
		return -1;
	if ((rv = rows_next(&q, e)) != 1)
		return rv;
	row_text(&q, other, sizeof(other));
	rv = row_int(&q) != 0 && n->has_key ?
	    err_set(e, ERR_CONFLICT, "the key of %s is that of node %s",
		n->name, other) :
	    err_set(e, ERR_CONFLICT, "%s port %u is the agent of node %s",
		n->addr, n->agent_port, other);
	rows_close(&q);
	return rv;
}

/* One spelling an address, so that equal ones are found equal. */
static int
check_address(const struct node *n, const char *text, char addr[ADDR_PLACE_MAX],
    struct err *e)
{
	struct addr a;

	if (addr_unix_path(text) != NULL)
		return check_unix(n, text, addr, e);
	if (addr_parse(text, 0, &a, e) == -1)
		return -1;
	if (addr_port(&a) != 0)
		return err_set(e, ERR_USAGE,
		    "'%.64s': a node's address is an IP without a port", text);
	if (is_nowhere(&a))
		return err_set(e, ERR_USAGE,
		    "'%.64s' is no address of one machine", text);
	addr_format_ip(&a, addr);
	return 0;
}

/* A socket has no port, and no agent behind it. */
static int
check_unix(const struct node *n, const char *text, char addr[ADDR_PLACE_MAX],
    struct err *e)
{
	if (n->agent_port != 0 || n->has_key)
		return err_set(e, ERR_USAGE,
		    "node %s has an agent, so its address is an IP; a Unix "
		    "socket is a node of its own (clusterctl node add)",
		    n->name);
	for (size_t i = 0; i < n->n_roles; i++)
		if (n->roles[i].port != 0)
			return err_set(e, ERR_USAGE,
			    "node %s has a port for role %s, and a Unix socket "
			    "has none (--port %s=role)",
			    n->name, n->roles[i].name, n->roles[i].name);
	return addr_place(text, addr, e);
}

/* "Any", multicast, broadcast. */
static bool
is_nowhere(const struct addr *a)
{
	static const char *const ranges[] = { "0.0.0.0/8", "224.0.0.0/3",
		"::", "ff00::/8" };

	for (size_t i = 0; i < nitems(ranges); i++) {
		struct cidr c;
		struct err ignored;

		if (cidr_parse(ranges[i], &c, &ignored) == 0 &&
		    cidr_contains(&c, a))
			return true;
	}
	return false;
}

static int
insert(struct registry *r, const struct node *n, struct err *e)
{
	static const char sql[] =
	    "INSERT INTO nodes (uuid, name, addr, agent_port, key, state, "
	    "state_since_ms, options) VALUES (?, ?, ?, ?, ?, ?, ?, ?)";
	char *options = db_options_text(&node_options, n, e);
	int rv;

	if (options == NULL)
		return -1;
	rv = db_run(r, e, sql, TEXT(n->uuid), TEXT(n->name), TEXT(n->addr),
	    INT(n->agent_port), BLOB_IF(n->has_key, n->key, KEY_SIZE),
	    TEXT(state_names[n->state]), INT(n->state_since_ms), TEXT(options));
	free(options);
	return rv;
}
