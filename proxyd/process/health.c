/*
 * health.c: see health.h.
 *
 * A probe is one node in one role.  Its state machine: resting, connecting,
 * sending is one small write, reading (HTTP only), resting again.  The first
 * check of a node comes at once, the later ones at the role's interval, each
 * node a little off the others.
 */
#include "proxyd/process/health.h"

#include <sys/queue.h>
#include <sys/socket.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sodium.h>

#include "common/base/clock.h"
#include "common/base/io.h"
#include "common/base/log.h"
#include "proxyd/http/proxy_header.h"
#include "proxyd/process/check.h"
#include "proxyd/process/dial.h"

enum probe_state { PROBE_RESTING, PROBE_CONNECTING, PROBE_READING };

struct probe {
	struct health *health;
	enum probe_state state;
	uint32_t row; /* of the scoreboard: the identity of a probe */
	bool wanted;  /* in the snapshot being applied */
	int fd;
	struct event *ev;    /* the socket's */
	struct event *timer; /* of the next check, or of this one's end */
	struct health_count count;
	struct check check;
	LIST_ENTRY(probe) link;
};

struct health {
	struct event_base *base;
	struct scoreboard *board;
	struct snapshot *snapshot;
	struct dialer dialer;
	LIST_HEAD(, probe) probes;
	struct probe **by_row; /* of the scoreboard */
};

static void want(struct health *, const struct snapshot *,
    const struct snap_role *, const struct snap_node *);
static struct probe *probe_new(struct health *, uint32_t row);
static void probe_free(struct probe *);
static void probe_start(struct probe *);
static void probe_rest(struct probe *, int64_t ms);
static void probe_end(struct probe *, enum why);
static void publish(struct probe *, enum why);
static enum why begin(struct probe *);
static enum why take_answer(struct probe *);
static void on_timer(evutil_socket_t, short, void *);
static void on_socket(evutil_socket_t, short, void *);
static int64_t jitter(int64_t ms);

struct health *
health_new(struct event_base *base, struct scoreboard *board, struct err *e)
{
	struct health *h = calloc(1, sizeof(*h));

	if (h == NULL ||
	    (h->by_row = calloc(board->head->n_targets, sizeof(*h->by_row))) ==
		NULL) {
		free(h);
		err_set(e, ERR_LOCAL, "out of memory for health checks");
		return NULL;
	}
	h->base = base;
	h->board = board;
	LIST_INIT(&h->probes);
	return h;
}

void
health_free(struct health *h)
{
	if (h == NULL)
		return;
	health_stop(h);
	free(h->by_row);
	free(h);
}

void
health_dial_as(struct health *h, const char *account)
{
	dialer_init(&h->dialer, account);
}

void
health_stop(struct health *h)
{
	while (!LIST_EMPTY(&h->probes))
		probe_free(LIST_FIRST(&h->probes));
	snapshot_release(h->snapshot);
	h->snapshot = NULL;
}

void
health_apply(struct health *h, struct snapshot *s)
{
	struct probe *p, *next;

	LIST_FOREACH (p, &h->probes, link)
		p->wanted = false;
	for (uint32_t i = 0; i < s->head->n_roles; i++) {
		const struct snap_role *role = snapshot_role(s, i);

		for (uint32_t j = 0; j < role->n_nodes; j++)
			want(h, s, role,
			    snapshot_node(s, role->first_node + j));
	}
	for (p = LIST_FIRST(&h->probes); p != NULL; p = next) {
		next = LIST_NEXT(p, link);
		if (!p->wanted)
			probe_free(p);
	}
	snapshot_release(h->snapshot);
	h->snapshot = s;
}

bool
health_decide(struct health_count *c, bool good, uint32_t rise, uint32_t fall)
{
	c->ups = good ? c->ups + 1 : 0;
	c->downs = good ? 0 : c->downs + 1;
	if (!c->known) {
		c->known = true;
		c->up = good;
		return true;
	}
	if (c->up ? c->downs < fall : c->ups < rise)
		return false;
	c->up = good;
	return true;
}

/* A role without checks, and a node in maintenance, are not probed; then no
 * old verdict must stay. */
static void
want(struct health *h, const struct snapshot *snap,
    const struct snap_role *role, const struct snap_node *node)
{
	struct sb_target *t = sb_target(h->board, node->target);
	struct probe *p;

	if (role->check == SNAP_CHECK_NONE ||
	    node->state == SNAP_NODE_MAINTENANCE) {
		if (atomic_exchange(&t->health, SB_UNKNOWN) != SB_UNKNOWN)
			atomic_store(&t->why, WHY_NONE);
		return;
	}
	p = h->by_row[node->target];
	if (p == NULL && (p = probe_new(h, node->target)) == NULL) {
		log_error("out of memory: a node is not checked");
		return;
	}
	/* What is under way would not understand the answer. */
	if (p->state != PROBE_RESTING && p->check.role->check != role->check)
		probe_rest(p, 0);
	p->wanted = true;
	p->check.snap = snap;
	p->check.node = node;
	p->check.role = role;
}

static struct probe *
probe_new(struct health *h, uint32_t row)
{
	struct probe *p = calloc(1, sizeof(*p));

	if (p == NULL ||
	    (p->timer = evtimer_new(h->base, on_timer, p)) == NULL) {
		free(p);
		return NULL;
	}
	p->health = h;
	p->row = row;
	p->fd = -1;
	LIST_INSERT_HEAD(&h->probes, p, link);
	h->by_row[row] = p;
	probe_rest(p, 0);
	return p;
}

static void
probe_free(struct probe *p)
{
	LIST_REMOVE(p, link);
	p->health->by_row[p->row] = NULL;
	if (p->ev != NULL)
		event_free(p->ev);
	event_free(p->timer);
	io_close(&p->fd);
	free(p);
}

static void
probe_rest(struct probe *p, int64_t ms)
{
	struct timeval tv = { .tv_sec = ms / 1000,
		.tv_usec = ms % 1000 * 1000 };

	if (p->ev != NULL)
		event_free(p->ev);
	p->ev = NULL;
	io_close(&p->fd);
	p->state = PROBE_RESTING;
	evtimer_add(p->timer, &tv);
}

static void
not_dialled(struct probe *p, int error)
{
	switch (error) {
	case EMFILE:
	case ENFILE:
	case ENOBUFS:
	case ENOMEM:
		/* Our shortage says nothing about the node. */
		log_error("health check: no socket: %s", strerror(error));
		probe_rest(p, p->check.role->check_ms);
		break;
	case EAGAIN:
		/* It is there, with more to do than it can. */
		probe_rest(p, p->check.role->check_ms);
		break;
	case EACCES:
	case EPERM:
		snprintf(p->check.detail, sizeof(p->check.detail),
		    "the account proxy.user may not connect to its socket");
		probe_end(p, WHY_CHECK_DENIED);
		break;
	default:
		probe_end(p, WHY_CHECK_CONNECT);
	}
}

static void
probe_start(struct probe *p)
{
	struct timeval limit = { .tv_sec = p->check.role->check_limit_ms / 1000,
		.tv_usec = p->check.role->check_limit_ms % 1000 * 1000 };

	p->check.detail[0] = '\0';
	p->fd = dial_node_as(&p->health->dialer, p->check.snap, p->check.node);
	if (p->fd == -1) {
		not_dialled(p, errno);
		return;
	}
	p->state = PROBE_CONNECTING;
	p->ev = event_new(p->health->base, p->fd, EV_WRITE, on_socket, p);
	if (p->ev == NULL || event_add(p->ev, NULL) == -1) {
		log_error("health check: out of memory");
		probe_rest(p, p->check.role->check_ms);
		return;
	}
	evtimer_add(p->timer, &limit);
}

static bool
say(const struct probe *p, const struct check_say *s)
{
	return s->size == 0 ||
	    send(p->fd, s->bytes, s->size, MSG_NOSIGNAL) == (ssize_t)s->size;
}

/* The connection is there, or not.  WHY_NONE: go on waiting. */
static enum why
begin(struct probe *p)
{
	struct proxy_header ends = { .secure = false };
	int error = 0;
	socklen_t len = sizeof(error);
	struct check_say s;
	enum why why;

	if (getsockopt(p->fd, SOL_SOCKET, SO_ERROR, &error, &len) == -1 ||
	    error != 0)
		return WHY_CHECK_CONNECT;
	if (p->check.role->proxy != SNAP_PROXY_OFF)
		dial_ends(p->fd, &ends.from, &ends.to);
	why = check_begin(&p->check, &ends, &s);
	if (!say(p, &s))
		return WHY_CHECK_CONNECT;
	if (why != WHY_NONE)
		return why;
	p->state = PROBE_READING;
	event_free(p->ev);
	p->ev = event_new(p->health->base, p->fd, EV_READ | EV_PERSIST,
	    on_socket, p);
	if (p->ev == NULL || event_add(p->ev, NULL) == -1)
		return WHY_CHECK_TIMEOUT;
	return WHY_NONE;
}

static enum why
take_answer(struct probe *p)
{
	struct check *c = &p->check;
	ssize_t n = recv(p->fd, c->heard + c->heard_size,
	    sizeof(c->heard) - c->heard_size, 0);
	struct check_say s;
	enum why why;

	if (n == -1)
		return errno == EAGAIN || errno == EINTR ? WHY_NONE :
							   WHY_CHECK_CONNECT;
	if (n == 0)
		return WHY_CHECK_GARBAGE;
	c->heard_size += (size_t)n;
	why = check_goes_on(c, &s);
	return say(p, &s) ? why : WHY_CHECK_CONNECT;
}

static void
probe_end(struct probe *p, enum why why)
{
	if (health_decide(&p->count, why == WHY_CHECK_OK, p->check.role->rise,
		p->check.role->fall))
		publish(p, why);
	else if (!p->count.up && why != WHY_CHECK_OK)
		/* As before, but perhaps for another reason by now. */
		atomic_store(&sb_target(p->health->board, p->row)->why,
		    (uint32_t)why);
	probe_rest(p, jitter(p->check.role->check_ms));
}

static void
publish(struct probe *p, enum why why)
{
	struct sb_target *t = sb_target(p->health->board, p->row);
	const struct snapshot *s = p->health->snapshot;
	const char *detail = p->check.detail;
	uint32_t was = atomic_load(&t->health);
	uint32_t is = p->count.up ? SB_UP : SB_DOWN;
	int64_t now = clock_mono_ms();

	atomic_store(&t->why, (uint32_t)why);
	if (is == was)
		return; /* known from before an upgrade */
	if (is == SB_DOWN || was == SB_DOWN)
		log_warn("node %s as %s is %s: %s%s%s",
		    snapshot_text(s, p->check.node->name),
		    snapshot_text(s, p->check.role->name),
		    is == SB_UP ? "up" : "down", why_word(why),
		    *detail != '\0' ? ": " : "", detail);
	atomic_store(&t->since_ms, now);
	if (is == SB_UP && was == SB_DOWN)
		atomic_store(&t->up_ms, now); /* slow start begins */
	atomic_store(&t->health, is);
}

/* The time for a rest is over, or the time for a check. */
static void
on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct probe *p = arg;

	(void)fd;
	(void)what;
	if (p->state == PROBE_RESTING)
		probe_start(p);
	else
		probe_end(p, WHY_CHECK_TIMEOUT);
}

static void
on_socket(evutil_socket_t fd, short what, void *arg)
{
	struct probe *p = arg;
	enum why why;

	(void)fd;
	(void)what;
	why = p->state == PROBE_CONNECTING ? begin(p) : take_answer(p);
	if (why != WHY_NONE)
		probe_end(p, why);
}

/* Within a tenth, so that checks of many nodes spread out. */
static int64_t
jitter(int64_t ms)
{
	uint32_t tenth = (uint32_t)(ms / 10);

	return ms - tenth / 2 + randombytes_uniform(tenth + 1);
}
