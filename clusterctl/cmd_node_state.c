/* cmd_node_state.c: drains nodes, takes them out for maintenance, and back. */
#include "clusterctl/command.h"

#include <stdlib.h>
#include <string.h>

#include "clusterctl/drain_wait.h"
#include "clusterctl/listing.h"
#include "clusterctl/report.h"
#include "common/base/io.h"
#include "common/registry/nodes.h"

#define DEADLINE_MS 60000

struct drain_opts {
	bool wait;
	int64_t deadline_ms; /* 0: not given */
};

static const struct opt drain_rows[] = {
	{ .name = "wait",
	    .type = OPT_FLAG,
	    .offset = offsetof(struct drain_opts, wait),
	    .help = "until no proxy has a request under way there" },
	{ .name = "deadline",
	    .type = OPT_DURATION,
	    .arg = "TIME",
	    .max = 7 * 24 * 3600 * 1000UL,
	    .offset = offsetof(struct drain_opts, deadline_ms),
	    .help = "with --wait: give up after TIME (60s), with status 5" },
};

static int run_drain(struct context *, const void *, int, char **,
    struct err *);
static int run_undrain(struct context *, const void *, int, char **,
    struct err *);
static int run_maintenance(struct context *, const void *, int, char **,
    struct err *);
static int move(struct context *, enum node_state, const char *done,
    const struct drain_opts *, int argc, char **argv, struct err *);
static int wait_for(struct context *, const struct nodeset *,
    const struct drain_opts *, const char *folded, struct err *);
static int move_all(struct registry *, const struct nodeset *,
    const char *folded, enum node_state, struct err *);

const struct command cmd_node_drain = {
	.name = "node drain",
	.usage = "[--wait [--deadline TIME]] SET...",
	.summary = "no new work for these nodes; what runs there finishes",
	.about = "The proxies follow within a second.  With --wait the command "
		 "comes back when\nnothing is under way there any more; at the "
		 "deadline it says what still is, and\nthe nodes stay "
		 "drained.\n",
	.examples = "  clusterctl node drain web[1-3]\n"
		    "  clusterctl node drain web1 --wait --deadline 5m\n",
	.section = SECTION_NODES,
	.needs = NEEDS_REGISTRY | NEEDS_CLUSTER,
	OPTS_OF(drain_rows, struct drain_opts),
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
	const struct drain_opts *o = opts;

	if (o->deadline_ms > 0 && !o->wait)
		return err_set(e, ERR_USAGE,
		    "node drain: --deadline goes with --wait");
	return move(cx, NODE_DRAIN, "drained", o, argc, argv, e);
}

static int
run_undrain(struct context *cx, const void *opts, int argc, char **argv,
    struct err *e)
{
	(void)opts;
	return move(cx, NODE_UP, "up", NULL, argc, argv, e);
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
	    on ? "in maintenance" : "up", NULL, argc - 1, argv + 1, e);
}

/* o: whether to wait, too; NULL: not. */
static int
move(struct context *cx, enum node_state to, const char *done,
    const struct drain_opts *o, int argc, char **argv, struct err *e)
{
	struct nodeset *set;
	char *folded;
	int rv;

	if (listing_select(cx, NULL, argc, argv, &set, e) == -1)
		return -1;
	rv = nodeset_fold(set, ",", &folded, e);
	if (rv == 0) {
		rv = move_all(context_registry(cx), set, folded, to, e);
		if (rv == 0 && o != NULL && o->wait)
			rv = wait_for(cx, set, o, folded, e);
		if (rv == 0)
			report_done(cx, "%s: %s", folded, done);
		free(folded);
	}
	nodeset_free(set);
	return rv;
}

static int
wait_for(struct context *cx, const struct nodeset *set,
    const struct drain_opts *o, const char *folded, struct err *e)
{
	int64_t revision;
	int rv;

	if (registry_revision(context_registry(cx), &revision, e) == -1)
		return -1;
	rv = drain_wait(cx, set, revision,
	    o->deadline_ms > 0 ? o->deadline_ms : DEADLINE_MS, e);
	return rv == -1 ? err_wrap(e, "%s", folded) : rv;
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
