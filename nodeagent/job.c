/* job.c: see job.h. */
#include "nodeagent/job.h"

#include <sys/ioctl.h>
#include <sys/queue.h>
#include <sys/wait.h>
#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/io.h"
#include "common/base/log.h"
#include "nodeagent/cgroup.h"
#include "nodeagent/feed.h"
#include "nodeagent/proctree.h"

#define CHUNK	     (32 * 1024) /* read from a child at once */
#define POLL_MS	     20		 /* how often a stopping job is looked at */
#define LOOK_MS	     200	 /* how often for zombies */
#define KILL_MS	     1000	 /* for KILL to work: D state takes longer */
#define PTY_DRAIN_MS 200	 /* for the last bytes through the terminal */

enum job_state {
	JOB_RUN,   /* the first process runs */
	JOB_TERM,  /* all got TERM and have their grace */
	JOB_KILL,  /* all got KILL */
	JOB_DRAIN, /* the first process has ended; taking the rest */
	JOB_ENDED,
	JOB_N_STATES
};

#define TO(state) (1U << (state))

static const struct {
	const char *name;
	unsigned next;
} job_states[] = {
	[JOB_RUN] = { "run", TO(JOB_TERM) | TO(JOB_DRAIN) },
	[JOB_TERM] = { "term", TO(JOB_KILL) | TO(JOB_DRAIN) },
	[JOB_KILL] = { "kill", TO(JOB_DRAIN) },
	[JOB_DRAIN] = { "drain", TO(JOB_ENDED) },
	[JOB_ENDED] = { "ended", 0 },
};
_Static_assert(nitems(job_states) == JOB_N_STATES, "a row per state");

struct stream {
	struct job *job;
	struct event *ready; /* NULL: closed */
	int fd;
	int left; /* bytes to take yet once the process has ended */
};

struct job {
	TAILQ_ENTRY(job) link;
	struct jobs *jobs;
	const struct job_handlers *on;
	void *arg;

	enum job_state state;
	struct event *timer;
	int64_t started_ms, entered_ms; /* entered: the state */

	pid_t pid; /* session and group also after it was reaped */
	bool reaped, keep, pty;
	struct cgroup cgroup;
	char mark[64]; /* in the environment of what it starts */
	int report;
	struct stream streams[2];

	struct feed input;

	struct job_result result;
};

struct jobs {
	struct event_base *base;
	struct event *sigchld;
	TAILQ_HEAD(, job) all;
	size_t n;
};

static void jobs_reap(evutil_socket_t, short, void *);

static void job_move(struct job *, enum job_state);
static void job_free(struct job *);
static int job_watch(struct job *, const struct child *, struct err *);
static void job_timer(evutil_socket_t, short, void *);
static bool job_is_over(struct job *, int64_t age_ms);
static void job_arm(struct job *, int64_t ms);
static void job_exited(struct job *, int status);
static void job_finish(struct job *);
static void job_end_if_drained(struct job *);
static size_t job_signal_all(struct job *, int sig);
static void read_report(struct job *, char buf[JOB_REPORT_MAX]);
static void stream_readable(evutil_socket_t, short, void *);
static void stream_close(struct stream *);
static void input_taken(void *arg);

struct jobs *
jobs_new(struct event_base *base, struct err *e)
{
	struct jobs *js;

	if ((js = calloc(1, sizeof(*js))) == NULL ||
	    (js->sigchld = evsignal_new(base, SIGCHLD, jobs_reap, js)) ==
		NULL ||
	    event_add(js->sigchld, NULL) == -1) {
		err_set(e, ERR_LOCAL, "out of memory for running orders");
		free(js);
		return NULL;
	}
	proctree_adopt();
	js->base = base;
	TAILQ_INIT(&js->all);
	return js;
}

void
jobs_free(struct jobs *js)
{
	struct job *j;

	if (js == NULL)
		return;
	while ((j = TAILQ_FIRST(&js->all)) != NULL) {
		j->result.cause = JOB_LEFT;
		j->result.report = "";
		j->on->ended(&j->result, j->arg);
		job_free(j);
	}
	event_free(js->sigchld);
	free(js);
}

size_t
jobs_count(const struct jobs *js)
{
	return js->n;
}

size_t
jobs_count_bound(const struct jobs *js)
{
	const struct job *j;
	size_t n = 0;

	TAILQ_FOREACH (j, &js->all, link)
		n += !j->keep;
	return n;
}

void
jobs_stop(struct jobs *js)
{
	struct job *j;

	TAILQ_FOREACH (j, &js->all, link)
		if (!j->keep)
			job_stop(j, JOB_AGENT_STOP);
}

void
jobs_kill(struct jobs *js)
{
	struct job *j;

	TAILQ_FOREACH (j, &js->all, link)
		if (!j->keep && j->state != JOB_DRAIN)
			job_signal_all(j, SIGKILL);
}

struct job *
job_start(struct jobs *js, const struct child_spec *spec, int64_t timeout_ms,
    const struct job_handlers *on, void *arg, struct err *e)
{
	struct child_spec placed = *spec;
	struct child child;
	struct job *j;

	if ((j = calloc(1, sizeof(*j))) == NULL) {
		err_set(e, ERR_LOCAL, "out of memory for an order");
		return NULL;
	}
	j->jobs = js;
	j->on = on;
	j->arg = arg;
	j->keep = spec->keep;
	j->pty = spec->pty != NULL;
	if (spec->order != NULL)
		snprintf(j->mark, sizeof(j->mark), "%s=%s", CHILD_ORDER,
		    spec->order);
	j->report = -1;
	feed_init(&j->input);
	for (int i = 0; i < 2; i++)
		j->streams[i] = (struct stream){ .job = j, .fd = -1 };
	cgroup_make(&j->cgroup, spec->keep);
	placed.cgroup = &j->cgroup;
	if (child_start(&placed, &child, e) == -1) {
		cgroup_remove(&j->cgroup);
		free(j);
		return NULL;
	}
	j->pid = child.pid;
	TAILQ_INSERT_TAIL(&js->all, j, link);
	js->n++;
	j->started_ms = j->entered_ms = clock_mono_ms();
	if (job_watch(j, &child, e) == -1) {
		job_signal_all(j, SIGKILL);
		job_free(j);
		return NULL;
	}
	job_arm(j, timeout_ms);
	return j;
}

void
job_input(struct job *j, const void *bytes, size_t size)
{
	feed_write(&j->input, bytes, size);
}

size_t
job_input_kept(const struct job *j)
{
	return feed_kept(&j->input);
}

void
job_input_end(struct job *j)
{
	feed_end(&j->input);
}

void
job_more(struct job *j)
{
	for (int i = 0; i < 2; i++)
		if (j->streams[i].ready != NULL) {
			event_add(j->streams[i].ready, NULL);
			/* In JOB_DRAIN an empty pipe that somebody else
			 * holds open never becomes readable. */
			event_active(j->streams[i].ready, EV_READ, 0);
		}
}

void
job_resize(struct job *j, uint16_t rows, uint16_t columns)
{
	struct winsize size = { .ws_row = rows, .ws_col = columns };

	if (j->pty && j->streams[JOB_STDOUT].fd != -1)
		ioctl(j->streams[JOB_STDOUT].fd, TIOCSWINSZ, &size);
}

void
job_signal(struct job *j, int sig)
{
	if (!j->reaped)
		kill(-j->pid, sig);
}

void
job_stop(struct job *j, enum job_cause cause)
{
	if (j->state != JOB_RUN)
		return;
	j->result.cause = cause;
	feed_close(&j->input);
	/* What sits at a terminal is used to its end, and deaf to TERM. */
	if (j->pty)
		job_signal_all(j, SIGHUP);
	job_signal_all(j, SIGTERM);
	/* A stopped process takes TERM only once it goes on. */
	kill(-j->pid, SIGCONT);
	job_move(j, JOB_TERM);
}

static void
jobs_reap(evutil_socket_t sig, short what, void *arg)
{
	struct jobs *js = arg;
	struct job *j;
	int status;
	pid_t pid;

	(void)sig;
	(void)what;
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		TAILQ_FOREACH (j, &js->all, link)
			if (j->pid == pid && !j->reaped)
				break;
		if (j != NULL)
			job_exited(j, status);
	}
}

/* The only place where a job changes its state. */
static void
job_move(struct job *j, enum job_state to)
{
	assert(job_states[j->state].next & TO(to));
	log_debug("job %d: %s -> %s", (int)j->pid, job_states[j->state].name,
	    job_states[to].name);
	j->state = to;
	j->entered_ms = clock_mono_ms();
	evtimer_del(j->timer);
	if (to == JOB_TERM || to == JOB_KILL)
		job_arm(j, POLL_MS);
	if (to == JOB_DRAIN && j->pty)
		job_arm(j, PTY_DRAIN_MS);
}

static void
job_free(struct job *j)
{
	TAILQ_REMOVE(&j->jobs->all, j, link);
	j->jobs->n--;
	for (int i = 0; i < 2; i++)
		stream_close(&j->streams[i]);
	feed_fini(&j->input);
	if (j->timer != NULL)
		event_free(j->timer);
	io_close(&j->report);
	cgroup_remove(&j->cgroup);
	free(j);
}

/* Takes the descriptors of *c, also on failure. */
static int
job_watch(struct job *j, const struct child *c, struct err *e)
{
	struct event_base *base = j->jobs->base;
	const int fds[2] = { c->out, c->err };

	j->report = c->report;
	for (int i = 0; i < 2; i++)
		j->streams[i].fd = fds[i];
	j->timer = evtimer_new(base, job_timer, j);
	if (feed_open(&j->input, base, c->in, j->pty, input_taken, j, e) == -1)
		return -1;
	if (j->timer == NULL)
		goto fail;
	for (int i = 0; i < 2; i++) {
		struct stream *s = &j->streams[i];

		if (s->fd == -1)
			continue;
		s->ready = event_new(base, s->fd, EV_READ | EV_PERSIST,
		    stream_readable, s);
		if (s->ready == NULL || event_add(s->ready, NULL) == -1)
			goto fail;
	}
	return 0;
fail:
	return err_set(e, ERR_LOCAL, "out of memory for an order");
}

static void
job_timer(evutil_socket_t fd, short what, void *arg)
{
	struct job *j = arg;
	int64_t age_ms = clock_mono_ms() - j->entered_ms;

	(void)fd;
	(void)what;
	switch (j->state) {
	case JOB_RUN:
		job_stop(j, JOB_TIMEOUT);
		return;
	case JOB_TERM:
		if (age_ms >= JOB_GRACE_MS) {
			job_signal_all(j, SIGKILL);
			job_move(j, JOB_KILL);
			return;
		}
		break;
	case JOB_KILL:
		if (age_ms >= KILL_MS && j->reaped) {
			log_warn("processes of order %d do not die",
			    (int)j->pid);
			job_finish(j);
			return;
		}
		break;
	case JOB_DRAIN:
		for (int i = 0; i < 2; i++)
			stream_close(&j->streams[i]);
		job_end_if_drained(j);
		return;
	default:
		return;
	}
	if (job_is_over(j, age_ms))
		job_finish(j);
	else
		job_arm(j, POLL_MS);
}

/* kill(2) is the cheap question; the whole answer is asked for once it says
 * nobody, and now and then because it counts zombies too. */
static bool
job_is_over(struct job *j, int64_t age_ms)
{
	bool look = kill(-j->pid, 0) == -1 || j->state == JOB_KILL ||
	    age_ms % LOOK_MS < POLL_MS;

	return j->reaped && look &&
	    job_signal_all(j, j->state == JOB_KILL ? SIGKILL : 0) == 0;
}

static void
job_arm(struct job *j, int64_t ms)
{
	struct timeval tv = { .tv_sec = ms / 1000,
		.tv_usec = (ms % 1000) * 1000 };

	if (ms > 0)
		evtimer_add(j->timer, &tv);
}

static void
job_exited(struct job *j, int status)
{
	j->reaped = true;
	j->result.status = status;
	j->result.ms = clock_mono_ms() - j->started_ms;
	if (j->state == JOB_RUN)
		job_finish(j);
}

/* The order is over; what the pipes hold now is the rest of its output. */
static void
job_finish(struct job *j)
{
	job_move(j, JOB_DRAIN);
	j->result.input_used = feed_used(&j->input);
	feed_close(&j->input);
	for (int i = 0; i < 2; i++) {
		struct stream *s = &j->streams[i];

		if (s->ready == NULL)
			continue;
		if (j->pty || ioctl(s->fd, FIONREAD, &s->left) == -1)
			s->left = INT32_MAX;
		if (s->left == 0)
			stream_close(s);
	}
	job_end_if_drained(j);
}

static void
job_end_if_drained(struct job *j)
{
	char report[JOB_REPORT_MAX];

	if (j->state != JOB_DRAIN || j->streams[0].ready != NULL ||
	    j->streams[1].ready != NULL)
		return;
	read_report(j, report);
	job_move(j, JOB_ENDED);
	j->on->ended(&j->result, j->arg);
	job_free(j);
}

/* To everything the job has started; returns how many there were. */
static size_t
job_signal_all(struct job *j, int sig)
{
	if (j->cgroup.path[0] != '\0' && (sig == SIGKILL || sig == 0)) {
		if (sig == SIGKILL)
			cgroup_kill(&j->cgroup);
		return cgroup_is_empty(&j->cgroup) ? 0 : 1;
	}
	return proctree_signal(j->pid, j->mark, sig);
}

static void
read_report(struct job *j, char buf[JOB_REPORT_MAX])
{
	ssize_t n;

	/* Non-blocking: a process in the background may hold it open. */
	n = read(j->report, buf, JOB_REPORT_MAX - 1);
	buf[n > 0 ? n : 0] = '\0';
	j->result.report = buf;
	j->result.report_size = n > 0 ? (size_t)n : 0;
}

static void
stream_readable(evutil_socket_t fd, short what, void *arg)
{
	struct stream *s = arg;
	struct job *j = s->job;
	uint8_t buf[CHUNK];
	size_t want = sizeof(buf);
	ssize_t n;

	(void)what;
	if (j->state == JOB_DRAIN && (size_t)s->left < want)
		want = (size_t)s->left;
	n = read(fd, buf, want);
	if (n == -1 &&
	    (errno == EINTR ||
		(errno == EAGAIN && (j->state != JOB_DRAIN || j->pty))))
		return;
	if (n <= 0) { /* EIO is how a terminal says that all have left */
		stream_close(s);
		job_end_if_drained(j);
		return;
	}
	if (!j->on->output((enum job_stream)(s - j->streams), buf, (size_t)n,
		j->arg))
		for (int i = 0; i < 2; i++)
			if (j->streams[i].ready != NULL)
				event_del(j->streams[i].ready);
	if (j->state != JOB_DRAIN)
		return;
	s->left -= (int)n;
	if (s->left == 0) {
		stream_close(s);
		job_end_if_drained(j);
	}
}

static void
stream_close(struct stream *s)
{
	if (s->ready != NULL)
		event_free(s->ready);
	s->ready = NULL;
	io_close(&s->fd);
}

static void
input_taken(void *arg)
{
	struct job *j = arg;

	j->on->input_taken(j->arg);
}
