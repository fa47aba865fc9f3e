/* tell.c: see tell.h. */
#include "clusterctl/tell.h"

#include <stdlib.h>

#include "clusterctl/ask.h"
#include "clusterctl/output.h"
#include "clusterctl/progress.h"
#include "clusterctl/xalloc.h"
#include "common/registry/registry.h"

struct telling {
	struct nodeset *untold;
	struct err why; /* of the last of them */
	struct err e;
};

static size_t list_agents(const struct context *, const struct dir_node **);
static int ask_all(struct context *, int64_t revision, struct telling *);
static void answered(const struct task *, json_t *reply, void *arg);
static void say_untold(const struct telling *);

int
tell_everybody(struct context *cx)
{
	struct telling t = { .untold = nodeset_new() };
	int64_t revision;
	int status = -1;

	if (t.untold == NULL)
		err_set(&t.e, ERR_LOCAL, "out of memory");
	else if (registry_revision(context_registry(cx), &revision, &t.e) ==
		0 &&
	    context_be_node(cx, &t.e) == 0)
		status = ask_all(cx, revision, &t);
	if (status == -1) {
		output_note("the nodes hear of it within a minute; they could "
			    "not be told now: %s",
		    t.e.text);
		status = err_exit_status(t.e.code);
	} else
		say_untold(&t);
	nodeset_free(t.untold);
	return status;
}

static int
ask_all(struct context *cx, int64_t revision, struct telling *t)
{
	size_t n_all = directory_n_nodes(context_directory(cx));
	const struct dir_node **nodes = xcalloc(n_all + 1, sizeof(*nodes));
	struct ask ask = {
		.request = json_pack("{s:s,s:I}", "verb", "sync", "revision",
		    (json_int_t)revision),
		.show_progress = progress_possible(),
		.answer = answered,
		.arg = t,
	};
	size_t n = list_agents(cx, nodes);
	int status = 0;

	if (n > 0 && ask_nodes(cx, nodes, n, &ask, &status, &t->e) == -1)
		status = -1;
	json_decref(ask.request);
	free(nodes);
	return status;
}

/* The directory is older than the change: whoever was removed by it is no
 * longer asked. */
static size_t
list_agents(const struct context *cx, const struct dir_node **nodes)
{
	const struct dir_node *node;
	struct node now;
	struct err gone;
	size_t n = 0;

	for (size_t i = 0;
	     (node = directory_at(context_directory(cx), i)) != NULL; i++)
		if (node->has_agent &&
		    nodes_get(context_registry(cx), node->name, &now, &gone) ==
			0)
			nodes[n++] = node;
	return n;
}

static void
answered(const struct task *task, json_t *reply, void *arg)
{
	struct telling *t = arg;

	if (reply != NULL)
		return;
	t->why = task->result.why;
	(void)nodeset_add(t->untold, task->node->name, &t->e);
}

static void
say_untold(const struct telling *t)
{
	size_t n = nodeset_count(t->untold);
	struct err e;
	char *folded;

	if (n == 0 || nodeset_fold(t->untold, ",", &folded, &e) == -1)
		return;
	output_note("%s could not be told yet (%s); %s it at the next talk "
		    "with a master",
	    folded, t->why.text, n == 1 ? "it learns" : "they learn");
	free(folded);
}
