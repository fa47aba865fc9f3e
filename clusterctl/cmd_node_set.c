/* cmd_node_set.c: changes a node: its address, ports, weight; its name. */
#include "clusterctl/command.h"

#include <stdio.h>

#include "clusterctl/ports.h"
#include "clusterctl/report.h"
#include "common/base/addr.h"
#include "common/base/io.h"
#include "common/registry/nodes.h"

struct set_opts {
	const char *address;
	struct opt_list ports;
	struct field_values fields;
};

static const struct opt set_rows[] = {
	{ .name = "address",
	    .type = OPT_TEXT,
	    .arg = "IP[:PORT]|unix:/PATH",
	    .offset = offsetof(struct set_opts, address),
	    .help = "where it is; with PORT, where its agent listens" },
	{ .name = "port",
	    .type = OPT_LIST,
	    .arg = "ROLE=PORT",
	    .offset = offsetof(struct set_opts, ports),
	    .help = "where it serves a role; ROLE=role: at the role's port" },
};

static int run_set(struct context *, const void *, int, char **, struct err *);
static int run_rename(struct context *, const void *, int, char **,
    struct err *);
static int set_address(struct registry *, const char *name, const char *text,
    struct err *);

const struct command cmd_node_set = {
	.name = "node set",
	.usage = "NODE OPTION...",
	.summary = "change a node's address, ports, weight or limits",
	.examples = "  clusterctl node set web3 --weight 2 --maxconn 200\n"
		    "  clusterctl node set web3 --address 10.0.1.3\n",
	.section = SECTION_NODES,
	.needs = NEEDS_REGISTRY,
	OPTS_OF(set_rows, struct set_opts),
	.fields = &node_options,
	.fields_offset = offsetof(struct set_opts, fields),
	.min_args = 1,
	.max_args = 1,
	.run = run_set,
};

const struct command cmd_node_rename = {
	.name = "node rename",
	.usage = "NODE NEWNAME",
	.summary = "give a node another name; its identity stays",
	.section = SECTION_NODES,
	.needs = NEEDS_REGISTRY,
	.min_args = 2,
	.max_args = 2,
	.run = run_rename,
};

static int
run_set(struct context *cx, const void *opts, int argc, char **argv,
    struct err *e)
{
	struct registry *r = context_registry(cx);
	const struct set_opts *o = opts;
	struct node n;
	int rv;

	(void)argc;
	if (o->address == NULL && o->ports.n == 0 && !fields_given(&o->fields))
		return err_set(e, ERR_USAGE,
		    "node set: what shall be set? (see clusterctl help node "
		    "set)");
	if (registry_begin(r, e, "set node %s", argv[0]) == -1)
		return -1;
	rv = nodes_get(r, argv[0], &n, e);
	if (rv == 0 && o->address != NULL)
		rv = set_address(r, argv[0], o->address, e);
	if (rv == 0)
		rv = ports_apply(r, argv[0], &o->ports, e);
	if (rv == 0)
		rv = fields_apply(&node_options, &o->fields, r, argv[0],
		    nodes_set, e);
	if (registry_end(r, rv, e) == -1)
		return -1;
	return report_done(cx, "Node %s is changed.", argv[0]);
}

static int
set_address(struct registry *r, const char *name, const char *text,
    struct err *e)
{
	char ip[ADDR_TEXT_MAX], port[8];
	struct addr a;

	if (addr_unix_path(text) != NULL)
		return nodes_set(r, name, "address", text, e);
	if (addr_parse(text, 0, &a, e) == -1)
		return -1;
	addr_format_ip(&a, ip);
	if (nodes_set(r, name, "address", ip, e) == -1)
		return -1;
	if (addr_port(&a) == 0)
		return 0;
	snprintf(port, sizeof(port), "%u", addr_port(&a));
	return nodes_set(r, name, "agent_port", port, e);
}

static int
run_rename(struct context *cx, const void *opts, int argc, char **argv,
    struct err *e)
{
	(void)opts;
	(void)argc;
	if (nodes_rename(context_registry(cx), argv[0], argv[1], e) == -1)
		return -1;
	return report_done(cx, "Node %s is now called %s.", argv[0], argv[1]);
}
