/* cmd_node_add.c: registers a node without an agent, a plain backend. */
#include "clusterctl/command.h"

#include <stdio.h>

#include "clusterctl/ports.h"
#include "clusterctl/report.h"
#include "common/base/addr.h"
#include "common/base/io.h"
#include "common/registry/nodes.h"

struct add_opts {
	struct opt_list roles, ports;
	struct field_values fields;
};

static const struct opt add_rows[] = {
	{ .name = "role",
	    .letter = 'r',
	    .type = OPT_LIST,
	    .arg = "ROLE",
	    .offset = offsetof(struct add_opts, roles),
	    .help = "a role that it has; may be repeated" },
	{ .name = "port",
	    .type = OPT_LIST,
	    .arg = "ROLE=PORT",
	    .offset = offsetof(struct add_opts, ports),
	    .help = "where it serves a role, if not at the role's port" },
};

static int run_add(struct context *, const void *, int, char **, struct err *);
static int enter(struct registry *, const struct add_opts *,
    const struct node *, struct err *);

const struct command cmd_node_add = {
	.name = "node add",
	.usage = "NAME ADDRESS --role ROLE... [options]",
	.summary = "register a node without an agent (a plain backend)",
	.about = "The proxy sends it work; orders cannot reach it.  A machine "
		 "that shall have an\nagent is enrolled instead (clusterctl "
		 "enroll).  unix:/PATH is a program on the\nproxy's own "
		 "machine, whose socket the account proxy.user may connect "
		 "to.\n",
	.examples = "  clusterctl node add old1 10.0.0.9 --role worker_http "
		    "--port worker_http=8081\n"
		    "  clusterctl node add php unix:/run/app.sock --role "
		    "worker_http\n",
	.section = SECTION_NODES,
	.needs = NEEDS_REGISTRY,
	OPTS_OF(add_rows, struct add_opts),
	.fields = &node_options,
	.fields_offset = offsetof(struct add_opts, fields),
	.min_args = 2,
	.max_args = 2,
	.run = run_add,
};

static int
run_add(struct context *cx, const void *opts, int argc, char **argv,
    struct err *e)
{
	const struct add_opts *o = opts;
	struct addr a;
	struct node n;

	(void)argc;
	if (name_check("node name", argv[0], e) == -1)
		return -1;
	node_init(&n, argv[0]);
	if (addr_place(argv[1], n.addr, e) == -1)
		return -1;
	if (addr_parse(argv[1], 0, &a, e) == 0 && addr_port(&a) != 0)
		return err_set(e, ERR_USAGE,
		    "'%.60s' has a port: a backend's ports go by role "
		    "(--port ROLE=PORT)",
		    argv[1]);
	if (fields_store(&node_options, &o->fields, &n, e) == -1 ||
	    enter(context_registry(cx), o, &n, e) == -1)
		return -1;
	return report_done(cx, "Node %s is registered.", n.name);
}

static int
enter(struct registry *r, const struct add_opts *o, const struct node *n,
    struct err *e)
{
	int rv;

	if (registry_begin(r, e, "add node %s", n->name) == -1)
		return -1;
	rv = nodes_add(r, n, e);
	for (size_t i = 0; i < o->roles.n && rv == 0; i++)
		rv = nodes_add_role(r, n->name, o->roles.v[i], e);
	if (rv == 0)
		rv = ports_apply(r, n->name, &o->ports, e);
	return registry_end(r, rv, e);
}
