/* fanout.c: see fanout.h. */
#include "clusterctl/fanout.h"

#include <assert.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "clusterctl/output.h"
#include "clusterctl/progress.h"
#include "clusterctl/xalloc.h"
#include "common/base/clock.h"
#include "common/base/io.h"
#include "common/base/log.h"
#include "common/nodeset/nodeset.h"

#define SWEEP_MS    200 /* how coarse limits and signs of life are */
#define SILENCE	    (FANOUT_SILENCE_S * 1000 / SWEEP_MS) /* in sweeps */
#define FDS_RESERVE 32 /* of the program itself */

enum task_state {
	TASK_WAITING,
	TASK_CONNECTING, /* nothing was delivered yet */
	TASK_ASKED,	 /* the request may have arrived */
	TASK_CLOSING,	 /* result known, session ends */
	TASK_DONE,
	N_TASK_STATES
};

#define TO(state) (1u << (state))

static const struct {
	const char *name;
	unsigned next; /* where this state may go */
} task_states[] = {
	[TASK_WAITING] = { "waiting", TO(TASK_CONNECTING) | TO(TASK_DONE) },
	[TASK_CONNECTING] = { "connecting",
	    TO(TASK_ASKED) | TO(TASK_CLOSING) | TO(TASK_DONE) },
	[TASK_ASKED] = { "asked", TO(TASK_CLOSING) | TO(TASK_DONE) },
	[TASK_CLOSING] = { "closing", TO(TASK_DONE) },
	[TASK_DONE] = { "done", 0 },
};
_Static_assert(nitems(task_states) == N_TASK_STATES, "a row per state");

/* How far Ctrl-C has got. */
enum cancel { CANCEL_NONE, CANCEL_KIND, CANCEL_KILL, CANCEL_GONE };

TAILQ_HEAD(task_list, task);

struct fanout {
	struct context *cx;
	struct fanout_plan plan;
	struct task *tasks;
	struct task_list live;
	size_t n_live, n_started, n_done, n_failed;
	bool spent; /* the failure budget */
	enum cancel cancel;
	int64_t int_at_ms, cancel_at_ms;
	struct event *sweep;
	struct event *signals[3];
};

static int check_descriptors(const struct fanout_plan *, struct err *);
static int watch(struct fanout *, struct err *);
static void unwatch(struct fanout *);
static void pump(struct fanout *);
static void task_begin(struct task *);
static void task_move(struct task *, enum task_state);
static void task_fail(struct task *, const struct err *);
static void set_why(struct task *, const struct err *);
static void skip_rest(struct fanout *);
static void on_opened(struct channel *, void *);
static void on_record(struct channel *, enum record_type, const uint8_t *,
    size_t, void *);
static void on_drained(struct channel *, void *);
static void on_closed(struct channel *, const struct err *, void *);
static void on_sweep(evutil_socket_t, short, void *);
static void on_signal(evutil_socket_t, short, void *);
static void show_progress(const struct fanout *);
static void check_task(struct task *, int64_t now_ms);
static void cancel_all(struct fanout *, enum cancel);
static void tell_running(const struct fanout *);
static const struct result *result_at(size_t, const char **, void *);

static const struct channel_handlers handlers = {
	.opened = on_opened,
	.record = on_record,
	.drained = on_drained,
	.closed = on_closed,
};

static const int watched_signals[] = { SIGINT, SIGTERM, SIGHUP };

struct fanout *
fanout_new(struct context *cx, const struct fanout_plan *plan, struct err *e)
{
	struct fanout *f;

	if (check_descriptors(plan, e) == -1)
		return NULL;
	f = xcalloc(1, sizeof(*f));
	f->cx = cx;
	f->plan = *plan;
	f->tasks = xcalloc(plan->n, sizeof(*f->tasks));
	for (size_t i = 0; i < plan->n; i++) {
		f->tasks[i].index = i;
		f->tasks[i].node = plan->nodes[i];
		f->tasks[i].result.exit = -1;
		f->tasks[i].fanout = f;
	}
	TAILQ_INIT(&f->live);
	return f;
}

void
fanout_free(struct fanout *f)
{
	if (f == NULL)
		return;
	unwatch(f);
	free(f->tasks);
	free(f);
}

int
fanout_run(struct fanout *f, struct err *e)
{
	if (watch(f, e) == -1)
		return -1;
	pump(f);
	while (f->n_done < f->plan.n)
		if (event_base_loop(context_base(f->cx), EVLOOP_ONCE) != 0)
			return err_set(e, ERR_LOCAL, "the event loop failed");
	unwatch(f);
	progress_clear();
	return 0;
}

void
fanout_cancel(struct fanout *f)
{
	if (f->cancel != CANCEL_NONE)
		return;
	cancel_all(f, CANCEL_KIND);
	skip_rest(f);
}

size_t
fanout_n(const struct fanout *f)
{
	return f->plan.n;
}

struct task *
fanout_task(struct fanout *f, size_t i)
{
	return &f->tasks[i];
}

bool
fanout_interrupted(const struct fanout *f)
{
	return f->cancel != CANCEL_NONE;
}

bool
fanout_budget_spent(const struct fanout *f)
{
	return f->spent;
}

int
fanout_exit_status(struct fanout *f)
{
	enum outcome worst = OUTCOME_OK;

	if (fanout_interrupted(f))
		return outcome_exit_status(OUTCOME_CANCELLED);
	if (f->spent)
		return ERR_BUDGET;
	for (size_t i = 0; i < f->plan.n; i++)
		worst = outcome_worse(worst, f->tasks[i].result.outcome);
	return outcome_exit_status(worst);
}

void
fanout_summary(struct fanout *f)
{
	outcome_summary(f->plan.n, result_at, f);
}

void
task_end(struct task *t, enum outcome outcome, const struct err *why)
{
	if (t->state == TASK_CLOSING || t->state == TASK_DONE)
		return;
	t->result.outcome = outcome;
	if (why != NULL)
		t->result.why = *why;
	t->ended_ms = clock_mono_ms();
	task_move(t, TASK_CLOSING);
	channel_abort(t->channel, NULL);
}

int
task_send(struct task *t, enum record_type type, const void *body, size_t size,
    struct err *e)
{
	return channel_send(t->channel, type, body, size, e);
}

static int
check_descriptors(const struct fanout_plan *plan, struct err *e)
{
	uint64_t window = plan->window < plan->n ? plan->window : plan->n;
	uint64_t need = window * (1 + plan->job->n_fds) + FDS_RESERVE;
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) == -1 ||
	    files.rlim_cur == RLIM_INFINITY || need <= files.rlim_cur)
		return 0;
	return err_set(e, ERR_LOCAL,
	    "%llu nodes at once need %llu open files, and the limit here is "
	    "%llu (raise it with ulimit -n, or use a smaller --fanout)",
	    (unsigned long long)window, (unsigned long long)need,
	    (unsigned long long)files.rlim_cur);
}

static int
watch(struct fanout *f, struct err *e)
{
	struct timeval every = { .tv_usec = SWEEP_MS * 1000 };
	struct event_base *base = context_base(f->cx);

	f->sweep = event_new(base, -1, EV_PERSIST, on_sweep, f);
	if (f->sweep == NULL || event_add(f->sweep, &every) == -1)
		return err_set(e, ERR_LOCAL, "cannot set a timer");
	for (size_t i = 0; i < nitems(watched_signals); i++) {
		f->signals[i] =
		    evsignal_new(base, watched_signals[i], on_signal, f);
		if (f->signals[i] == NULL ||
		    event_add(f->signals[i], NULL) == -1)
			return err_set(e, ERR_LOCAL, "cannot watch signals");
	}
	return 0;
}

static void
unwatch(struct fanout *f)
{
	if (f->sweep != NULL)
		event_free(f->sweep);
	f->sweep = NULL;
	for (size_t i = 0; i < nitems(f->signals); i++) {
		if (f->signals[i] != NULL)
			event_free(f->signals[i]);
		f->signals[i] = NULL;
	}
}

/* Keeps the window full. */
static void
pump(struct fanout *f)
{
	while (f->n_started < f->plan.n && f->n_live < f->plan.window) {
		if (f->cancel != CANCEL_NONE || f->spent)
			skip_rest(f);
		else
			task_begin(&f->tasks[f->n_started++]);
	}
}

static void
task_begin(struct task *t)
{
	struct fanout *f = t->fanout;
	struct err e;

	t->started_ms = clock_mono_ms();
	t->own = xcalloc(1, f->plan.job->own_size);
	task_move(t, TASK_CONNECTING);
	if (!t->node->has_agent) {
		err_set(&e, ERR_UNREACHABLE, "it has no agent");
		task_fail(t, &e);
		return;
	}
	t->channel = channel_connect(context_base(f->cx), &t->node->addr,
	    context_identity(f->cx), t->node->key, (int)f->plan.connect_ms,
	    &handlers, t, &e);
	if (t->channel == NULL)
		task_fail(t, &e);
}

/* The only place a task changes state. */
static void
task_move(struct task *t, enum task_state to)
{
	struct fanout *f = t->fanout;

	assert(task_states[t->state].next & TO(to));
	log_debug("%s: %s -> %s", t->node->name, task_states[t->state].name,
	    task_states[to].name);
	if (t->state == TASK_WAITING && to == TASK_CONNECTING) {
		TAILQ_INSERT_TAIL(&f->live, t, link);
		f->n_live++;
	}
	if (to == TASK_DONE && t->state != TASK_WAITING) {
		TAILQ_REMOVE(&f->live, t, link);
		f->n_live--;
	}
	t->state = to;
	if (to != TASK_DONE)
		return;
	f->n_done++;
	if (!outcome_is_failure(t->result.outcome))
		return;
	f->n_failed++;
	if (f->plan.max_fail >= 0 && f->n_failed > (uint64_t)f->plan.max_fail)
		f->spent = true;
}

/* The last step of a task that was begun, whatever its state. */
static void
task_fail(struct task *t, const struct err *why)
{
	struct fanout *f = t->fanout;

	if (t->result.outcome == OUTCOME_NONE) {
		t->result.outcome = f->cancel != CANCEL_NONE ?
		    OUTCOME_CANCELLED :
		    outcome_of_err(why, t->state == TASK_ASKED);
		set_why(t, why);
		t->ended_ms = clock_mono_ms();
	}
	task_move(t, TASK_DONE);
	f->plan.job->ended(t, f->plan.arg);
	free(t->own);
	t->own = NULL;
}

/* Nodes that fail alike shall read alike: what names the node's address is
 * cut, since the line names the node. */
static void
set_why(struct task *t, const struct err *why)
{
	char addr[ADDR_TEXT_MAX];
	size_t len;

	t->result.why = *why;
	addr_format(&t->node->addr, addr);
	len = strlen(addr);
	if (strncmp(why->text, addr, len) == 0 &&
	    strncmp(why->text + len, ": ", 2) == 0)
		snprintf(t->result.why.text, sizeof(t->result.why.text), "%s",
		    why->text + len + 2);
}

static void
skip_rest(struct fanout *f)
{
	while (f->n_started < f->plan.n) {
		struct task *t = &f->tasks[f->n_started++];

		t->result.outcome = OUTCOME_SKIPPED;
		task_move(t, TASK_DONE);
	}
}

static void
on_opened(struct channel *c, void *arg)
{
	struct task *t = arg;
	struct fanout *f = t->fanout;
	struct err e;

	t->skew_ms = channel_skew_ms(c);
	if (f->plan.limit_ms > 0)
		t->limit_at_ms = clock_mono_ms() + f->plan.limit_ms;
	task_move(t, TASK_ASKED);
	if (f->plan.job->start(t, f->plan.arg, &e) == -1)
		task_end(t, OUTCOME_LOCAL, &e);
}

static void
on_record(struct channel *c, enum record_type type, const uint8_t *body,
    size_t size, void *arg)
{
	struct task *t = arg;
	struct fanout *f = t->fanout;
	struct err e;

	(void)c;
	if (t->state != TASK_ASKED)
		return;
	if (type == REC_ERROR) {
		proto_parse_error(body, size, &e);
		/* Of these two the handshake would have told: what ran there
		 * was ended. */
		t->result.begun =
		    e.code == ERR_REVOKED || e.code == ERR_EXPIRED;
		task_end(t, outcome_of_answer(&e), &e);
	} else if (f->plan.job->record(t, type, body, size, f->plan.arg, &e) ==
	    -1) {
		task_end(t, OUTCOME_LOCAL, &e);
	}
}

static void
on_drained(struct channel *c, void *arg)
{
	struct task *t = arg;
	const struct fanout_job *job = t->fanout->plan.job;
	struct err e;

	(void)c;
	if (t->state == TASK_ASKED && job->drained != NULL &&
	    job->drained(t, t->fanout->plan.arg, &e) == -1)
		task_end(t, OUTCOME_LOCAL, &e);
}

static void
on_closed(struct channel *c, const struct err *why, void *arg)
{
	struct task *t = arg;
	struct fanout *f = t->fanout;
	struct err e;

	(void)c;
	err_set(&e, ERR_UNREACHABLE, "the node closed the session");
	t->channel = NULL;
	task_fail(t, why != NULL ? why : &e);
	pump(f);
}

static void
on_sweep(evutil_socket_t fd, short what, void *arg)
{
	struct fanout *f = arg;
	int64_t now = clock_mono_ms();
	struct task *t, *next;

	(void)fd;
	(void)what;
	for (t = TAILQ_FIRST(&f->live); t != NULL; t = next) {
		next = TAILQ_NEXT(t, link);
		if (t->state == TASK_ASKED)
			check_task(t, now);
	}
	if (f->cancel == CANCEL_KIND &&
	    now - f->cancel_at_ms >= FANOUT_GRACE_MS)
		cancel_all(f, CANCEL_KILL);
	else if (f->cancel == CANCEL_KILL &&
	    now - f->cancel_at_ms >= 2 * FANOUT_GRACE_MS)
		cancel_all(f, CANCEL_GONE);
	if (f->plan.show_progress)
		show_progress(f);
}

static void
show_progress(const struct fanout *f)
{
	const struct fanout_job *job = f->plan.job;
	char more[64] = "";

	if (job->progress != NULL)
		job->progress(more, sizeof(more), f->plan.arg);
	progress_show("%zu of %zu ended, %zu running, %zu failed%s%s",
	    f->n_done, f->plan.n, f->n_live, f->n_failed,
	    more[0] != '\0' ? ", " : "", more);
}

/* Its limit, and signs of life.  A node that is silent because nothing
 * happens answers the ping; one without power does not.  Sweeps are counted,
 * not time: while a slow terminal holds us up, nobody is silent. */
static void
check_task(struct task *t, int64_t now)
{
	const struct fanout_plan *plan = &t->fanout->plan;
	uint64_t bytes = channel_bytes_in(t->channel);
	struct err e;

	if (t->limit_at_ms != 0 && now >= t->limit_at_ms) {
		err_set(&e, ERR_TIMEOUT, "no answer within %llds",
		    (long long)(plan->limit_ms + 999) / 1000);
		task_end(t, plan->limit_outcome, &e);
		return;
	}
	if (bytes != t->heard_bytes) {
		t->heard_bytes = bytes;
		t->silent = 0;
	} else if (++t->silent >= SILENCE) {
		err_set(&e, ERR_UNREACHABLE, "no sign of life for %ds",
		    FANOUT_SILENCE_S);
		task_end(t, OUTCOME_LOST, &e);
	} else if (t->silent % (SILENCE / 3) == 0) {
		channel_send(t->channel, REC_PING, NULL, 0, &e);
	}
}

/* Ctrl-C shows who still runs; again, it ends them; a third time, it no
 * longer waits for them.  TERM and HUP end them at once. */
static void
on_signal(evutil_socket_t sig, short what, void *arg)
{
	struct fanout *f = arg;
	int64_t now = clock_mono_ms();
	bool again = f->int_at_ms != 0 &&
	    now - f->int_at_ms <= FANOUT_INT_AGAIN_S * 1000;

	(void)what;
	if (f->cancel != CANCEL_NONE) {
		cancel_all(f, CANCEL_GONE);
	} else if (sig != SIGINT || again || f->plan.quick) {
		fanout_cancel(f);
	} else {
		f->int_at_ms = now;
		tell_running(f);
	}
}

static void
cancel_all(struct fanout *f, enum cancel how)
{
	const struct fanout_job *job = f->plan.job;
	struct task *t, *next;
	struct err e;

	f->cancel = how;
	if (how == CANCEL_KIND)
		f->cancel_at_ms = clock_mono_ms();
	err_set(&e, ERR_UNREACHABLE, "its result is unknown");
	for (t = TAILQ_FIRST(&f->live); t != NULL; t = next) {
		next = TAILQ_NEXT(t, link);
		if (t->state == TASK_ASKED && job->cancel != NULL &&
		    how != CANCEL_GONE)
			job->cancel(t, how == CANCEL_KILL, f->plan.arg);
		else if (t->state == TASK_ASKED)
			task_end(t, OUTCOME_CANCELLED, &e);
		else if (t->state == TASK_CONNECTING)
			task_end(t, OUTCOME_CANCELLED, NULL);
	}
}

static void
tell_running(const struct fanout *f)
{
	struct nodeset *set = nodeset_new();
	char *text = NULL;
	struct err e;
	struct task *t;

	if (set == NULL)
		return;
	TAILQ_FOREACH (t, &f->live, link)
		nodeset_add(set, t->node->name, &e);
	if (nodeset_fold(set, ",", &text, &e) == 0)
		output_note("still running: %s (%zu), not started: %zu; "
			    "Ctrl-C again within %d s ends them",
		    text, nodeset_count(set), f->plan.n - f->n_started,
		    FANOUT_INT_AGAIN_S);
	free(text);
	nodeset_free(set);
}

static const struct result *
result_at(size_t i, const char **name, void *arg)
{
	struct fanout *f = arg;

	*name = f->tasks[i].node->name;
	return &f->tasks[i].result;
}
