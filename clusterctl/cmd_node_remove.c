/* cmd_node_remove.c: takes a node out of the cluster. */
#include "clusterctl/command.h"

#include "clusterctl/report.h"
#include "clusterctl/tell.h"
#include "common/registry/nodes.h"

static int run_remove(struct context *, const void *, int, char **,
    struct err *);

const struct command cmd_node_remove = {
	.name = "node remove",
	.usage = "NODE",
	.summary = "take a node out: its certificate is revoked, now",
	.about = "Every other agent is told at once.  Nothing passes to a "
		 "later node of that name,\nwhich needs a new token.\n",
	.section = SECTION_NODES,
	.needs = NEEDS_REGISTRY | NEEDS_CLUSTER,
	.min_args = 1,
	.max_args = 1,
	.run = run_remove,
};

static int
run_remove(struct context *cx, const void *opts, int argc, char **argv,
    struct err *e)
{
	const struct dir_node *n =
	    directory_get(context_directory(cx), argv[0], e);
	bool had_agent;

	(void)opts;
	(void)argc;
	if (n == NULL)
		return -1;
	had_agent = n->has_agent;
	if (nodes_remove(context_registry(cx), argv[0], e) == -1)
		return -1;
	report_done(cx, "Node %s is removed.", argv[0]);
	return had_agent ? tell_everybody(cx) : 0;
}
