/* exec_output.c: see exec_output.h. */
#include "clusterctl/exec_output.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clusterctl/diff.h"
#include "clusterctl/exec.h"
#include "clusterctl/gather.h"
#include "clusterctl/json_text.h"
#include "clusterctl/output.h"
#include "clusterctl/progress.h"
#include "clusterctl/xalloc.h"
#include "common/base/io.h"

/* What one form does with one stream of one node. */
struct form {
	int (*start)(struct exec_output *, struct exec_flow *,
	    const struct task *, enum exec_stream, struct err *);
	int (*put)(struct exec_output *, struct exec_flow *,
	    const struct task *, const void *, size_t, struct err *);
	int (*end)(struct exec_flow *, struct err *);
	unsigned n_fds; /* of each node */
};

struct exec_output {
	const struct exec_opts *opts;
	const struct form *form[N_EXEC_STREAMS];
	struct sink sink[N_EXEC_STREAMS];
	struct gather *gather;
	const char **names; /* of the tasks; borrowed */
};

static int live_start(struct exec_output *, struct exec_flow *,
    const struct task *, enum exec_stream, struct err *);
static int live_put(struct exec_output *, struct exec_flow *,
    const struct task *, const void *, size_t, struct err *);
static int live_end(struct exec_flow *, struct err *);
static int fold_put(struct exec_output *, struct exec_flow *,
    const struct task *, const void *, size_t, struct err *);
static int spool_piece(struct exec_output *, struct exec_flow *,
    const struct task *, const void *, size_t, struct err *);
static int file_start(struct exec_output *, struct exec_flow *,
    const struct task *, enum exec_stream, struct err *);
static int file_put(struct exec_output *, struct exec_flow *,
    const struct task *, const void *, size_t, struct err *);

/* As they come, line by line, with labels. */
static const struct form form_live = { live_start, live_put, live_end, 0 };
/* Equal output once, at the end (gather.h). */
static const struct form form_fold = { NULL, fold_put, NULL, 0 };
/* Kept until the node has ended, then part of its JSON object. */
static const struct form form_json = { NULL, spool_piece, NULL, 1 };
/* D/NODE. */
static const struct form form_file = { file_start, file_put, NULL, 1 };

static const struct form *choose(const struct exec_opts *, enum exec_stream);
static const char *directory_of(const struct exec_opts *, enum exec_stream);
static int prepare(struct exec_output *, size_t n, struct err *);
static int print_json(struct exec_streams *, const struct task *,
    double seconds, struct err *);
static void release(struct exec_streams *);
static int print_gathered(struct exec_output *, struct err *);
static int write_lists(const char *dir, struct fanout *, struct err *);
static int write_list(const char *dir, const char *name, struct fanout *,
    bool succeeded, struct err *);

struct exec_output *
exec_output_new(const struct exec_opts *opts,
    const struct dir_node *const *nodes, size_t n, struct err *e)
{
	struct exec_output *o = xcalloc(1, sizeof(*o));

	o->opts = opts;
	o->names = xcalloc(n, sizeof(*o->names));
	for (size_t i = 0; i < n; i++)
		o->names[i] = nodes[i]->name;
	sink_init(&o->sink[EXEC_STDOUT], STDOUT_FILENO);
	sink_init(&o->sink[EXEC_STDERR], STDERR_FILENO);
	for (int s = 0; s < N_EXEC_STREAMS; s++)
		o->form[s] = choose(opts, s);
	if (prepare(o, n, e) == 0)
		return o;
	exec_output_free(o);
	return NULL;
}

void
exec_output_free(struct exec_output *o)
{
	if (o == NULL)
		return;
	gather_free(o->gather);
	for (int s = 0; s < N_EXEC_STREAMS; s++)
		sink_fini(&o->sink[s]);
	free(o->names);
	free(o);
}

unsigned
exec_output_n_fds(const struct exec_opts *opts)
{
	return choose(opts, EXEC_STDOUT)->n_fds +
	    choose(opts, EXEC_STDERR)->n_fds;
}

void
exec_streams_init(struct exec_streams *st)
{
	memset(st, 0, sizeof(*st));
	for (int s = 0; s < N_EXEC_STREAMS; s++) {
		st->flow[s].fd = -1;
		spool_init(&st->flow[s].spool);
	}
}

int
exec_output_start(struct exec_output *o, struct exec_streams *st,
    const struct task *t, struct err *e)
{
	for (int s = 0; s < N_EXEC_STREAMS; s++)
		if (o->form[s]->start != NULL &&
		    o->form[s]->start(o, &st->flow[s], t, s, e) == -1)
			return -1;
	return 0;
}

int
exec_output_put(struct exec_output *o, struct exec_streams *st,
    const struct task *t, enum exec_stream s, const void *bytes, size_t n,
    struct err *e)
{
	st->flow[s].bytes += n;
	return o->form[s]->put(o, &st->flow[s], t, bytes, n, e);
}

int
exec_output_end(struct exec_output *o, struct exec_streams *st,
    const struct task *t, double seconds, struct err *e)
{
	int rv = 0;

	for (int s = 0; s < N_EXEC_STREAMS; s++)
		if (o->form[s]->end != NULL &&
		    o->form[s]->end(&st->flow[s], e) == -1)
			rv = -1;
	/* It has answered, if with nothing: it belongs to a group. */
	if (rv == 0 && o->gather != NULL &&
	    (t->result.outcome == OUTCOME_OK ||
		t->result.outcome == OUTCOME_FAILED))
		rv = gather_put(o->gather, t->index, NULL, 0, e);
	if (rv == 0 && output_is_json())
		rv = print_json(st, t, seconds, e);
	release(st);
	return rv;
}

int
exec_output_finish(struct exec_output *o, struct fanout *f, struct err *e)
{
	progress_clear();
	/* A JSON object for those that never got a session, too. */
	for (size_t i = 0; output_is_json() && i < fanout_n(f); i++) {
		struct task *t = fanout_task(f, i);
		struct exec_streams none;

		exec_streams_init(&none);
		if (t->started_ms == 0 && print_json(&none, t, 0, e) == -1)
			return -1;
	}
	if (o->gather != NULL && print_gathered(o, e) == -1)
		return -1;
	if (o->opts->outdir != NULL && write_lists(o->opts->outdir, f, e) == -1)
		return -1;
	return 0;
}

bool
exec_output_unread(const struct exec_output *o)
{
	return o->sink[EXEC_STDOUT].closed;
}

static const struct form *
choose(const struct exec_opts *opts, enum exec_stream s)
{
	if (directory_of(opts, s) != NULL)
		return &form_file;
	if (output_is_json())
		return &form_json;
	if (s == EXEC_STDOUT && (opts->gather || opts->prefix || opts->diff))
		return &form_fold;
	return &form_live;
}

static const char *
directory_of(const struct exec_opts *opts, enum exec_stream s)
{
	return s == EXEC_STDOUT ? opts->outdir : opts->errdir;
}

static int
prepare(struct exec_output *o, size_t n, struct err *e)
{
	for (int s = 0; s < N_EXEC_STREAMS; s++) {
		const char *dir = directory_of(o->opts, s);

		if (dir == NULL)
			continue;
		if (io_mkdir(dir, 0777, e) == -1)
			return -1;
		if (access(dir, W_OK | X_OK) == -1)
			return err_errno(e, ERR_LOCAL, "cannot write into %s",
			    dir);
	}
	if (o->form[EXEC_STDOUT] != &form_fold)
		return 0;
	o->gather = gather_new(o->names, n, GATHER_MEMORY, e);
	return o->gather != NULL ? 0 : -1;
}

static int
live_start(struct exec_output *o, struct exec_flow *flow, const struct task *t,
    enum exec_stream s, struct err *e)
{
	(void)e;
	label_init(&flow->label, &o->sink[s],
	    o->opts->no_label ? NULL : t->node->name);
	return 0;
}

static int
live_put(struct exec_output *o, struct exec_flow *flow, const struct task *t,
    const void *bytes, size_t n, struct err *e)
{
	(void)o;
	(void)t;
	progress_clear();
	if (label_put(&flow->label, bytes, n, e) == -1)
		return -1;
	return sink_flush(flow->label.sink, e);
}

static int
live_end(struct exec_flow *flow, struct err *e)
{
	struct sink *sink = flow->label.sink;

	if (flow->bytes == 0)
		return 0;
	progress_clear();
	if (label_end(&flow->label, e) == -1)
		return -1;
	return sink_flush(sink, e);
}

static int
fold_put(struct exec_output *o, struct exec_flow *flow, const struct task *t,
    const void *bytes, size_t n, struct err *e)
{
	(void)flow;
	return gather_put(o->gather, t->index, bytes, n, e);
}

static int
spool_piece(struct exec_output *o, struct exec_flow *flow, const struct task *t,
    const void *bytes, size_t n, struct err *e)
{
	(void)o;
	(void)t;
	return spool_put(&flow->spool, bytes, n, e);
}

static int
file_start(struct exec_output *o, struct exec_flow *flow, const struct task *t,
    enum exec_stream s, struct err *e)
{
	char path[PATH_MAX];

	if (io_path(path, sizeof(path), directory_of(o->opts, s), t->node->name,
		e) == -1)
		return -1;
	flow->fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	return flow->fd != -1 ?
	    0 :
	    err_errno(e, ERR_LOCAL, "cannot write %s", path);
}

static int
file_put(struct exec_output *o, struct exec_flow *flow, const struct task *t,
    const void *bytes, size_t n, struct err *e)
{
	(void)o;
	if (io_write_n(flow->fd, bytes, n) == -1)
		return err_errno(e, ERR_LOCAL, "cannot write the output of %s",
		    t->node->name);
	return 0;
}

/* {node, class, exit, signal, seconds, bytes, stdout, stderr[, error]} */
static int
print_json(struct exec_streams *st, const struct task *t, double seconds,
    struct err *e)
{
	static const char *const members[] = { "stdout", "stderr" };
	const struct result *r = &t->result;
	const char *bytes;
	size_t size;

	printf("{\"node\":\"%s\",\"class\":\"%s\",\"exit\":", t->node->name,
	    outcome_word(r->outcome));
	if (r->exit >= 0)
		printf("%d", r->exit);
	else
		fputs("null", stdout);
	if (r->signal > 0)
		printf(",\"signal\":%d", r->signal);
	else
		fputs(",\"signal\":null", stdout);
	printf(",\"seconds\":%.3f,\"bytes\":%llu", seconds,
	    (unsigned long long)(st->flow[EXEC_STDOUT].bytes +
		st->flow[EXEC_STDERR].bytes));
	for (int s = 0; s < N_EXEC_STREAMS; s++) {
		if (spool_view(&st->flow[s].spool, &bytes, &size, e) == -1)
			return -1;
		json_text_member(stdout, members[s], bytes, size);
	}
	if (r->why.text[0] != '\0')
		json_text_member(stdout, "error", r->why.text,
		    strlen(r->why.text));
	puts("}");
	return 0;
}

static void
release(struct exec_streams *st)
{
	for (int s = 0; s < N_EXEC_STREAMS; s++) {
		label_fini(&st->flow[s].label);
		spool_fini(&st->flow[s].spool);
		io_close(&st->flow[s].fd);
	}
}

static int
print_gathered(struct exec_output *o, struct err *e)
{
	enum gather_style style = o->opts->no_label ? GATHER_BARE :
	    o->opts->prefix			    ? GATHER_PREFIX :
						      GATHER_HEADER;
	struct sink *sink = &o->sink[EXEC_STDOUT];
	int rv;

	if (o->opts->diff)
		rv = diff_print(o->gather, sink, e);
	else
		rv = gather_print(o->gather, style, sink, e);
	return rv == 0 ? sink_flush(sink, e) : rv;
}

static int
write_lists(const char *dir, struct fanout *f, struct err *e)
{
	if (write_list(dir, "hosts.succeeded", f, true, e) == -1)
		return -1;
	return write_list(dir, "hosts.failed", f, false, e);
}

static int
write_list(const char *dir, const char *name, struct fanout *f, bool succeeded,
    struct err *e)
{
	char path[PATH_MAX];
	FILE *list;

	if (io_path(path, sizeof(path), dir, name, e) == -1)
		return -1;
	if ((list = fopen(path, "we")) == NULL)
		return err_errno(e, ERR_LOCAL, "cannot write %s", path);
	for (size_t i = 0; i < fanout_n(f); i++) {
		const struct task *t = fanout_task(f, i);

		if ((t->result.outcome == OUTCOME_OK) == succeeded)
			fprintf(list, "%s\n", t->node->name);
	}
	if (fclose(list) == EOF)
		return err_errno(e, ERR_LOCAL, "cannot write %s", path);
	return 0;
}
