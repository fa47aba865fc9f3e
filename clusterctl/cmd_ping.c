/* cmd_ping.c: ping: whether nodes answer, and how fast. */
#include "clusterctl/command.h"

#include "clusterctl/ask.h"
#include "clusterctl/output.h"
#include "clusterctl/progress.h"
#include "clusterctl/targets.h"
#include "common/base/io.h"

struct ping_opts {
	struct target_opts targets;
	int64_t timeout_ms;
};

static const struct opt ping_rows[] = {
	{ .name = "timeout",
	    .letter = 'T',
	    .type = OPT_DURATION,
	    .arg = "TIME",
	    .max = 3600 * 1000,
	    .initial = "5s",
	    .offset = offsetof(struct ping_opts, timeout_ms),
	    .help = "give up a node that does not answer" },
};

static const struct opt_set ping_sets[] = {
	TARGET_OPTS(struct ping_opts),
	{ .title = "Options", .rows = ping_rows, .n = nitems(ping_rows) },
};

static const struct column columns[] = {
	{ .title = "NODE", .key = "node" },
	{ .title = "CLASS", .key = "class" },
	{ .title = "MS", .key = "ms", .kind = COLUMN_NUMBER },
	{ .title = "SKEW MS", .key = "skew_ms", .kind = COLUMN_NUMBER },
	{ .title = "WHY", .key = "error" },
};

static int run(struct context *, const void *, int, char **, struct err *);
static void answer(const struct task *, json_t *, void *);

const struct command cmd_ping = {
	.name = "ping",
	.usage = "[options] [SET]",
	.summary = "ask whether nodes answer",
	.about = "Without a target: all nodes.  Exit status 4 when one is "
		 "unreachable.\n",
	.examples = "  clusterctl ping -r worker_http\n",
	.section = SECTION_RUN,
	.needs = NEEDS_CLUSTER | NEEDS_OPERATOR,
	.sets = ping_sets,
	.n_sets = nitems(ping_sets),
	.opts_size = sizeof(struct ping_opts),
	.max_args = 1,
	.run = run,
};

static int
run(struct context *cx, const void *opts, int argc, char **argv, struct err *e)
{
	const struct ping_opts *o = opts;
	struct target_opts which = o->targets;
	struct ask ask = {
		.request = json_pack("{s:s}", "verb", "ping"),
		.connect_ms = o->timeout_ms,
		.limit_ms = o->timeout_ms,
		.show_progress = progress_possible(),
		.answer = answer,
	};
	struct targets t;
	int status = -1;

	if (argc == 0 && !targets_given(&which))
		which.even_maintenance = true;
	if (targets_resolve(cx, &which, argc > 0 ? argv[0] : NULL, &t, e) ==
	    0) {
		ask.arg = table_new(columns, nitems(columns));
		if (ask_nodes(cx, t.nodes, t.n, &ask, &status, e) == -1)
			status = -1;
		table_end(ask.arg);
		targets_fini(&t);
	}
	json_decref(ask.request);
	return status;
}

static void
answer(const struct task *t, json_t *reply, void *arg)
{
	struct table *table = arg;
	char why[200];

	table_put(table, t->node->name);
	table_put(table, outcome_word(t->result.outcome));
	if (reply == NULL) {
		table_colour(table, COLOUR_RED);
		table_put(table, NULL);
		table_put(table, NULL);
		result_sentence(&t->result, why, sizeof(why));
		table_put(table, why);
		return;
	}
	table_colour(table, COLOUR_GREEN);
	table_put_number(table, t->ended_ms - t->started_ms);
	table_put_number(table, t->skew_ms);
	table_put(table, output_is_json() ? NULL : "");
}
