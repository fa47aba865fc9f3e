/*
 * exchange.c: see exchange.h.
 *
 * The state says who is waited for; what each state does when something
 * happened is one function, and what it does when nothing did is another.
 */
#include "proxyd/http/exchange.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/io.h"
#include "proxyd/http/engine_parts.h"
#include "proxyd/http/node_conn.h"
#include "proxyd/static/serve.h"

#define TO(state) (1U << (state))

static void count_collecting(struct exchange *, int by);
static void sweep_body(struct exchange *);
static void sweep_queued(struct exchange *);
static void sweep_connect(struct exchange *);
static void sweep_request(struct exchange *);
static void sweep_response(struct exchange *);
static void sweep_reply(struct exchange *);
static void watch_client(struct exchange *);
static void run_request(struct exchange *);
static void run_response(struct exchange *);
static void run_nothing(struct exchange *);

static const struct {
	const char *name;
	unsigned next; /* where it may go */
	void (*run)(struct exchange *);
	void (*sweep)(struct exchange *);
} states[X_STATES] = {
	[X_HEAD] = { "head",
	    TO(X_BODY) | TO(X_QUEUED) | TO(X_CONNECT) | TO(X_REQUEST) |
		TO(X_REPLY) | TO(X_FILE) | TO(X_DONE),
	    run_nothing, run_nothing },
	[X_BODY] = { "body",
	    TO(X_QUEUED) | TO(X_CONNECT) | TO(X_REQUEST) | TO(X_REPLY) |
		TO(X_DONE),
	    exchange_collect_run, sweep_body },
	/* With no descriptor to be had it goes back to where it was. */
	[X_QUEUED] = { "queued",
	    TO(X_QUEUED) | TO(X_CONNECT) | TO(X_REQUEST) | TO(X_REPLY) |
		TO(X_DONE),
	    watch_client, sweep_queued },
	[X_CONNECT] = { "connect",
	    TO(X_QUEUED) | TO(X_CONNECT) | TO(X_REQUEST) | TO(X_REPLY) |
		TO(X_DONE),
	    exchange_connect_run, sweep_connect },
	/* A request that may be sent again goes back to the choice of nodes. */
	[X_REQUEST] = { "request",
	    TO(X_QUEUED) | TO(X_CONNECT) | TO(X_REQUEST) | TO(X_RESPONSE) |
		TO(X_REPLY) | TO(X_DONE),
	    run_request, sweep_request },
	[X_RESPONSE] = { "response", TO(X_DONE), run_response, sweep_response },
	[X_REPLY] = { "reply", TO(X_DONE), exchange_reply_run, sweep_reply },
	[X_FILE] = { "file",
	    TO(X_BODY) | TO(X_QUEUED) | TO(X_CONNECT) | TO(X_REQUEST) |
		TO(X_REPLY) | TO(X_DONE),
	    static_run, static_sweep },
	[X_DONE] = { "done", 0, run_nothing, run_nothing },
};

struct exchange *
exchange_new(struct client *c)
{
	struct engine *e = c->e;
	struct exchange *x = spare_take(&e->spare_exchanges, sizeof(*x));

	if (x == NULL)
		return NULL;
	if (c->ip[0] == '\0' && c->peer.u.sa.sa_family == AF_UNIX)
		snprintf(c->ip, sizeof(c->ip), "unix:");
	else if (c->ip[0] == '\0')
		addr_format_ip(&c->peer, c->ip);
	memset(x, 0, offsetof(struct exchange, req));
	request_init(&x->req);
	x->client = c;
	x->e = e;
	x->snap = snapshot_hold(e->snap);
	x->start_us = e->now_us;
	x->queued_us = x->sent_us = -1;
	x->queue_us = x->connect_us = x->node_us = -1;
	x->state_ms = x->progress_ms = e->now_ms;
	x->client_ip = c->ip;
	atomic_store_explicit(&e->row->exchanges, ++e->n_exchanges,
	    memory_order_relaxed);
	return x;
}

void
exchange_move(struct exchange *x, enum exchange_state to)
{
	assert(states[x->state].next & TO(to));
	if (to == X_BODY)
		count_collecting(x, 1);
	else if (x->state == X_BODY)
		count_collecting(x, -1);
	x->state = (uint8_t)to;
	x->state_ms = x->progress_ms = x->e->now_ms;
}

static void
count_collecting(struct exchange *x, int by)
{
	struct engine *e = x->e;

	e->n_collecting += (uint32_t)by;
	atomic_store_explicit(&e->row->collecting, e->n_collecting,
	    memory_order_relaxed);
}

const char *
exchange_base(const struct exchange *x)
{
	return x->client->in->data + x->client->in->start;
}

void
exchange_start(struct exchange *x)
{
	struct client *c = x->client;

	c->n_requests++;
	engine_count(&x->e->row->requests);
	x->in_used = x->req.head_len;
	exchange_route(x);
}

void
exchange_refuse(struct exchange *x, enum why why)
{
	struct client *c = x->client;

	c->n_requests++;
	engine_count(&x->e->row->requests);
	/* Where it ends, and the next would begin, is not known. */
	x->req.keep_alive = false;
	x->req.head_len = 0;
	x->in_used = (uint32_t)buf_len(c->in);
	exchange_reply(x, why);
}

void
exchange_run(struct exchange *x)
{
	states[x->state].run(x);
}

void
exchange_sweep(struct exchange *x)
{
	states[x->state].sweep(x);
}

void
exchange_abandon(struct exchange *x, enum why why)
{
	x->why = why;
	exchange_finish(x, CLIENT_ABORT);
}

/* --- what happened */

static void
run_nothing(struct exchange *x)
{
	(void)x;
}

/* A client that is waiting for its response can only send the next request
 * or go away.  A FIN is no reason to stop: it may still read. */
static void
watch_client(struct exchange *x)
{
	struct sock *s = &x->client->s;
	char byte;

	if (s->readable && !s->closed &&
	    recv(s->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == -1 &&
	    errno != EAGAIN)
		exchange_abandon(x, WHY_CLIENT_GONE);
}

static void
run_request(struct exchange *x)
{
	exchange_run_up(x);
	if (x->state == X_REQUEST &&
	    (x->node->s.readable || x->node->in != NULL))
		exchange_read_response(x);
	if (x->state == X_REQUEST && x->up.state == FLOW_DONE)
		watch_client(x);
}

static void
run_response(struct exchange *x)
{
	/* The body may go on while the response already comes. */
	if (x->up.state != FLOW_DONE)
		exchange_run_up(x);
	if (x->state == X_RESPONSE)
		exchange_run_down(x);
}

/* --- what did not */

static bool
passed(const struct exchange *x, int64_t since_ms, uint32_t limit_ms)
{
	return x->e->now_ms - since_ms >= limit_ms;
}

static const struct snap_settings *
settings(const struct exchange *x)
{
	return &x->snap->head->settings;
}

/* A slow client makes room for a packet now and then, long before the kernel
 * says that it is writable: what it has not acknowledged grows less. */
bool
exchange_stalled(struct exchange *x)
{
	int unsent;

	if (!passed(x, x->progress_ms, settings(x)->send_ms))
		return false;
	unsent = sock_unsent(&x->client->s);
	if (unsent == x->unsent)
		return true;
	x->unsent = unsent;
	x->progress_ms = x->e->now_ms;
	return false;
}

static void
sweep_queued(struct exchange *x)
{
	if (x->queue.deadline_ms <= x->e->now_ms)
		exchange_reply(x, WHY_QUEUE_TIMEOUT);
}

static void
sweep_connect(struct exchange *x)
{
	if (passed(x, x->state_ms, settings(x)->connect_ms))
		exchange_node_failed(x, WHY_CONNECT_TIMEOUT);
}

/* Whether the client rightly sends nothing before the node has said 100. */
static bool
awaits_word(const struct exchange *x)
{
	return x->req.expect && x->interims == 0 && x->up.bytes == 0;
}

/* Whether the client keeps the body's rate, where it is the one waited for.
 * Measured in windows: what a slow node cost is not held against it. */
static bool
too_slow(struct exchange *x)
{
	const struct snap_settings *s = settings(x);
	int64_t age = x->e->now_ms - x->rate_ms;
	uint64_t got = x->up.bytes - x->rate_bytes;
	bool slow;

	if (age < s->body_grace_ms)
		return false;
	slow = got * 1000 < (uint64_t)s->body_rate * (uint64_t)age;
	x->rate_ms = x->e->now_ms;
	x->rate_bytes = x->up.bytes;
	return slow;
}

/* A lazy source may hold less than it would tell. */
static void
look_at_lazy(struct sock *s)
{
	if (s->lazy > 0)
		s->readable = true;
}

static void
sweep_body(struct exchange *x)
{
	look_at_lazy(&x->client->s);
	client_shrink(x->client);
	if (too_slow(x))
		exchange_reply(x, WHY_TOO_SLOW);
}

static void
sweep_request(struct exchange *x)
{
	uint32_t limit_ms = settings(x)->response_ms;

	look_at_lazy(&x->client->s);
	if (x->up.state != FLOW_DONE && flow_pending(&x->up)) {
		x->rate_ms = x->e->now_ms;
		x->rate_bytes = x->up.bytes;
	} else if (x->up.state != FLOW_DONE && !awaits_word(x)) {
		if (too_slow(x))
			exchange_reply(x, WHY_TOO_SLOW);
		return;
	} else if (x->up.state == FLOW_DONE) {
		client_shrink(x->client);
	}
	if (passed(x, x->progress_ms, limit_ms))
		exchange_node_failed(x, WHY_NODE_TIMEOUT);
	else if (atomic_load_explicit(&x->target->health,
		     memory_order_relaxed) == SB_DOWN &&
	    x->role->n_nodes > 1 && !x->resent && x->body_held &&
	    method_idempotent(x->req.method))
		exchange_node_failed(x, WHY_CHECK_DOWN);
}

static void
sweep_response(struct exchange *x)
{
	if (x->node != NULL)
		look_at_lazy(&x->node->s);
	look_at_lazy(&x->client->s);
	if (x->up.state == FLOW_DONE)
		client_shrink(x->client);
	if (flow_pending(&x->down) && exchange_stalled(x)) {
		exchange_abandon(x, WHY_CLIENT_STALLED);
	} else if (x->node_due &&
	    passed(x, x->node_ms, settings(x)->response_ms)) {
		exchange_release(x, BALANCE_FAILED, WHY_NODE_TIMEOUT, false);
		exchange_abandon(x, WHY_NODE_TIMEOUT);
	}
}

static void
sweep_reply(struct exchange *x)
{
	if (exchange_stalled(x))
		exchange_abandon(x, WHY_CLIENT_STALLED);
}
