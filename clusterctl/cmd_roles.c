/* cmd_roles.c: the roles of a node, without argument of this one. */
#include "clusterctl/command.h"

#include <stdio.h>
#include <string.h>

#include "clusterctl/output.h"
#include "common/base/clock.h"
#include "common/net/identity.h"

static int run_roles(struct context *, const void *, int, char **,
    struct err *);
static const struct dir_node *this_node(struct context *, struct err *);

const struct command cmd_roles = {
	.name = "roles",
	.usage = "[NODE]",
	.summary = "the roles of a node, without NODE of this one",
	.about = "One a line; nothing for a node without roles.\n",
	.section = SECTION_NODES,
	.needs = NEEDS_CLUSTER,
	.max_args = 1,
	.run = run_roles,
};

static int
run_roles(struct context *cx, const void *opts, int argc, char **argv,
    struct err *e)
{
	const struct dir_node *n = argc == 0 ?
	    this_node(cx, e) :
	    directory_get(context_directory(cx), argv[0], e);
	json_t *roles;

	(void)opts;
	if (n == NULL)
		return -1;
	if (!output_is_json()) {
		for (size_t i = 0; i < n->n_roles; i++)
			puts(n->roles[i]);
		return 0;
	}
	roles = json_array();
	for (size_t i = 0; i < n->n_roles; i++)
		json_array_append_new(roles, json_string(n->roles[i]));
	output_json(json_pack("{s:s,s:o}", "name", n->name, "roles", roles));
	return 0;
}

/* By its key: the name in the certificate may be an old one. */
static const struct dir_node *
this_node(struct context *cx, struct err *e)
{
	const struct directory *d = context_directory(cx);
	const struct dir_node *n = NULL;
	struct channel_identity id;

	if (identity_load(context_state(cx), CERT_NODE, clock_wall_ms() / 1000,
		&id, NULL, e) == -1 &&
	    e->code != ERR_EXPIRED && e->code != ERR_NOT_YET)
		return NULL;
	for (size_t i = 0; (n = directory_at(d, i)) != NULL; i++)
		if (n->has_agent && memcmp(n->key, id.public, KEY_SIZE) == 0)
			break;
	identity_wipe(&id);
	if (n == NULL)
		err_set(e, ERR_NO_TARGET,
		    "this machine is no node of the cluster any more: it was "
		    "removed");
	return n;
}
