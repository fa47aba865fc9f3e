/* pull.c: see pull.h. */
#include "nodeagent/pull.h"

#include <sys/queue.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>

#include <sodium.h>

#include "common/base/clock.h"
#include "common/base/io.h"
#include "common/base/json.h"
#include "common/base/log.h"
#include "common/registry/roster.h"
#include "nodeagent/agent.h"
#include "nodeagent/call.h"
#include "nodeagent/twin.h"

#define EACH_MS	    60000 /* between pulls, give or take a sixth */
#define WAITERS_MAX 64

/* After so many failures in a row; later as always. */
static const int64_t retry_ms[] = { EACH_MS, 5000, 10000, 20000, 40000 };

/* A node that was removed: only a registry that is set back brings it back. */
static const int64_t removed_ms[] = { EACH_MS, 2 * EACH_MS, 4 * EACH_MS,
	8 * EACH_MS, 16 * EACH_MS, 32 * EACH_MS, 60 * EACH_MS };

struct waiter {
	TAILQ_ENTRY(waiter) link;
	uint64_t id;
	int64_t revision;
	pull_fn *told;
	void *arg;
};

struct pull {
	struct agent *agent;
	struct event *due;
	struct call *call; /* NULL: none under way */
	size_t master;	   /* that is being asked: an index of the view */
	bool again;	   /* somebody wants a newer answer than this */
	bool refused;	   /* one of them says that we were removed */
	char word[TWIN_WORD_LEN + 1]; /* of this run */
	unsigned n_failed;	      /* in a row */
	struct roster_intake *intake;
	TAILQ_HEAD(, waiter) waiters;
	size_t n_waiters;
	uint64_t last_id;
};

static void pull_due(evutil_socket_t, short, void *);
static void pull_schedule(struct pull *, int64_t ms);
static void pull_ask(struct pull *);
static void pull_begin(struct pull *, const struct view_master *);
static int call_file(const uint8_t *, size_t, void *arg, struct err *);
static void call_done(json_t *reply, const struct err *why, int64_t skew_ms,
    void *arg);
static int adopt(struct pull *, struct err *);
static void pull_end(struct pull *, const struct err *why);
static void pull_failed(struct pull *, const struct err *why);
static void tell_waiters(struct pull *, const struct err *why);

static const struct call_handlers pull_call = {
	.file = call_file,
	.done = call_done,
};

struct pull *
pull_new(struct agent *a, struct err *e)
{
	struct pull *p = calloc(1, sizeof(*p));
	uint8_t word[TWIN_WORD_LEN / 2];

	if (p == NULL || (p->due = evtimer_new(a->base, pull_due, p)) == NULL) {
		err_set(e, ERR_LOCAL, "out of memory for the roster's pull");
		free(p);
		return NULL;
	}
	p->agent = a;
	randombytes_buf(word, sizeof(word));
	sodium_bin2hex(p->word, sizeof(p->word), word, sizeof(word));
	TAILQ_INIT(&p->waiters);
	/* A power cut ends for a thousand nodes at the same instant. */
	pull_schedule(p, randombytes_uniform(500));
	return p;
}

void
pull_free(struct pull *p)
{
	struct waiter *w;

	if (p == NULL)
		return;
	while ((w = TAILQ_FIRST(&p->waiters)) != NULL)
		pull_forget(p, w->id);
	call_cancel(p->call);
	roster_intake_free(p->intake);
	event_free(p->due);
	free(p);
}

void
pull_now(struct pull *p)
{
	if (p->call != NULL)
		p->again = true;
	else
		pull_schedule(p, 0);
}

uint64_t
pull_wait(struct pull *p, int64_t revision, pull_fn *told, void *arg,
    struct err *e)
{
	struct waiter *w;

	if (p->n_waiters >= WAITERS_MAX ||
	    (w = calloc(1, sizeof(*w))) == NULL) {
		err_set(e, ERR_BUSY, "too many wait for a roster here");
		return 0;
	}
	w->id = ++p->last_id;
	w->revision = revision;
	w->told = told;
	w->arg = arg;
	TAILQ_INSERT_TAIL(&p->waiters, w, link);
	p->n_waiters++;
	pull_now(p);
	return w->id;
}

void
pull_forget(struct pull *p, uint64_t id)
{
	struct waiter *w;

	TAILQ_FOREACH (w, &p->waiters, link)
		if (w->id == id)
			break;
	if (w == NULL)
		return;
	TAILQ_REMOVE(&p->waiters, w, link);
	p->n_waiters--;
	free(w);
}

int64_t
pull_rest_ms(unsigned n_failed, bool enrolled)
{
	if (enrolled)
		return n_failed < nitems(retry_ms) ? retry_ms[n_failed] :
						     EACH_MS;
	return n_failed < nitems(removed_ms) ?
	    removed_ms[n_failed] :
	    removed_ms[nitems(removed_ms) - 1];
}

static void
pull_due(evutil_socket_t fd, short what, void *arg)
{
	struct pull *p = arg;

	(void)fd;
	(void)what;
	if (p->call != NULL)
		return;
	p->master = 0;
	p->again = false;
	p->refused = false;
	pull_ask(p);
}

static void
pull_schedule(struct pull *p, int64_t ms)
{
	struct timeval tv = { .tv_sec = ms / 1000,
		.tv_usec = ms % 1000 * 1000 };

	evtimer_add(p->due, &tv);
}

/* The next master in line; after the last one it is over. */
static void
pull_ask(struct pull *p)
{
	const struct view *v = &p->agent->view;
	struct err none;

	while (p->call == NULL && p->master < v->n_masters) {
		const struct view_master *m = &v->masters[p->master++];

		if (!m->is_self)
			pull_begin(p, m);
	}
	if (p->call != NULL)
		return;
	if (p->agent->master != NULL || v->n_masters == 0) {
		pull_end(p, NULL); /* it makes the roster itself */
		return;
	}
	err_set(&none, ERR_UNREACHABLE, "no master could be asked");
	pull_end(p, &none);
}

static void
pull_begin(struct pull *p, const struct view_master *m)
{
	struct agent *a = p->agent;
	json_t *request;
	struct err e;

	request = json_pack("{s:s, s:I, s:I, s:s, s:s}", "verb", "roster",
	    "have", (json_int_t)a->view.revision, "time_ms",
	    (json_int_t)clock_wall_ms(), "version", MUSTER_VERSION, "run",
	    p->word);
	p->call = call_start(a->base, &m->addr, &a->identity, m->key, NULL,
	    request, &pull_call, p, &e);
	if (p->call == NULL)
		log_warn("roster: %s", e.text);
}

static int
call_file(const uint8_t *bytes, size_t size, void *arg, struct err *e)
{
	struct pull *p = arg;
	char path[PATH_MAX];

	/* Made only now: mostly the answer is that ours is the newest. */
	if (p->intake == NULL &&
	    (p->intake = roster_intake_new(state_path(&p->agent->state,
					       STATE_ROSTER, path),
		 e)) == NULL)
		return -1;
	return roster_intake_add(p->intake, bytes, size, e);
}

static void
call_done(json_t *reply, const struct err *why, int64_t skew_ms, void *arg)
{
	struct pull *p = arg;
	struct err e = { 0 };
	int rv = 0;

	(void)reply;
	(void)skew_ms;
	p->call = NULL;
	if (why != NULL) {
		e = *why;
		/* It is sure of us, or it would not answer at all. */
		if (e.code == ERR_REVOKED)
			p->refused = true;
		rv = err_wrap(&e, "roster from master %s",
		    p->agent->view.masters[p->master - 1].name);
	} else if (p->intake != NULL)
		rv = adopt(p, &e);
	else if (!p->agent->view.enrolled)
		rv = agent_adopt_roster(p->agent, &e); /* ours, and it holds */
	roster_intake_free(p->intake);
	p->intake = NULL;
	if (rv == 0)
		pull_end(p, NULL);
	else if (p->master < p->agent->view.n_masters)
		pull_ask(p);
	else
		pull_end(p, &e);
}

static int
adopt(struct pull *p, struct err *e)
{
	struct agent *a = p->agent;
	bool adopted = false;

	if (roster_intake_adopt(p->intake, a->identity.authority,
		a->view.cluster_uuid, &adopted, e) == -1)
		return -1;
	return adopted ? agent_adopt_roster(a, e) : 0;
}

static void
pull_end(struct pull *p, const struct err *why)
{
	int64_t wait_ms;

	if (why == NULL)
		p->n_failed = 0;
	else
		pull_failed(p, why);
	wait_ms = pull_rest_ms(p->n_failed, p->agent->view.enrolled);
	if (!p->again)
		pull_schedule(p,
		    wait_ms * 5 / 6 +
			randombytes_uniform((uint32_t)wait_ms / 3));
	tell_waiters(p, why);
	if (p->again)
		pull_schedule(p, 0);
}

static void
pull_failed(struct pull *p, const struct err *why)
{
	/* One late answer is no news in a busy cluster. */
	bool late = why->code == ERR_UNREACHABLE || why->code == ERR_TIMEOUT ||
	    why->code == ERR_LATE;

	p->n_failed++;
	if (p->refused)
		agent_was_removed(p->agent);
	else if (p->agent->view.enrolled && p->n_failed == (late ? 2 : 1))
		log_warn("%s; going on with revision %" PRId64, why->text,
		    p->agent->view.revision);
}

/* Who waits for more than there is, and came while this pull was under way,
 * gets another one. */
static void
tell_waiters(struct pull *p, const struct err *why)
{
	int64_t revision = p->agent->view.revision;
	struct waiter *w, *next;
	struct err late;

	for (w = TAILQ_FIRST(&p->waiters); w != NULL; w = next) {
		bool there = revision >= w->revision && w->revision > 0;

		next = TAILQ_NEXT(w, link);
		if (!there && p->again)
			continue;
		if (!there && why == NULL && w->revision > revision) {
			err_set(&late, ERR_UNREACHABLE,
			    "the masters have roster revision %" PRId64
			    ", not %" PRId64,
			    revision, w->revision);
			why = &late;
		}
		TAILQ_REMOVE(&p->waiters, w, link);
		p->n_waiters--;
		w->told(there ? NULL : why, w->arg);
		free(w);
	}
}
