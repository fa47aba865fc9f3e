/* cmd_nodes.c: names of nodes, and which machines wait to become some. */
#include "clusterctl/command.h"

#include <stdio.h>
#include <string.h>

#include "clusterctl/listing.h"
#include "clusterctl/output.h"
#include "common/base/clock.h"
#include "common/base/io.h"
#include "common/net/cert.h"
#include "common/registry/tokens.h"

struct nodes_opts {
	struct opt_list roles;
	bool pending;
};

static const struct opt nodes_rows[] = {
	{ .name = "role",
	    .letter = 'r',
	    .type = OPT_LIST,
	    .arg = "ROLE",
	    .offset = offsetof(struct nodes_opts, roles),
	    .help = "only nodes with this role; repeated: with any of them" },
	{ .name = "pending",
	    .type = OPT_FLAG,
	    .offset = offsetof(struct nodes_opts, pending),
	    .help = "instead, machines that wait for an approval" },
};

static const struct column node_columns[] = {
	{ .title = "NODE", .key = "name" },
	{ .title = "STATE", .key = "state", .where = ON_TTY | ON_JSON },
	{ .title = "ROLES",
	    .key = "roles",
	    .kind = COLUMN_LIST,
	    .where = ON_TTY | ON_JSON },
	{ .title = "ADDRESS", .key = "address", .where = ON_TTY | ON_JSON },
	{ .title = "AGENT",
	    .key = "agent",
	    .kind = COLUMN_BOOL,
	    .where = ON_TTY | ON_JSON },
};

static const struct column pending_columns[] = {
	{ .title = "NAME", .key = "name" },
	{ .title = "FINGERPRINT", .key = "fingerprint" },
	{ .title = "ADDRESS", .key = "address" },
	{ .title = "SINCE", .key = "since" },
};

static int run_nodes(struct context *, const void *, int, char **,
    struct err *);
static void list_set(struct context *, const struct nodeset *);
static void put_node(struct table *, const struct dir_node *);
static int list_pending(struct context *, struct err *);
static int put_request(const struct join_request *, void *arg);

const struct command cmd_nodes = {
	.name = "nodes",
	.usage = "[--role ROLE | SET] [--pending]",
	.summary = "the nodes, or those of a role or a set",
	.about = "In a pipe it prints plain names, one a line.\n",
	.examples = "  clusterctl nodes -r worker_http\n"
		    "  clusterctl nodes '@worker_http!web[1-3]'\n"
		    "  clusterctl nodes --pending\n",
	.section = SECTION_NODES,
	.needs = NEEDS_CLUSTER,
	OPTS_OF(nodes_rows, struct nodes_opts),
	.max_args = ANY_NUMBER,
	.run = run_nodes,
};

static int
run_nodes(struct context *cx, const void *opts, int argc, char **argv,
    struct err *e)
{
	const struct nodes_opts *o = opts;
	struct nodeset *set;

	if (o->pending)
		return list_pending(cx, e);
	if (listing_select(cx, &o->roles, argc, argv, &set, e) == -1)
		return -1;
	list_set(cx, set);
	nodeset_free(set);
	return 0;
}

static void
list_set(struct context *cx, const struct nodeset *set)
{
	struct table *t = table_new(node_columns, nitems(node_columns));
	struct nodeset_iter it;
	const char *name;

	nodeset_iter_init(&it, set);
	while ((name = nodeset_iter_next(&it)) != NULL)
		put_node(t, directory_find(context_directory(cx), name));
	table_end(t);
}

static void
put_node(struct table *t, const struct dir_node *n)
{
	static const enum colour colours[] = { [NODE_UP] = COLOUR_NONE,
		[NODE_DRAIN] = COLOUR_YELLOW,
		[NODE_MAINTENANCE] = COLOUR_YELLOW };
	char at[ADDR_PLACE_MAX];

	directory_node_address(n, at);
	table_put(t, n->name);
	table_put(t, node_state_name(n->state));
	table_colour(t, colours[n->state]);
	table_put_list(t, n->roles, n->n_roles);
	table_put(t, at);
	table_put_bool(t, n->has_agent);
}

/* Who waits is known to the registry alone. */
static int
list_pending(struct context *cx, struct err *e)
{
	struct table *t;
	int rv;

	if (context_need(cx, NEEDS_REGISTRY, e) == -1)
		return -1;
	t = table_new(pending_columns, nitems(pending_columns));
	rv = pending_each(context_registry(cx), put_request, t, e);
	table_end(t);
	return rv;
}

static int
put_request(const struct join_request *q, void *arg)
{
	char fingerprint[FINGERPRINT_LEN + 1], since[32];
	struct table *t = arg;

	key_fingerprint(q->key, fingerprint);
	clock_format_utc(q->at_ms, since, sizeof(since));
	table_put(t, q->name);
	table_put(t, fingerprint);
	table_putf(t, "%s", q->addr);
	table_put(t, since);
	return 0;
}
