/* cmd_node_role.c: gives roles to nodes and takes them. */
#include "clusterctl/command.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "clusterctl/listing.h"
#include "clusterctl/report.h"
#include "common/registry/nodes.h"

static int run_role(struct context *, const void *, int, char **, struct err *);
static int change(struct context *, bool add, const struct nodeset *, int argc,
    char **roles, struct err *);

const struct command cmd_node_role = {
	.name = "node role",
	.usage = "add|del SET ROLE...",
	.summary = "give roles to nodes, or take them",
	.examples = "  clusterctl node role add web[1-3] storage\n"
		    "  clusterctl node role del web3 worker_http\n",
	.section = SECTION_NODES,
	.needs = NEEDS_REGISTRY | NEEDS_CLUSTER,
	.min_args = 3,
	.max_args = ANY_NUMBER,
	.run = run_role,
};

static int
run_role(struct context *cx, const void *opts, int argc, char **argv,
    struct err *e)
{
	bool add = strcmp(argv[0], "add") == 0;
	struct nodeset *set;
	int rv;

	(void)opts;
	if (!add && strcmp(argv[0], "del") != 0)
		return err_set(e, ERR_USAGE,
		    "node role: say add or del, not '%.40s'", argv[0]);
	if (listing_select(cx, NULL, 1, argv + 1, &set, e) == -1)
		return -1;
	rv = change(cx, add, set, argc - 2, argv + 2, e);
	nodeset_free(set);
	return rv;
}

static int
change(struct context *cx, bool add, const struct nodeset *set, int argc,
    char **roles, struct err *e)
{
	struct registry *r = context_registry(cx);
	struct nodeset_iter it;
	const char *name;
	char *folded;
	int rv = 0;

	if (nodeset_count(set) == 0)
		return err_set(e, ERR_NO_TARGET, "no node is in that set");
	if (nodeset_fold(set, ",", &folded, e) == -1)
		return -1;
	if (registry_begin(r, e, "%s %.100s: %s%s", add ? "give" : "take from",
		folded, roles[0], argc > 1 ? " ..." : "") == -1) {
		free(folded);
		return -1;
	}
	nodeset_iter_init(&it, set);
	while (rv == 0 && (name = nodeset_iter_next(&it)) != NULL)
		for (int i = 0; i < argc && rv == 0; i++)
			rv = add ? nodes_add_role(r, name, roles[i], e) :
				   nodes_remove_role(r, name, roles[i], e);
	rv = registry_end(r, rv, e);
	if (rv == 0)
		report_done(cx, "%s: roles changed", folded);
	free(folded);
	return rv;
}
