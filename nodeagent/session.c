/* session.c: see session.h. */
#include "nodeagent/session.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "common/base/clock.h"
#include "common/base/io.h"
#include "common/base/json.h"
#include "common/base/log.h"
#include "nodeagent/agent.h"
#include "nodeagent/journal.h"
#include "nodeagent/verbs.h"

enum session_state {
	SESSION_HALF,	 /* the handshake is under way */
	SESSION_READY,	 /* waits for a request */
	SESSION_BUSY,	 /* a request is under way */
	SESSION_LEAVING, /* said its last; the channel flushes */
	SESSION_DEAD,
	SESSION_N_STATES
};

#define TO(state) (1U << (state))

#define PROBE_MAX_S 32

static const struct {
	const char *name;
	unsigned next;
	int limit_s; /* from entry; 0: none, or the channel's own */
} session_states[] = {
	[SESSION_HALF] = { "half-open", TO(SESSION_READY) | TO(SESSION_DEAD),
	    0 },
	[SESSION_READY] = { "ready",
	    TO(SESSION_BUSY) | TO(SESSION_LEAVING) | TO(SESSION_DEAD), 60 },
	[SESSION_BUSY] = { "busy",
	    TO(SESSION_READY) | TO(SESSION_LEAVING) | TO(SESSION_DEAD), 0 },
	[SESSION_LEAVING] = { "leaving", TO(SESSION_DEAD), 0 },
	[SESSION_DEAD] = { "dead", 0, 0 },
};
_Static_assert(nitems(session_states) == SESSION_N_STATES, "a row per state");

struct session {
	TAILQ_ENTRY(session) link;
	struct session_list *list; /* that it is in */
	struct session_list *open; /* where it goes after the handshake */
	struct agent *agent;
	struct channel *channel;
	uint64_t id;
	enum session_state state;
	struct event *limit;
	struct event *probe; /* pending: we read nothing from the peer */
	int probe_s;	     /* until the next one */

	const struct verb *verb;     /* of the request under way */
	const struct task_ops *task; /* NULL: answered at once */
	void *task_arg;
	char order[JOURNAL_ORDER_LEN + 1];
};

static void channel_opened(struct channel *, void *arg);
static void channel_record(struct channel *, enum record_type,
    const uint8_t *body, size_t size, void *arg);
static void channel_drained(struct channel *, void *arg);
static void channel_closed(struct channel *, const struct err *, void *arg);
static void log_refusal(const struct session *, const struct err *);
static void session_overdue(evutil_socket_t, short, void *);
static void session_probe(evutil_socket_t, short, void *);
static void session_arm_probe(struct session *);
static void session_move(struct session *, enum session_state, const char *why);
static void session_request(struct session *, const uint8_t *body, size_t size);
static void session_dispatch(struct session *, json_t *request);
static void session_lose_task(struct session *, enum task_loss);
static void session_done(struct session *);
static void session_free(struct session *);

static const struct channel_handlers session_channel_handlers = {
	.opened = channel_opened,
	.record = channel_record,
	.drained = channel_drained,
	.closed = channel_closed,
};

struct session *
session_new(struct agent *a, int fd, const struct addr *from,
    const struct channel_policy *policy, struct session_list *half_open,
    struct session_list *open)
{
	static uint64_t last_id;
	struct session *s = calloc(1, sizeof(*s));
	struct err e = { 0 };

	if (s == NULL ||
	    (s->limit = evtimer_new(a->base, session_overdue, s)) == NULL ||
	    (s->probe = evtimer_new(a->base, session_probe, s)) == NULL) {
		session_free(s);
		io_close(&fd);
		return NULL;
	}
	s->agent = a;
	s->id = ++last_id;
	s->open = open;
	s->channel = channel_accept(a->base, fd, from, &a->identity, policy,
	    &session_channel_handlers, s, &e);
	if (s->channel == NULL) {
		log_warn("cannot take a connection: %s", e.text);
		session_free(s);
		return NULL;
	}
	s->list = half_open;
	TAILQ_INSERT_TAIL(s->list, s, link);
	return s;
}

void
session_end(struct session *s, enum task_loss how, const struct err *why)
{
	if (s->state == SESSION_LEAVING || s->state == SESSION_DEAD)
		return;
	if (s->state == SESSION_HALF) {
		session_abort(s);
		return;
	}
	if (s->state == SESSION_BUSY) {
		session_lose_task(s, how);
		session_fail(s, why);
	}
	session_move(s, SESSION_LEAVING, why->text);
	channel_close(s->channel);
}

void
session_abort(struct session *s)
{
	/* Out of the list at once: `closed` comes later, and whoever makes
	 * room must not find the same one again. */
	if (s->list != NULL)
		TAILQ_REMOVE(s->list, s, link);
	s->list = NULL;
	channel_abort(s->channel, NULL);
}

void
session_recheck(struct session *s, int64_t now_s)
{
	const struct cert *peer = channel_peer(s->channel);
	struct err e;

	if (channel_is_lost(s->channel)) {
		err_set(&e, ERR_UNREACHABLE,
		    "the peer's machine has fallen silent");
		channel_abort(s->channel, &e);
	} else if (peer != NULL &&
	    verbs_check_peer(peer, &s->agent->view, now_s, &e) == -1) {
		session_end(s, LOST_RIGHTS, &e);
	}
}

struct session *
session_next(struct session *s)
{
	return TAILQ_NEXT(s, link);
}

struct agent *
session_agent(const struct session *s)
{
	return s->agent;
}

const char *
session_order(const struct session *s)
{
	return s->order;
}

struct channel *
session_channel(const struct session *s)
{
	return s->channel;
}

const struct cert *
session_peer(const struct session *s)
{
	return channel_peer(s->channel);
}

void
session_run(struct session *s, const struct task_ops *ops, void *task)
{
	assert(s->state == SESSION_BUSY && s->task == NULL);
	s->task = ops;
	s->task_arg = task;
}

bool
session_send(struct session *s, enum record_type type, const void *body,
    size_t size)
{
	struct err e;

	/* A record that is lost would make the answer a lie. */
	if (channel_send(s->channel, type, body, size, &e) == -1)
		channel_abort(s->channel, &e);
	return session_has_room(s);
}

bool
session_has_room(const struct session *s)
{
	return channel_queued(s->channel) < CHANNEL_HIGH_WATER;
}

void
session_reply(struct session *s, json_t *answer)
{
	struct err e;

	if (s->verb->audited)
		journal_end(s->agent->journal, s->order, NULL, NULL);
	if (channel_send_json(s->channel, REC_REPLY, answer, &e) == -1)
		channel_abort(s->channel, &e);
	session_done(s);
}

void
session_exit(struct session *s, json_t *how)
{
	struct err e;

	if (s->verb->audited)
		journal_end(s->agent->journal, s->order, how, NULL);
	if (channel_send_json(s->channel, REC_EXIT, how, &e) == -1)
		channel_abort(s->channel, &e);
	session_done(s);
}

void
session_fail(struct session *s, const struct err *why)
{
	log_debug("session %" PRIu64 ": %s: %s", s->id,
	    s->verb != NULL ? s->verb->name : "?", why->text);
	if (s->verb != NULL && s->verb->audited)
		journal_end(s->agent->journal, s->order, NULL, why);
	if (channel_send_error(s->channel, why) == -1)
		channel_abort(s->channel, why);
	session_done(s);
}

void
session_pause(struct session *s)
{
	channel_pause(s->channel);
	s->probe_s = 1;
	session_arm_probe(s);
}

void
session_resume(struct session *s)
{
	channel_resume(s->channel);
	evtimer_del(s->probe);
}

static void
channel_opened(struct channel *ch, void *arg)
{
	struct session *s = arg;

	(void)ch;
	TAILQ_REMOVE(s->list, s, link);
	s->list = s->open;
	TAILQ_INSERT_TAIL(s->list, s, link);
	session_move(s, SESSION_READY, "authenticated");
}

static void
channel_record(struct channel *ch, enum record_type type, const uint8_t *body,
    size_t size, void *arg)
{
	struct session *s = arg;

	(void)ch;
	if (type == REC_REQUEST)
		session_request(s, body, size);
	else if (s->state == SESSION_BUSY && s->task != NULL &&
	    s->task->record != NULL)
		s->task->record(type, body, size, s->task_arg);
	/* Else it crossed our answer on its way: not an error. */
}

static void
channel_drained(struct channel *ch, void *arg)
{
	struct session *s = arg;

	(void)ch;
	if (s->state == SESSION_BUSY && s->task != NULL &&
	    s->task->drained != NULL)
		s->task->drained(s->task_arg);
}

static void
channel_closed(struct channel *ch, const struct err *why, void *arg)
{
	struct session *s = arg;

	(void)ch;
	if (s->state == SESSION_HALF && why != NULL)
		log_refusal(s, why);
	if (s->state == SESSION_BUSY) {
		if (s->verb->audited)
			journal_lost(s->agent->journal, s->order);
		session_lose_task(s, LOST_CLIENT);
	}
	session_move(s, SESSION_DEAD, why != NULL ? why->text : "closed");
	session_free(s);
}

/* Only who once had a certificate or has a token can make this log grow. */
static void
log_refusal(const struct session *s, const struct err *why)
{
	char from[ADDR_TEXT_MAX];

	addr_format(channel_addr(s->channel), from);
	switch (why->code) {
	case ERR_DENIED:
	case ERR_EXPIRED:
	case ERR_NOT_YET:
	case ERR_REVOKED:
		log_info("refused %s: %s", from, why->text);
		break;
	default:
		log_debug("refused %s: %s", from, why->text);
		break;
	}
}

static void
session_overdue(evutil_socket_t fd, short what, void *arg)
{
	struct session *s = arg;

	(void)fd;
	(void)what;
	session_move(s, SESSION_LEAVING, "idle for too long");
	channel_close(s->channel);
}

/*
 * While the peer's data fills our window, its end cannot reach us: the FIN
 * waits behind the data.  A byte to a socket that nobody holds any more
 * comes back as a reset.
 */
static void
session_probe(evutil_socket_t fd, short what, void *arg)
{
	struct session *s = arg;
	struct err e;

	(void)fd;
	(void)what;
	if (channel_send(s->channel, REC_PING, NULL, 0, &e) == -1)
		channel_abort(s->channel, &e);
	else
		session_arm_probe(s);
}

/* Seldom and seldomer: the peer may be busy for days. */
static void
session_arm_probe(struct session *s)
{
	struct timeval next = { .tv_sec = s->probe_s };

	evtimer_add(s->probe, &next);
	if (s->probe_s < PROBE_MAX_S)
		s->probe_s *= 2;
}

/* The only place where a session changes its state. */
static void
session_move(struct session *s, enum session_state to, const char *why)
{
	struct timeval limit = { .tv_sec = session_states[to].limit_s };

	assert(session_states[s->state].next & TO(to));
	log_debug("session %" PRIu64 ": %s -> %s: %s", s->id,
	    session_states[s->state].name, session_states[to].name, why);
	s->state = to;
	evtimer_del(s->limit);
	if (to == SESSION_LEAVING || to == SESSION_DEAD)
		evtimer_del(s->probe);
	if (limit.tv_sec > 0)
		evtimer_add(s->limit, &limit);
}

static void
session_request(struct session *s, const uint8_t *body, size_t size)
{
	json_t *request;
	struct err e;

	if (s->state != SESSION_READY) {
		err_set(&e, ERR_PROTOCOL,
		    "a request came while another was under way");
		channel_abort(s->channel, &e);
		return;
	}
	session_move(s, SESSION_BUSY, "request");
	s->verb = NULL;
	s->task = NULL;
	request = json_parse_object(body, size, PROTO_RECORD_MAX, &e);
	if (request == NULL) {
		session_fail(s, &e);
		return;
	}
	session_dispatch(s, request);
	json_decref(request);
}

static void
session_dispatch(struct session *s, json_t *request)
{
	struct agent *a = s->agent;
	const struct verb *verb;
	const char *name;
	struct err e;

	if (json_get_string(request, "verb", NAME_MAX_LEN, &name, &e) == -1) {
		session_fail(s, &e);
		return;
	}
	if ((verb = verbs_find(name)) == NULL) {
		err_set(&e, ERR_DENIED, "this agent (%s) knows no verb %s",
		    MUSTER_VERSION, name);
		session_fail(s, &e);
		return;
	}
	if (verbs_allow(verb, channel_peer(s->channel), &a->view,
		clock_wall_ms() / 1000, &e) == -1) {
		journal_denied(a->journal, s, verb->name, &e);
		session_fail(s, &e);
		return;
	}
	s->verb = verb;
	if (verb->audited) {
		a->n_orders++;
		journal_begin(a->journal, s, verb->name, request, s->order);
	}
	if (verb->start(s, request, &e) == -1)
		session_fail(s, &e);
}

static void
session_lose_task(struct session *s, enum task_loss how)
{
	const struct task_ops *task = s->task;

	s->task = NULL;
	if (task != NULL && task->lost != NULL)
		task->lost(how, s->task_arg);
}

static void
session_done(struct session *s)
{
	s->task = NULL;
	s->verb = NULL;
	/* A task may have been slowing the peer down. */
	session_resume(s);
	session_move(s, SESSION_READY, "answered");
}

static void
session_free(struct session *s)
{
	if (s->list != NULL)
		TAILQ_REMOVE(s->list, s, link);
	if (s->limit != NULL)
		event_free(s->limit);
	if (s->probe != NULL)
		event_free(s->probe);
	free(s);
}
