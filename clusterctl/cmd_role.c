/* cmd_role.c: the roles there are, and how the proxy serves them. */
#include "clusterctl/command.h"

#include <stdio.h>
#include <string.h>

#include "clusterctl/output.h"
#include "clusterctl/report.h"
#include "clusterctl/view.h"
#include "common/base/io.h"
#include "common/registry/roles.h"

static int run_list(struct context *, const void *, int, char **, struct err *);
static int run_show(struct context *, const void *, int, char **, struct err *);
static int run_add(struct context *, const void *, int, char **, struct err *);
static int run_set(struct context *, const void *, int, char **, struct err *);
static int run_remove(struct context *, const void *, int, char **,
    struct err *);
static int put_role(const struct role *, void *arg);
static size_t count_members(const struct directory *, const char *role);

static const struct column role_columns[] = {
	{ .title = "ROLE", .key = "name" },
	{ .title = "NODES",
	    .key = "nodes",
	    .kind = COLUMN_NUMBER,
	    .where = ON_TTY | ON_JSON },
	{ .title = "PORT", .key = "port", .where = ON_TTY | ON_JSON },
	{ .title = "BALANCE", .key = "balance", .where = ON_TTY | ON_JSON },
	{ .title = "HEALTH", .key = "health", .where = ON_TTY | ON_JSON },
};

const struct command cmd_role_list = {
	.name = "role list",
	.usage = "",
	.summary = "the roles, their nodes, and how the proxy serves them",
	.about = "In a pipe it prints plain names, one a line.\n",
	.section = SECTION_NODES,
	.needs = NEEDS_CLUSTER,
	.run = run_list,
};

const struct command cmd_role_show = {
	.name = "role show",
	.usage = "ROLE",
	.summary = "every option of a role, with its meaning",
	.section = SECTION_NODES,
	.needs = NEEDS_VIEW,
	.min_args = 1,
	.max_args = 1,
	.run = run_show,
};

const struct command cmd_role_add = {
	.name = "role add",
	.usage = "ROLE [options]",
	.summary = "a role of your own",
	.section = SECTION_NODES,
	.needs = NEEDS_REGISTRY,
	.opts_size = sizeof(struct field_values),
	.fields = &role_options,
	.min_args = 1,
	.max_args = 1,
	.run = run_add,
};

const struct command cmd_role_set = {
	.name = "role set",
	.usage = "ROLE OPTION...",
	.summary = "change how the proxy serves a role",
	.examples = "  clusterctl role set worker_http --port 8080 "
		    "--balance least_conn\n"
		    "  clusterctl role set worker_http --health 'http GET "
		    "/alive 200-299' --fall 2\n",
	.section = SECTION_NODES,
	.needs = NEEDS_REGISTRY,
	.opts_size = sizeof(struct field_values),
	.fields = &role_options,
	.min_args = 1,
	.max_args = 1,
	.run = run_set,
};

const struct command cmd_role_remove = {
	.name = "role remove",
	.usage = "ROLE",
	.summary = "remove a role that nothing uses",
	.section = SECTION_NODES,
	.needs = NEEDS_REGISTRY,
	.min_args = 1,
	.max_args = 1,
	.run = run_remove,
};

struct listing {
	const struct directory *directory;
	struct table *table;
};

static int
run_list(struct context *cx, const void *opts, int argc, char **argv,
    struct err *e)
{
	struct listing l = { context_directory(cx),
		table_new(role_columns, nitems(role_columns)) };
	int rv = view_each_role(cx, put_role, &l, e);

	(void)opts;
	(void)argc;
	(void)argv;
	table_end(l.table);
	return rv;
}

static int
put_role(const struct role *r, void *arg)
{
	struct listing *l = arg;

	table_put(l->table, r->name);
	table_put_number(l->table,
	    (int64_t)count_members(l->directory, r->name));
	if (r->port != 0)
		table_put_number(l->table, r->port);
	else
		table_put(l->table, NULL);
	table_put(l->table, r->balance);
	table_put(l->table, r->health);
	return 0;
}

static size_t
count_members(const struct directory *d, const char *role)
{
	const struct dir_node *node;
	size_t n = 0;

	for (size_t i = 0; (node = directory_at(d, i)) != NULL; i++)
		n += directory_node_has_role(node, role);
	return n;
}

static int
run_show(struct context *cx, const void *opts, int argc, char **argv,
    struct err *e)
{
	struct role r = { 0 };

	(void)opts;
	(void)argc;
	if (view_role(cx, argv[0], &r, e) == -1)
		return -1;
	if (output_is_json())
		output_json(json_pack("{s:s,s:b,s:o}", "name", r.name,
		    "predefined", r.predefined, "options",
		    fields_json(&role_options, &r)));
	else
		fields_print(&role_options, &r);
	return 0;
}

static int
run_add(struct context *cx, const void *opts, int argc, char **argv,
    struct err *e)
{
	struct registry *r = context_registry(cx);
	int rv;

	(void)argc;
	if (registry_begin(r, e, "add role %.64s", argv[0]) == -1)
		return -1;
	rv = roles_add(r, argv[0], e);
	if (rv == 0)
		rv =
		    fields_apply(&role_options, opts, r, argv[0], roles_set, e);
	if (registry_end(r, rv, e) == -1)
		return -1;
	return report_done(cx, "Role %s is added.", argv[0]);
}

static int
run_set(struct context *cx, const void *opts, int argc, char **argv,
    struct err *e)
{
	struct registry *r = context_registry(cx);
	struct role role;
	int rv;

	(void)argc;
	if (!fields_given(opts))
		return err_set(e, ERR_USAGE,
		    "role set: what shall be set? (see clusterctl help role "
		    "set)");
	if (registry_begin(r, e, "set role %.64s", argv[0]) == -1)
		return -1;
	rv = roles_get(r, argv[0], &role, e);
	if (rv == 0)
		rv =
		    fields_apply(&role_options, opts, r, argv[0], roles_set, e);
	if (registry_end(r, rv, e) == -1)
		return -1;
	return report_done(cx, "Role %s is changed.", argv[0]);
}

static int
run_remove(struct context *cx, const void *opts, int argc, char **argv,
    struct err *e)
{
	(void)opts;
	(void)argc;
	if (roles_remove(context_registry(cx), argv[0], e) == -1)
		return -1;
	return report_done(cx, "Role %s is removed.", argv[0]);
}
