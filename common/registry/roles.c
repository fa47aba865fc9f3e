/* roles.c: see roles.h. */
#include "common/registry/roles.h"

#include <stdio.h>
#include <string.h>

#include "common/base/io.h"
#include "common/registry/db.h"

#define ROW(type, unit, ...) OPTION_ROW(OPTION_##type, unit, role, __VA_ARGS__)
#define TIME(...)	     ROW(DURATION, "time", __VA_ARGS__)

static int check_balance(const char *, struct err *);
static int check_health(const char *, struct err *);
static int row_role(struct rows *, struct role *, struct err *);

static const struct option role_rows[] = {
	ROW(COUNT, "port", port, "port", 1, 65535, "none",
	    "where its nodes serve; none: no work for the proxy",
	    .word = "none"),
	ROW(TEXT, "", balance, "balance", 0, 0, "least_conn",
	    "how requests are spread: least_conn, round_robin, hash:ip, "
	    "hash:uri, hash:cookie=NAME, sticky[=COOKIE]",
	    .check = check_balance),
	ROW(TEXT, "", health, "health", 0, 0, "tcp",
	    "how nodes are checked: none, tcp, 'mysql [user=NAME]', "
	    "'http GET /PATH 200-399'",
	    .check = check_health),
	TIME(interval_ms, "interval", 100, 3600000, "2s",
	    "between two checks of a node"),
	TIME(check_timeout_ms, "check_timeout", 10, 60000, "2s",
	    "a check that takes longer has failed"),
	ROW(COUNT, "checks", rise, "rise", 1, 100, "2",
	    "checks passed in a row that bring a node back"),
	ROW(COUNT, "checks", fall, "fall", 1, 100, "3",
	    "checks failed in a row that take a node out"),
	ROW(COUNT, "connections", maxconn, "maxconn", 1, 1000000, "none",
	    "at once on one node", .word = "none"),
	ROW(COUNT, "requests", queue, "queue", 0, 1000000, "1000",
	    "that wait when every node is full; more get 503"),
	TIME(queue_timeout_ms, "queue_timeout", 1, 3600000, "5s",
	    "a request waits at most so long"),
	TIME(slow_start_ms, "slow_start", 0, 3600000, "30s",
	    "a node that came back is loaded gradually over this time"),
	ROW(WORD, "", proxy_protocol, "proxy_protocol", 0, 0, "off",
	    "connections to its nodes begin with a PROXY header, which names "
	    "the client",
	    .words = "off|v1|v2"),
};

const struct option_table role_options = { "role option", role_rows,
	nitems(role_rows) };

#define ROLE_COLUMNS "name, predefined, options"

int
roles_get(struct registry *r, const char *name, struct role *role,
    struct err *e)
{
	static const char sql[] =
	    "SELECT " ROLE_COLUMNS " FROM roles WHERE name = ?";
	static const char names[] = "SELECT name FROM roles ORDER BY name";
	struct role out;
	struct rows q;
	int rv;

	if (rows_open(&q, r, e, sql, TEXT(name)) == -1)
		return -1;
	if ((rv = rows_next(&q, e)) == 1)
		rv = row_role(&q, &out, e);
	else if (rv == 0)
		rv = db_no_such(r, e, "role", name, names);
	rows_close(&q);
	if (rv == 0)
		*role = out;
	return rv;
}

int
roles_each(struct registry *r, role_fn *fn, void *arg, struct err *e)
{
	static const char sql[] =
	    "SELECT " ROLE_COLUMNS " FROM roles ORDER BY name";
	struct role role;
	struct rows q;
	int rv;

	if (rows_open(&q, r, e, sql) == -1)
		return -1;
	while ((rv = rows_next(&q, e)) == 1)
		if ((rv = row_role(&q, &role, e)) != 0 ||
		    (rv = fn(&role, arg)) != 0)
			break;
	rows_close(&q);
	return rv;
}

int
roles_add(struct registry *r, const char *name, struct err *e)
{
	static const char sql[] =
	    "INSERT INTO roles (name) VALUES (?) ON CONFLICT DO NOTHING";
	int rv;

	if (name_check_role(name, e) == -1 ||
	    registry_begin(r, e, "add role %s", name) == -1)
		return -1;
	rv = db_run(r, e, sql, TEXT(name));
	if (rv == 0 && db_n_changed(r) == 0)
		rv = err_set(e, ERR_CONFLICT, "role %s exists already", name);
	return registry_end(r, rv, e);
}

int
roles_set(struct registry *r, const char *name, const char *option,
    const char *value, struct err *e)
{
	static const char sql[] =
	    "UPDATE roles SET options = ?2 WHERE name = ?1 AND options <> ?2";
	struct role role;
	int rv;

	if (registry_begin(r, e, "set role %s %s %.100s", name, option,
		value) == -1)
		return -1;
	rv = roles_get(r, name, &role, e);
	if (rv == 0)
		rv = option_set(&role_options, &role, option, value, e);
	if (rv == 0)
		rv = db_save_options(r, e, &role_options, &role, sql,
		    TEXT(name));
	return registry_end(r, rv, e);
}

int
roles_remove(struct registry *r, const char *name, struct err *e)
{
	/* What a role may still be part of, and how to say so. */
	static const struct {
		const char *sql, *text;
	} in_use[] = {
		{ "SELECT count(*) FROM node_roles WHERE role = ?", "node" },
		{ "SELECT count(*) FROM sites WHERE role = ?", "site" },
		{ "SELECT count(*) FROM token_roles WHERE role = ?", "token" },
	};
	static const char sql[] = "DELETE FROM roles WHERE name = ?";
	struct role role;
	int64_t n = 0;
	int rv;

	if (registry_begin(r, e, "remove role %s", name) == -1)
		return -1;
	rv = roles_get(r, name, &role, e);
	if (rv == 0 && role.predefined)
		rv = err_set(e, ERR_USAGE, "role %s is predefined and stays",
		    name);
	for (size_t i = 0; rv == 0 && i < nitems(in_use); i++) {
		if (db_int(r, e, &n, in_use[i].sql, TEXT(name)) == -1)
			rv = -1;
		else if (n > 0)
			rv = err_set(e, ERR_USAGE,
			    "role %s is still that of %d %s(s)", name, (int)n,
			    in_use[i].text);
	}
	if (rv == 0)
		rv = db_run(r, e, sql, TEXT(name));
	return registry_end(r, rv, e);
}

static int
row_role(struct rows *q, struct role *role, struct err *e)
{
	row_text(q, role->name, sizeof(role->name));
	role->predefined = row_int(q) != 0;
	if (row_options(q, &role_options, role, e) == -1)
		return err_wrap(e, "role %s", role->name);
	return 0;
}

static int
check_balance(const char *text, struct err *e)
{
	struct balance b;

	return balance_parse(text, &b, e);
}

static int
check_health(const char *text, struct err *e)
{
	struct health h;

	return health_parse(text, &h, e);
}
