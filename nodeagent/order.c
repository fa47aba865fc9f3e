/* order.c: see order.h. */
#include "nodeagent/order.h"

#include <stdlib.h>
#include <string.h>

#include "nodeagent/agent.h"
#include "nodeagent/journal.h"
#include "nodeagent/session.h"

struct order {
	struct agent *agent;
	const struct order_kind *kind;
	struct session *session; /* NULL: lost */
	struct job *job;
	bool keep;		 /* goes on without its client */
	bool ended_with_session; /* the journal has its end already */
	char id[JOURNAL_ORDER_LEN + 1];
	uint64_t received, told; /* input: come; told the client as taken */
	bool paused;
};

#define TAKEN_STEP (PROTO_WINDOW / 8) /* so often it is told */

static void task_record(enum record_type, const uint8_t *body, size_t size,
    void *arg);
static void task_drained(void *arg);
static void task_lost(enum task_loss, void *arg);
static bool job_output(enum job_stream, const uint8_t *, size_t, void *arg);
static void job_input_taken(void *arg);
static void job_ended(const struct job_result *, void *arg);

static const struct task_ops order_task = {
	.record = task_record,
	.drained = task_drained,
	.lost = task_lost,
};

static const struct job_handlers order_job = {
	.output = job_output,
	.input_taken = job_input_taken,
	.ended = job_ended,
};

int
order_start(struct session *s, const struct order_kind *kind,
    const struct child_spec *spec, int64_t timeout_ms, bool has_input,
    struct err *e)
{
	struct order *o = calloc(1, sizeof(*o));

	if (o == NULL)
		return err_set(e, ERR_LOCAL, "out of memory for an order");
	o->agent = session_agent(s);
	o->kind = kind;
	o->session = s;
	o->keep = spec->keep;
	memcpy(o->id, session_order(s), sizeof(o->id));
	o->job = job_start(o->agent->jobs, spec, timeout_ms, &order_job, o, e);
	if (o->job == NULL) {
		free(o);
		return -1;
	}
	if (!has_input)
		job_input_end(o->job);
	session_run(s, &order_task, o);
	return 0;
}

static void
task_record(enum record_type type, const uint8_t *body, size_t size, void *arg)
{
	struct order *o = arg;

	if (type == o->kind->input) {
		job_input(o->job, body, size);
		o->received += size;
		job_input_taken(o);
	} else if (type == REC_EOF)
		job_input_end(o->job);
	else if (type == REC_SIGNAL)
		job_signal(o->job, body[0]);
	else if (type == REC_RESIZE)
		job_resize(o->job, (uint16_t)(body[0] << 8 | body[1]),
		    (uint16_t)(body[2] << 8 | body[3]));
}

static void
task_drained(void *arg)
{
	struct order *o = arg;

	job_more(o->job);
}

static void
task_lost(enum task_loss how, void *arg)
{
	struct order *o = arg;

	o->session = NULL;
	/* On the two other ways out the session has said how it ended. */
	o->ended_with_session = how != LOST_CLIENT;
	if (how == LOST_RIGHTS || !o->keep)
		job_stop(o->job,
		    how == LOST_AGENT ? JOB_AGENT_STOP : JOB_CANCEL);
	/* Nobody takes its output any more, so nothing slows it down. */
	job_more(o->job);
}

static bool
job_output(enum job_stream stream, const uint8_t *bytes, size_t size, void *arg)
{
	struct order *o = arg;

	return o->session == NULL ||
	    session_send(o->session, o->kind->output[stream], bytes, size);
}

/* Tells the client how far its input got.  One that sends more than the
 * window is not read any more, signals and all, until it has been taken. */
static void
job_input_taken(void *arg)
{
	struct order *o = arg;
	size_t kept = job_input_kept(o->job);
	uint64_t taken = o->received - kept;
	uint8_t body[8];

	if (o->session == NULL)
		return;
	if (kept > PROTO_WINDOW && !o->paused)
		session_pause(o->session);
	else if (kept <= PROTO_WINDOW && o->paused)
		session_resume(o->session);
	o->paused = kept > PROTO_WINDOW;
	if (taken - o->told < TAKEN_STEP)
		return;
	for (int i = 0; i < 8; i++)
		body[i] = (uint8_t)(taken >> (56 - 8 * i));
	session_send(o->session, REC_TAKEN, body, sizeof(body));
	o->told = taken;
}

static void
job_ended(const struct job_result *result, void *arg)
{
	struct order *o = arg;
	struct err e = { 0 };
	json_t *answer = o->kind->conclude(result, &e);

	if (o->session == NULL) {
		if (!o->ended_with_session)
			journal_end(o->agent->journal, o->id, answer,
			    answer == NULL ? &e : NULL);
		json_decref(answer);
	} else if (answer == NULL)
		session_fail(o->session, &e);
	else if (o->kind->answer == REC_EXIT)
		session_exit(o->session, answer);
	else
		session_reply(o->session, answer);
	free(o);
}
