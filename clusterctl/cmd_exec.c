/* cmd_exec.c: exec: a command on many nodes at once. */
#include "clusterctl/command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clusterctl/exec.h"
#include "clusterctl/order_log.h"
#include "clusterctl/output.h"
#include "clusterctl/progress.h"
#include "clusterctl/view.h"
#include "common/base/io.h"
#include "common/base/text.h"

#define DAY_MS (24 * 3600 * 1000LL)

/* How long after a node's own time-out its answer may take. */
#define ANSWER_MS 10000

#define AT(field) .offset = offsetof(struct exec_opts, field)

static const struct opt what_rows[] = {
	{ .name = "shell",
	    .type = OPT_FLAG,
	    AT(shell),
	    .help = "the first word is a line for /bin/sh, the rest its "
		    "$1, $2 ..." },
	{ .name = "argv",
	    .type = OPT_FLAG,
	    AT(argv),
	    .help = "a single word is a program, not a line for the shell" },
	{ .name = "user",
	    .letter = 'l',
	    .type = OPT_TEXT,
	    .arg = "NAME",
	    AT(user),
	    .help = "run as this account" },
	{ .name = "cwd",
	    .letter = 'C',
	    .type = OPT_TEXT,
	    .arg = "DIR",
	    AT(cwd),
	    .help = "run in this directory" },
	{ .name = "env",
	    .letter = 'e',
	    .type = OPT_LIST,
	    .arg = "NAME=VALUE",
	    AT(env),
	    .help = "set in its environment" },
	{ .name = "pty",
	    .letter = 't',
	    .type = OPT_FLAG,
	    AT(pty),
	    .help = "one node: give it this terminal" },
	{ .name = "on-disconnect",
	    .type = OPT_CHOICE,
	    .arg = "kill|keep",
	    .choices = "kill|keep",
	    AT(on_disconnect),
	    .help = "what becomes of it when this program dies (default "
		    "kill)" },
	{ .name = "timeout",
	    .letter = 'T',
	    .type = OPT_TEXT,
	    .arg = "TIME",
	    AT(timeout),
	    .help = "end it there after this time (30s, 5m; 0: never; "
		    "default: the setting exec.timeout)" },
	{ .name = "dry-run",
	    .type = OPT_FLAG,
	    AT(dry_run),
	    .help = "say what would run where; contact nobody" },
};

static const struct opt said_rows[] = {
	{ .name = "gather",
	    .letter = 'g',
	    .type = OPT_FLAG,
	    AT(gather),
	    .help = "fold equal output under one node set" },
	{ .name = "prefix",
	    .letter = 'L',
	    .type = OPT_FLAG,
	    AT(prefix),
	    .help = "as -g, with the node set before each line" },
	{ .name = "diff",
	    .letter = 'd',
	    .type = OPT_FLAG,
	    AT(diff),
	    .help = "show how output differs from that of most nodes" },
	{ .name = "no-label",
	    .letter = 'N',
	    .type = OPT_FLAG,
	    AT(no_label),
	    .help = "output without the nodes' names" },
	{ .name = "outdir",
	    .letter = 'o',
	    .type = OPT_TEXT,
	    .arg = "DIR",
	    AT(outdir),
	    .help = "standard output of each node into DIR/NODE" },
	{ .name = "errdir",
	    .letter = 'E',
	    .type = OPT_TEXT,
	    .arg = "DIR",
	    AT(errdir),
	    .help = "the same for standard error" },
	{ .name = "quiet",
	    .letter = 'q',
	    .type = OPT_FLAG,
	    AT(quiet),
	    .help = "no progress, no summary" },
	{ .name = "remote-status",
	    .letter = 'S',
	    .type = OPT_FLAG,
	    AT(remote_status),
	    .help = "leave with the largest exit status of a node" },
};

static const struct opt_set exec_sets[] = {
	TARGET_OPTS(struct exec_opts),
	{ .title = "What runs", .rows = what_rows, .n = nitems(what_rows) },
	PACE_OPTS(struct exec_opts),
	{ .title = "What is said", .rows = said_rows, .n = nitems(said_rows) },
};

static int n_leading(const void *);
static int run(struct context *, const void *, int, char **, struct err *);
static int check(const struct exec_opts *, int argc, struct err *);
static int set_timeout(struct exec *, struct err *);
static int perform(struct exec *, const struct targets *, int argc, char **argv,
    struct err *);
static int plan(const struct exec *, const struct targets *,
    struct fanout_plan *, struct err *);
static int begin(struct exec *, const struct targets *, int argc, char **argv,
    struct err *);
static int exit_status(const struct exec *);
static int dry_run(const struct targets *, int argc, char **argv);

const struct command cmd_exec = {
	.name = "exec",
	.usage = "[options] [SET] COMMAND [ARGUMENT...]",
	.summary = "run a command on many nodes at once",
	.about =
	    "The first word is a node set unless an option names targets.  "
	    "One\n"
	    "argument is a line for the shell, several are executed as they\n"
	    "stand.  Standard input, unless it is a terminal, goes to every\n"
	    "node.  Ctrl-C shows who still runs; again, it ends them.\n"
	    "\n"
	    "Exit status: 0 all ok, 1 a command failed, 3 no such target,\n"
	    "4 unreachable, 5 timed out, 6 too many failed, 7 denied,\n"
	    "8 a failure here, 130 interrupted.\n",
	.examples =
	    "  clusterctl exec web[1-8] uptime\n"
	    "  clusterctl exec -r worker_http -g 'df -h / | tail -1'\n"
	    "  clusterctl exec -r worker_http --batch 25% --max-fail 1 \\\n"
	    "      systemctl restart apache2\n"
	    "  clusterctl exec -t web1 top\n",
	.section = SECTION_RUN,
	.needs = NEEDS_CLUSTER | NEEDS_OPERATOR,
	.sets = exec_sets,
	.n_sets = nitems(exec_sets),
	.opts_size = sizeof(struct exec_opts),
	.min_args = 1,
	.max_args = ANY_NUMBER,
	.n_leading = n_leading,
	.run = run,
};

/* The target, when no option names one. */
static int
n_leading(const void *opts)
{
	const struct exec_opts *o = opts;

	return targets_given(&o->targets) ? 0 : 1;
}

static int
run(struct context *cx, const void *opts, int argc, char **argv, struct err *e)
{
	const struct exec_opts *o = opts;
	struct exec x = { .opts = o, .cx = cx };
	const char *set = NULL;
	struct targets t;
	int status;

	if (!targets_given(&o->targets)) {
		set = argv[0];
		argc--;
		argv++;
	}
	if (check(o, argc, e) == -1 || set_timeout(&x, e) == -1 ||
	    targets_resolve(cx, &o->targets, set, &t, e) == -1)
		return -1;
	if (o->dry_run)
		status = dry_run(&t, argc, argv);
	else
		status = perform(&x, &t, argc, argv, e);
	targets_fini(&t);
	return status;
}

static int
check(const struct exec_opts *o, int argc, struct err *e)
{
	bool folded = o->gather || o->prefix || o->diff;

	if (argc == 0)
		return err_set(e, ERR_USAGE,
		    "what should run there? usage: clusterctl exec %s",
		    cmd_exec.usage);
	if (o->shell && o->argv)
		return err_set(e, ERR_USAGE,
		    "--shell and --argv exclude "
		    "each other");
	if (folded && (output_is_json() || o->outdir != NULL))
		return err_set(e, ERR_USAGE,
		    "-g, -L and --diff do not go with %s",
		    output_is_json() ? "--json" : "--outdir");
	if (o->pty &&
	    (folded || output_is_json() || o->outdir != NULL ||
		o->errdir != NULL))
		return err_set(e, ERR_USAGE,
		    "--pty shows what the command "
		    "shows: no -g, -L, --diff, --json, --outdir, --errdir");
	return 0;
}

static int
set_timeout(struct exec *x, struct err *e)
{
	struct settings settings;

	if (x->opts->timeout != NULL)
		return text_parse_duration("--timeout", x->opts->timeout,
		    366 * DAY_MS, &x->timeout_ms, e);
	if (view_settings(x->cx, &settings, e) == -1)
		return -1;
	x->timeout_ms = settings.exec_timeout_ms;
	return 0;
}

static int
perform(struct exec *x, const struct targets *t, int argc, char **argv,
    struct err *e)
{
	struct fanout_plan p;
	struct order order;
	bool unread = false;
	int status = -1;

	if (plan(x, t, &p, e) == -1 || begin(x, t, argc, argv, e) == -1)
		goto out;
	p.arg = x;
	if ((x->fanout = fanout_new(x->cx, &p, e)) == NULL ||
	    order_log_begin(x->cx, "exec", t, &order, e) == -1)
		goto out;
	if (fanout_run(x->fanout, e) == 0 &&
	    (x->output == NULL ||
		exec_output_finish(x->output, x->fanout, e) == 0))
		status = exit_status(x);
	unread = x->output != NULL && exec_output_unread(x->output);
	if (!x->opts->quiet && !unread)
		fanout_summary(x->fanout);
	order_log_end(x->cx, &order, x->fanout,
	    status >= 0 ? status : err_exit_status(e->code));
out:
	exec_stdin_free(x->input, x->stdin_used);
	exec_pty_free(x->pty);
	exec_output_free(x->output);
	fanout_free(x->fanout);
	free(x->request);
	if (unread)
		output_reader_gone();
	return status;
}

static int
plan(const struct exec *x, const struct targets *t, struct fanout_plan *p,
    struct err *e)
{
	const struct exec_opts *o = x->opts;

	*p = (struct fanout_plan){
		.nodes = t->nodes,
		.n = t->n,
		.limit_ms = x->timeout_ms > 0 ? x->timeout_ms + ANSWER_MS : 0,
		.limit_outcome = OUTCOME_LOST,
		.show_progress =
		    t->n > 1 && !o->quiet && !o->pty && progress_possible(),
		.job = &exec_job,
	};
	return pace_apply(&o->pace, p, e);
}

/* What the run needs here, and the request. */
static int
begin(struct exec *x, const struct targets *t, int argc, char **argv,
    struct err *e)
{
	const struct exec_opts *o = x->opts;

	if (o->pty && t->n != 1)
		return err_set(e, ERR_USAGE,
		    "--pty is for one node, and these are %zu: %.120s", t->n,
		    t->folded);
	if (o->pty) {
		if ((x->pty = exec_pty_new(x->cx, e)) == NULL)
			return -1;
	} else {
		x->output = exec_output_new(o, t->nodes, t->n, e);
		if (x->output == NULL)
			return -1;
		if (!o->targets.no_stdin && exec_stdin_there() &&
		    (x->input = exec_stdin_new(x->cx, e)) == NULL)
			return -1;
	}
	x->request = exec_request(x, argc, argv, e);
	return x->request != NULL ? 0 : -1;
}

static int
exit_status(const struct exec *x)
{
	int status = fanout_exit_status(x->fanout);

	if (x->opts->remote_status && !fanout_interrupted(x->fanout) &&
	    x->worst_status > 0)
		return x->worst_status;
	return status;
}

static int
dry_run(const struct targets *t, int argc, char **argv)
{
	char *command = context_quote(argc, argv);
	json_t *nodes;

	if (output_is_json()) {
		nodes = json_array();
		for (size_t i = 0; i < t->n; i++)
			json_array_append_new(nodes,
			    json_string(t->nodes[i]->name));
		output_json(json_pack("{s:o, s:s}", "nodes", nodes, "command",
		    command));
	} else {
		printf("would run on %s (%zu): %s\n", t->folded, t->n, command);
	}
	free(command);
	return 0;
}
