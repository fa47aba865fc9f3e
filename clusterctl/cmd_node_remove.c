/* cmd_node_remove.c: takes a node out of the cluster. */
#include "clusterctl/command.h"

#include <string.h>

#include "clusterctl/report.h"
#include "clusterctl/tell.h"
#include "common/registry/nodes.h"
#include "common/registry/roles.h"

static int run_remove(struct context *, const void *, int, char **,
    struct err *);
static bool is_last_master(const struct directory *, const struct dir_node *);

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
	const struct directory *d = context_directory(cx);
	const struct dir_node *n = directory_get(d, argv[0], e);
	bool had_agent;

	(void)opts;
	(void)argc;
	if (n == NULL)
		return -1;
	if (is_last_master(d, n))
		return err_set(e, ERR_USAGE,
		    "%s is the last master: without it nobody could change "
		    "the cluster",
		    n->name);
	had_agent = n->has_agent;
	if (nodes_remove(context_registry(cx), argv[0], e) == -1)
		return -1;
	report_done(cx, "Node %s is removed.", argv[0]);
	return had_agent ? tell_everybody(cx, argv[0]) : 0;
}

static bool
is_last_master(const struct directory *d, const struct dir_node *n)
{
	const struct dir_node *other;

	if (!directory_node_has_role(n, ROLE_MASTER))
		return false;
	for (size_t i = 0; (other = directory_at(d, i)) != NULL; i++)
		if (other != n && other->has_agent &&
		    directory_node_has_role(other, ROLE_MASTER))
			return false;
	return true;
}
