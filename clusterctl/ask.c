/* ask.c: see ask.h. */
#include "clusterctl/ask.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/json.h"

/* What the job needs beside the question. */
struct asking {
	const struct ask *ask;
	char *request; /* as JSON */
};

/* What a session holds. */
struct asked {
	json_t *reply;
};

/* Where ask_node() keeps what came. */
struct single {
	json_t *reply;
	struct result result;
};

static int start(struct task *, void *, struct err *);
static int record(struct task *, enum record_type, const uint8_t *, size_t,
    void *, struct err *);
static void ended(struct task *, void *);
static void keep_single(const struct task *, json_t *, void *);

static const struct fanout_job job = {
	.start = start,
	.record = record,
	.ended = ended,
	.own_size = sizeof(struct asked),
};

int
ask_nodes(struct context *cx, const struct dir_node *const *nodes, size_t n,
    const struct ask *ask, int *status, struct err *e)
{
	struct asking a = { ask, json_dumps(ask->request, JSON_COMPACT) };
	struct fanout_plan plan = {
		.nodes = nodes,
		.n = n,
		.window = 128,
		.connect_ms =
		    ask->connect_ms > 0 ? ask->connect_ms : ASK_CONNECT_MS,
		.limit_ms = ask->limit_ms > 0 ? ask->limit_ms : ASK_LIMIT_MS,
		.limit_outcome = OUTCOME_TIMEOUT,
		.max_fail = -1,
		.show_progress = ask->show_progress,
		.quick = true,
		.job = &job,
		.arg = &a,
	};
	struct fanout *f = NULL;
	int rv = -1;

	if (a.request == NULL)
		err_set(e, ERR_LOCAL, "out of memory");
	else if ((f = fanout_new(cx, &plan, e)) != NULL)
		rv = fanout_run(f, e);
	if (rv == 0 && status != NULL)
		*status = fanout_exit_status(f);
	fanout_free(f);
	free(a.request);
	return rv;
}

int
ask_node(struct context *cx, const struct dir_node *node, const struct ask *ask,
    json_t **reply, struct err *e)
{
	struct single got = { 0 };
	struct ask one = *ask;
	char sentence[200];

	one.answer = keep_single;
	one.arg = &got;
	if (ask_nodes(cx, &node, 1, &one, NULL, e) == -1)
		return -1;
	if (got.result.outcome != OUTCOME_OK) {
		result_sentence(&got.result, sentence, sizeof(sentence));
		return err_set(e,
		    got.result.why.code != ERR_NONE ? got.result.why.code :
						      ERR_UNREACHABLE,
		    "%s: %s", node->name, sentence);
	}
	if (reply != NULL)
		*reply = json_incref(got.reply);
	json_decref(got.reply);
	return 0;
}

static int
start(struct task *t, void *arg, struct err *e)
{
	struct asking *a = arg;

	return task_send(t, REC_REQUEST, a->request, strlen(a->request), e);
}

static int
record(struct task *t, enum record_type type, const uint8_t *body, size_t size,
    void *arg, struct err *e)
{
	struct asking *a = arg;
	struct asked *own = t->own;

	if (type == REC_FILE && a->ask->file != NULL)
		return a->ask->file(body, size, a->ask->file_arg, e);
	if (type == REC_EOF)
		return 0;
	if (type != REC_REPLY) {
		err_set(e, ERR_PROTOCOL, "it sent a record out of turn");
		task_end(t, OUTCOME_LOST, e);
		return 0;
	}
	own->reply = json_parse_object(body, size, PROTO_RECORD_MAX, e);
	if (own->reply == NULL)
		task_end(t, OUTCOME_LOST, e);
	else
		task_end(t, OUTCOME_OK, NULL);
	return 0;
}

static void
ended(struct task *t, void *arg)
{
	struct asking *a = arg;
	struct asked *own = t->own;

	if (a->ask->answer != NULL)
		a->ask->answer(t, own->reply, a->ask->arg);
	json_decref(own->reply);
}

static void
keep_single(const struct task *t, json_t *reply, void *arg)
{
	struct single *got = arg;

	got->reply = json_incref(reply);
	got->result = t->result;
}
