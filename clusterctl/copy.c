/* copy.c: see copy.h. */
#include "clusterctl/copy.h"

#include <stdio.h>
#include <string.h>

#include "clusterctl/order_log.h"
#include "clusterctl/output.h"
#include "clusterctl/progress.h"
#include "clusterctl/utf8.h"
#include "common/base/io.h"
#include "common/base/text.h"

static const struct opt copy_rows[] = {
	{ .name = "quiet",
	    .letter = 'q',
	    .type = OPT_FLAG,
	    .offset = offsetof(struct copy_opts, quiet),
	    .help = "no progress, no summary" },
};

const struct opt_set copy_sets[N_COPY_SETS] = {
	TARGET_OPTS(struct copy_opts),
	PACE_OPTS(struct copy_opts),
	{ .title = "What is said", .rows = copy_rows, .n = nitems(copy_rows) },
};

static int perform(struct copy *, const struct targets *,
    const struct fanout_job *, struct err *);
static void summary(const struct copy *, const struct targets *);
static void print_json(const struct task *, const struct copy_sum *);

int
copy_n_leading(const void *opts)
{
	const struct copy_opts *o = opts;

	return targets_given(&o->targets) ? 0 : 1;
}

const char *
copy_target(const struct copy_opts *o, int *argc, char ***argv)
{
	const char *set;

	if (targets_given(&o->targets))
		return NULL;
	set = **argv;
	--*argc;
	++*argv;
	return set;
}

int
copy_check_path(const char *what, const char *path, struct err *e)
{
	char shown[200];

	if (*path != '/')
		return err_set(e, ERR_USAGE,
		    "%s is a path on the nodes and begins with '/', unlike "
		    "'%.100s'",
		    what, path);
	if (text_is_utf8(path, strlen(path)))
		return 0;
	utf8_quote(path, shown, sizeof(shown));
	return err_set(e, ERR_USAGE, "%s %s is not UTF-8", what, shown);
}

int
copy_run(struct copy *c, const char *set, const struct fanout_job *job,
    struct err *e)
{
	struct targets t;
	int status;

	if (targets_resolve(c->cx, &c->opts->targets, set, &t, e) == -1)
		return -1;
	status = perform(c, &t, job, e);
	targets_fini(&t);
	return status;
}

void
copy_ended(struct task *t, struct copy *c)
{
	const struct copy_part *part = t->own;

	c->sum.n_copied += part->sum.n_copied;
	c->sum.n_same += part->sum.n_same;
	if (output_is_json())
		print_json(t, &part->sum);
}

void
copy_progress(char *buf, size_t size, void *arg)
{
	const struct copy *c = arg;
	char bytes[16];

	text_format_size(c->sum.bytes, bytes, sizeof(bytes));
	snprintf(buf, size, "%s moved", bytes);
}

static int
perform(struct copy *c, const struct targets *t, const struct fanout_job *job,
    struct err *e)
{
	struct fanout_plan plan = {
		.nodes = t->nodes,
		.n = t->n,
		.show_progress = !c->opts->quiet && progress_possible(),
		.job = job,
		.arg = c,
	};
	struct fanout *f;
	struct order order;
	int status = -1;

	if (pace_apply(&c->opts->pace, &plan, e) == -1 ||
	    (f = fanout_new(c->cx, &plan, e)) == NULL)
		return -1;
	if (order_log_begin(c->cx, c->verb, t, &order, e) == 0 &&
	    fanout_run(f, e) == 0) {
		status = fanout_exit_status(f);
		for (size_t i = 0; output_is_json() && i < t->n; i++)
			if (fanout_task(f, i)->started_ms == 0)
				print_json(fanout_task(f, i),
				    &(struct copy_sum){ 0 });
		if (!c->opts->quiet) {
			fanout_summary(f);
			summary(c, t);
		}
		order_log_end(c->cx, &order, f, status);
	}
	fanout_free(f);
	return status;
}

static void
summary(const struct copy *c, const struct targets *t)
{
	char bytes[16];

	text_format_size(c->sum.bytes, bytes, sizeof(bytes));
	output_note("%s: %llu copied (%s), %llu the same already, %zu "
		    "node%s",
	    c->verb, (unsigned long long)c->sum.n_copied, bytes,
	    (unsigned long long)c->sum.n_same, t->n, t->n == 1 ? "" : "s");
}

/* {node, class, copied, same, bytes, seconds, error} */
static void
print_json(const struct task *t, const struct copy_sum *sum)
{
	const struct result *r = &t->result;

	output_json(json_pack("{s:s, s:s, s:I, s:I, s:I, s:f, s:s*}", "node",
	    t->node->name, "class", outcome_word(r->outcome), "copied",
	    (json_int_t)sum->n_copied, "same", (json_int_t)sum->n_same, "bytes",
	    (json_int_t)sum->bytes, "seconds",
	    (double)(t->ended_ms - t->started_ms) / 1000, "error",
	    r->why.text[0] != '\0' ? r->why.text : NULL));
}
