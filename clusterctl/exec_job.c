/* exec_job.c: see exec.h: one command on one node, over one session. */
#include "clusterctl/exec.h"

#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "clusterctl/output.h"
#include "common/base/clock.h"
#include "common/base/io.h"
#include "common/base/json.h"
#include "common/base/text.h"

#define TYPED_MAX     2048 /* of the line as typed, for the node's audit log */
#define USER_NAME_MAX 255

static int start(struct task *, void *, struct err *);
static int record(struct task *, enum record_type, const uint8_t *, size_t,
    void *, struct err *);
static int take_output(struct exec *, struct task *, enum exec_stream,
    const uint8_t *, size_t, struct err *);
static int take_exit(struct exec *, struct task *, const uint8_t *, size_t,
    struct err *);
static void judge(struct exec *, struct task *, bool timed_out);
static int drained(struct task *, void *, struct err *);
static void cancel(struct task *, bool kill, void *);
static void ended(struct task *, void *);
static json_t *command_json(const struct exec *, int argc, char **argv);
static int add_env(const struct exec *, json_t *request, struct err *);
static int check_words(int argc, char **argv, struct err *);
static int check_place(const struct exec_opts *, struct err *);
static size_t typed_len(const char *typed);

const struct fanout_job exec_job = {
	.start = start,
	.record = record,
	.drained = drained,
	.cancel = cancel,
	.ended = ended,
	.own_size = sizeof(struct exec_task),
	.n_fds = 2, /* files or spools of both streams */
};

char *
exec_request(const struct exec *x, int argc, char **argv, struct err *e)
{
	const struct exec_opts *o = x->opts;
	const char *typed = context_typed(x->cx);
	json_t *r = NULL;
	char *text = NULL;

	if (check_words(argc, argv, e) == -1 || check_place(o, e) == -1)
		return NULL;
	r = command_json(x, argc, argv);
	json_object_set_new(r, "verb", json_string("exec"));
	json_object_set_new(r, "stdin",
	    json_boolean(x->input != NULL || x->pty != NULL));
	json_object_set_new(r, "typed", json_stringn(typed, typed_len(typed)));
	if (o->user != NULL)
		json_object_set_new(r, "user", json_string(o->user));
	if (o->cwd != NULL)
		json_object_set_new(r, "cwd", json_string(o->cwd));
	if (x->timeout_ms > 0)
		json_object_set_new(r, "timeout_ms",
		    json_integer(x->timeout_ms));
	if (o->on_disconnect != NULL)
		json_object_set_new(r, "on_disconnect",
		    json_string(o->on_disconnect));
	if (x->pty != NULL)
		json_object_set_new(r, "pty", exec_pty_request(x->pty));
	if (add_env(x, r, e) == 0) {
		text = json_dumps(r, JSON_COMPACT);
		if (text == NULL)
			err_set(e, ERR_LOCAL, "out of memory");
	}
	if (text != NULL && strlen(text) > PROTO_RECORD_MAX) {
		err_set(e, ERR_USAGE,
		    "the command takes %zu bytes, and at most %d go in one "
		    "order (push a script and run that)",
		    strlen(text), PROTO_RECORD_MAX);
		free(text);
		text = NULL;
	}
	json_decref(r);
	return text;
}

static int
start(struct task *t, void *arg, struct err *e)
{
	struct exec *x = arg;
	struct exec_task *own = t->own;

	exec_streams_init(&own->streams);
	own->began = true;
	if (x->pty == NULL &&
	    exec_output_start(x->output, &own->streams, t, e) == -1)
		return -1;
	if (task_send(t, REC_REQUEST, x->request, strlen(x->request), e) == -1)
		return -1;
	if (x->pty != NULL)
		return exec_pty_start(x->pty, t, e);
	if (x->input != NULL)
		return exec_stdin_join(x->input, &own->reader, t, e);
	return 0;
}

static int
record(struct task *t, enum record_type type, const uint8_t *body, size_t size,
    void *arg, struct err *e)
{
	struct exec *x = arg;
	struct exec_task *own = t->own;

	switch (type) {
	case REC_STDOUT:
		return take_output(x, t, EXEC_STDOUT, body, size, e);
	case REC_STDERR:
		return take_output(x, t, EXEC_STDERR, body, size, e);
	case REC_TAKEN:
		window_taken(&own->reader.window, body);
		return x->input != NULL ?
		    exec_stdin_more(x->input, &own->reader, e) :
		    0;
	case REC_EXIT:
		return take_exit(x, t, body, size, e);
	default:
		err_set(e, ERR_PROTOCOL, "it sent a record out of turn");
		task_end(t, OUTCOME_LOST, e);
		return 0;
	}
}

static int
take_output(struct exec *x, struct task *t, enum exec_stream s,
    const uint8_t *body, size_t size, struct err *e)
{
	struct exec_task *own = t->own;

	if (x->pty != NULL)
		return exec_pty_output(x->pty, body, size, e);
	if (exec_output_put(x->output, &own->streams, t, s, body, size, e) ==
	    -1)
		return -1;
	if (exec_output_unread(x->output))
		fanout_cancel(x->fanout);
	return 0;
}

/* {"exit": n} or {"signal": n}, "timeout", "seconds", "stdin_used". */
static int
take_exit(struct exec *x, struct task *t, const uint8_t *body, size_t size,
    struct err *e)
{
	struct exec_task *own = t->own;
	int64_t status, sig, used;
	bool timed_out;
	json_t *o;

	o = json_parse_object(body, size, PROTO_RECORD_MAX, e);
	if (o == NULL ||
	    json_opt_int(o, "exit", 0, 255, -1, &status, e) == -1 ||
	    json_opt_int(o, "signal", 1, 127, 0, &sig, e) == -1 ||
	    json_opt_int(o, "stdin_used", 0, INT64_MAX, 0, &used, e) == -1 ||
	    json_opt_bool(o, "timeout", false, &timed_out, e) == -1) {
		json_decref(o);
		task_end(t, OUTCOME_LOST, e);
		return 0;
	}
	t->result.exit = (int)status;
	t->result.signal = (int)sig;
	own->seconds = json_number_value(json_object_get(o, "seconds"));
	if ((uint64_t)used > x->stdin_used)
		x->stdin_used = (uint64_t)used;
	json_decref(o);
	judge(x, t, timed_out);
	return 0;
}

/* The class of a command that has finished, and what -S will leave with:
 * 128 and the number for one that died by a signal, as a shell has it. */
static void
judge(struct exec *x, struct task *t, bool timed_out)
{
	int status =
	    t->result.signal > 0 ? 128 + t->result.signal : t->result.exit;
	char after[32];
	struct err why;

	if (timed_out) {
		text_format_duration(x->timeout_ms, after, sizeof(after));
		err_set(&why, ERR_TIMEOUT, "ended there after %s", after);
		task_end(t, OUTCOME_TIMEOUT, &why);
		return;
	}
	if (fanout_interrupted(t->fanout)) {
		task_end(t, OUTCOME_CANCELLED, NULL);
		return;
	}
	if (status > x->worst_status)
		x->worst_status = status;
	task_end(t, status == 0 ? OUTCOME_OK : OUTCOME_FAILED, NULL);
}

static int
drained(struct task *t, void *arg, struct err *e)
{
	struct exec *x = arg;
	struct exec_task *own = t->own;

	if (x->pty != NULL)
		exec_pty_more(x->pty);
	else if (x->input != NULL)
		return exec_stdin_more(x->input, &own->reader, e);
	return 0;
}

static void
cancel(struct task *t, bool kill, void *arg)
{
	uint8_t sig = kill ? SIGKILL : SIGTERM;
	struct err e;

	(void)arg;
	if (task_send(t, REC_SIGNAL, &sig, 1, &e) == -1)
		task_end(t, OUTCOME_CANCELLED, &e);
}

static void
ended(struct task *t, void *arg)
{
	struct exec *x = arg;
	struct exec_task *own = t->own;
	double seconds = own->seconds;
	struct err e;

	if (!own->began)
		exec_streams_init(&own->streams);
	if (x->pty != NULL) {
		exec_pty_stop(x->pty);
		return;
	}
	if (x->input != NULL)
		exec_stdin_leave(x->input, &own->reader);
	if (seconds == 0)
		seconds = (double)(t->ended_ms - t->started_ms) / 1000;
	if (exec_output_end(x->output, &own->streams, t, seconds, &e) == -1)
		output_note("%s: %s", t->node->name, e.text);
}

/* One argument is a line for the shell, several are executed as they stand;
 * --shell and --argv decide otherwise.  A line with arguments gets them as
 * $1, $2 and so on: nothing is ever pasted into it. */
static json_t *
command_json(const struct exec *x, int argc, char **argv)
{
	json_t *words = json_array();

	if (argc == 1 && !x->opts->argv) {
		json_decref(words);
		return json_pack("{s:s}", "shell", argv[0]);
	}
	if (x->opts->shell) {
		json_array_append_new(words, json_string("/bin/sh"));
		json_array_append_new(words, json_string("-c"));
		json_array_append_new(words, json_string(argv[0]));
		json_array_append_new(words, json_string("sh"));
		argc--;
		argv++;
	}
	for (int i = 0; i < argc; i++)
		json_array_append_new(words, json_string(argv[i]));
	return json_pack("{s:o}", "argv", words);
}

static int
add_env(const struct exec *x, json_t *request, struct err *e)
{
	const struct opt_list *env = &x->opts->env;
	json_t *o;

	if (env->n == 0)
		return 0;
	o = json_object();
	json_object_set_new(request, "env", o);
	for (size_t i = 0; i < env->n; i++) {
		const char *value = strchr(env->v[i], '=');

		if (value == NULL ||
		    !text_is_env_name(env->v[i], (size_t)(value - env->v[i])))
			return err_set(e, ERR_USAGE,
			    "--env takes NAME=VALUE, not '%.40s'", env->v[i]);
		if (!text_is_utf8(env->v[i], strlen(env->v[i])))
			return err_set(e, ERR_USAGE, "--env is not UTF-8");
		json_object_setn_new(o, env->v[i], (size_t)(value - env->v[i]),
		    json_string(value + 1));
	}
	return 0;
}

static int
check_words(int argc, char **argv, struct err *e)
{
	for (int i = 0; i < argc; i++)
		if (!text_is_utf8(argv[i], strlen(argv[i])))
			return err_set(e, ERR_USAGE,
			    "argument %d of the command is not UTF-8", i + 1);
	return 0;
}

/* As whom and where: without these a command would run as root, in /root. */
static int
check_place(const struct exec_opts *o, struct err *e)
{
	const struct {
		const char *option, *value;
		size_t max;
	} texts[] = {
		{ "--user", o->user, USER_NAME_MAX },
		{ "--cwd", o->cwd, PATH_MAX - 1 },
	};

	for (size_t i = 0; i < nitems(texts); i++) {
		size_t len =
		    texts[i].value != NULL ? strlen(texts[i].value) : 1;

		if (len == 0 || len > texts[i].max)
			return err_set(e, ERR_USAGE, "%s is %s",
			    texts[i].option, len == 0 ? "empty" : "too long");
		if (texts[i].value != NULL &&
		    !text_is_utf8(texts[i].value, len))
			return err_set(e, ERR_USAGE, "%s is not UTF-8",
			    texts[i].option);
	}
	if (o->cwd != NULL && o->cwd[0] != '/')
		return err_set(e, ERR_USAGE,
		    "--cwd %.100s is not absolute (it begins with /)", o->cwd);
	return 0;
}

/* No more than the node takes, and no half character at the end. */
static size_t
typed_len(const char *typed)
{
	size_t len = strnlen(typed, TYPED_MAX);

	while (!text_is_utf8(typed, len))
		len--;
	return len;
}
