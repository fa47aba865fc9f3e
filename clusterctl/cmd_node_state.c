/* cmd_node_state.c: drains nodes, takes them out for maintenance, and back. */
#include "clusterctl/command.h"

#include <stdlib.h>
#include <string.h>

#include "clusterctl/listing.h"
#include "clusterctl/report.h"
#include "common/base/io.h"
#include "common/registry/nodes.h"

static int run_drain(struct context *, const void *, int, char **,
    struct err *);
static int run_undrain(struct context *, const void *, int, char **,
    struct err *);
static int run_maintenance(struct context *, const void *, int, char **,
    struct err *);
static int move(struct context *, enum node_state, const char *done, int argc,
    char **argv, struct err *);
static int move_all(struct registry *, const struct nodeset *,
    const char *folded, enum node_state, struct err *);

const struct command cmd_node_drain = {
	.name = "node drain",
	.usage = "SET...",
	.summary = "no new work for these nodes; what runs there finishes",
	.examples = "  clusterctl node drain web[1-3]\n",
	.section = SECTION_NODES,
	.needs = NEEDS_REGISTRY | NEEDS_CLUSTER,
	.min_args = 1,
	.max_args = ANY_NUMBER,
	.run = run_drain,
};

const struct command cmd_node_undrain = {
	.name = "node undrain",
	.usage = "SET...",
	.summary = "these nodes take work again",
	.section = SECTION_NODES,
	.needs = NEEDS_REGISTRY | NEEDS_CLUSTER,
	.min_args = 1,
	.max_args = ANY_NUMBER,
	.run = run_undrain,
};

const struct command cmd_node_maintenance = {
	.name = "node maintenance",
	.usage = "on|off SET...",
	.summary =
	    "no work and no orders by role for these nodes, or both again",
	.about = "A node in maintenance is left out by exec -a and -r, unless "
		 "-A; by name it still\ntakes orders.\n",
	.section = SECTION_NODES,
	.needs = NEEDS_REGISTRY | NEEDS_CLUSTER,
	.min_args = 2,
	.max_args = ANY_NUMBER,
	.run = run_maintenance,
};

static int
run_drain(struct context *cx, const void *opts, int argc, char **argv,
    struct err *e)
{
	(void)opts;
	return move(cx, NODE_DRAIN, "drained", argc, argv, e);
}

static int
run_undrain(struct context *cx, const void *opts, int argc, char **argv,
    struct err *e)
{
	(void)opts;
	return move(cx, NODE_UP, "up", argc, argv, e);
}

static int
run_maintenance(struct context *cx, const void *opts, int argc, char **argv,
    struct err *e)
{
	bool on = strcmp(argv[0], "on") == 0;

	(void)opts;
	if (!on && strcmp(argv[0], "off") != 0)
		return err_set(e, ERR_USAGE,
		    "node maintenance: say on or off, not '%.40s'", argv[0]);
	return move(cx, on ? NODE_MAINTENANCE : NODE_UP,
	    on ? "in maintenance" : "up", argc - 1, argv + 1, e);
}

static int
move(struct context *cx, enum node_state to, const char *done, int argc,
    char **argv, struct err *e)
{
	struct nodeset *set;
	char *folded;
	int rv;

	if (listing_select(cx, NULL, argc, argv, &set, e) == -1)
		return -1;
	rv = nodeset_fold(set, ",", &folded, e);
	if (rv == 0) {
		rv = move_all(context_registry(cx), set, folded, to, e);
		if (rv == 0)
			report_done(cx, "%s: %s", folded, done);
		free(folded);
	}
	nodeset_free(set);
	return rv;
}

static int
move_all(struct registry *r, const struct nodeset *set, const char *folded,
    enum node_state to, struct err *e)
{
	struct nodeset_iter it;
	const char *name;
	int rv = 0;

	if (nodeset_count(set) == 0)
		return err_set(e, ERR_NO_TARGET, "no node is in that set");
	if (registry_begin(r, e, "%s: %.150s", node_state_name(to), folded) ==
	    -1)
		return -1;
	nodeset_iter_init(&it, set);
	while (rv == 0 && (name = nodeset_iter_next(&it)) != NULL)
		rv = nodes_set_state(r, name, to, e);
	return registry_end(r, rv, e);
}
