/* verb_exec.c: the verb exec: a command, as it was given. */
#include <sys/wait.h>

#include "nodeagent/agent.h"
#include "nodeagent/exec_request.h"
#include "nodeagent/order.h"
#include "nodeagent/session.h"
#include "nodeagent/verbs.h"

static json_t *conclude(const struct job_result *, struct err *);

static const struct order_kind exec_kind = {
	.input = REC_STDIN,
	.output = { REC_STDOUT, REC_STDERR },
	.answer = REC_EXIT,
	.conclude = conclude,
};

int
verb_exec(struct session *s, json_t *args, struct err *e)
{
	const struct view *view = &session_agent(s)->view;
	struct exec_request r;
	int rv = -1;

	if (exec_request_parse(args, &r, e) == 0) {
		r.spec.node = view->name;
		r.spec.roles = view->roles;
		r.spec.order = session_order(s);
		rv = order_start(s, &exec_kind, &r.spec, r.timeout_ms, r.input,
		    e);
	}
	exec_request_fini(&r);
	return rv;
}

static json_t *
conclude(const struct job_result *result, struct err *e)
{
	/* It reports only when the command could not be started. */
	if (result->report_size > 0) {
		proto_parse_error(result->report, result->report_size, e);
		return NULL;
	}
	if (result->cause == JOB_LEFT) {
		err_set(e, ERR_UNREACHABLE,
		    "the agent was stopped; the command runs on");
		return NULL;
	}
	return json_pack("{s:i, s:b, s:f, s:I}",
	    WIFSIGNALED(result->status) ? "signal" : "exit",
	    WIFSIGNALED(result->status) ? WTERMSIG(result->status) :
					  WEXITSTATUS(result->status),
	    "timeout", result->cause == JOB_TIMEOUT, "seconds",
	    (double)result->ms / 1000, "stdin_used",
	    (json_int_t)result->input_used);
}
