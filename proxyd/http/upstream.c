/*
 * upstream.c: from the choice of a node to the request sent, and once more
 * if that may be: may_resend() says when.
 */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/io.h"
#include "proxyd/http/cookie.h"
#include "proxyd/http/engine_parts.h"
#include "proxyd/http/exchange.h"
#include "proxyd/http/introduce.h"
#include "proxyd/http/node_conn.h"

static bool hold_site(struct exchange *);
static void choose(struct exchange *);
static void wait_in_queue(struct exchange *, enum why);
static void wait_to_connect(struct exchange *, enum why);
static void connect_node(struct exchange *, uint32_t index);
static void send_request(struct exchange *);
static void begin_body(struct exchange *);
static uint64_t key_of(struct exchange *);
static uint32_t sticky_of(struct exchange *);

static struct exchange *
of_queue(struct queue_entry *q)
{
	return (struct exchange *)(void *)((char *)q -
	    offsetof(struct exchange, queue));
}

/* --- the choice */

void
exchange_dispatch(struct exchange *x)
{
	struct engine *e = x->e;

	x->ask.snap = x->snap;
	x->ask.role = x->role;
	x->ask.key = key_of(x);
	x->ask.sticky = sticky_of(x);
	balance_request(e->balance, x->snap);
	/* Behind those who already wait. */
	if (e->n_queued > 0 && e->queues[x->role->target] != NULL &&
	    queue_length(e->queues[x->role->target]) > 0)
		wait_in_queue(x, WHY_NODE_FULL);
	else if (!hold_site(x))
		wait_in_queue(x, WHY_SITE_BUSY);
	else
		choose(x);
}

static bool
hold_site(struct exchange *x)
{
	if (x->site->account == SB_NONE)
		return true; /* the table is full: nothing is counted */
	if (!x->holds_site)
		x->holds_site = sb_hold_below(x->e->sb,
		    sb_account(x->e->sb, x->site->account)->active, x->e->slot,
		    x->site->max_active);
	return x->holds_site;
}

void
exchange_release_site(struct exchange *x)
{
	if (x->holds_site)
		sb_release(sb_account(x->e->sb, x->site->account)->active,
		    x->e->slot);
	x->holds_site = false;
}

static void
choose(struct exchange *x)
{
	struct balance_answer answer;

	x->ask.now_ms = x->e->now_ms;
	balance_pick(x->e->balance, &x->ask, &answer);
	if (answer.action != BALANCE_NODE && x->may_return) {
		x->may_return = false;
		x->ask.n_tried--;
		balance_pick(x->e->balance, &x->ask, &answer);
	}
	switch (answer.action) {
	case BALANCE_NODE:
		x->skip = answer.why;
		connect_node(x, answer.node);
		break;
	case BALANCE_WAIT:
		wait_in_queue(x, answer.why);
		break;
	case BALANCE_NONE:
		exchange_reply(x, x->ask.n_tried > 0 ? x->why : WHY_NO_NODE);
		break;
	}
}

/* Which bytes a consistent choice depends on. */
static uint64_t
key_of(struct exchange *x)
{
	const char *text = x->client_ip;
	size_t len = strlen(text);

	if (x->role->balance == SNAP_HASH_URI) {
		const char *end;

		text = exchange_base(x) + x->req.target.path.off;
		len = x->req.target.path.len;
		end = memchr(text, '?', len);
		len = end == NULL ? len : (size_t)(end - text);
	} else if (x->role->balance == SNAP_HASH_COOKIE) {
		/* Without one: by address. */
		cookie_find(&x->req.fields, exchange_base(x),
		    snapshot_text(x->snap, x->role->cookie), &text, &len);
	} else if (x->role->balance != SNAP_HASH_IP) {
		return 0;
	}
	return balance_hash(text, len);
}

static uint32_t
sticky_of(struct exchange *x)
{
	if (x->role->balance != SNAP_STICKY)
		return SNAP_NONE;
	return cookie_node(&x->req.fields, exchange_base(x), x->snap, x->role);
}

/* --- the queue */

static void
count_queued(struct exchange *x, int by)
{
	struct engine *e = x->e;
	_Atomic uint32_t *cells = sb_target(e->sb, x->role->target)->active;

	e->n_queued += (uint32_t)by;
	e->tools.slow_rate = e->n_queued > 0 ? FLOW_SLOW_PRESSED : FLOW_SLOW;
	if (by > 0)
		sb_hold(cells, e->slot);
	else
		sb_release(cells, e->slot);
	atomic_store_explicit(&e->row->queued, e->n_queued,
	    memory_order_relaxed);
}

static void
wait_in_queue(struct exchange *x, enum why why)
{
	struct engine *e = x->e;
	struct queue *q = engine_queue(e, x->role);
	uint32_t wait_ms =
	    x->site->queue_ms != 0 ? x->site->queue_ms : x->role->queue_ms;

	x->why = why;
	if (x->queued_us == -1)
		x->queued_us = e->now_us;
	/* Whoever comes back has waited already. */
	if (q == NULL ||
	    !queue_push(q, &x->queue, x->site->id, x->site->share,
		x->role->queue_max, x->queued_us / 1000 + wait_ms)) {
		exchange_reply(x,
		    x->role->queue_max == 0 ? why : WHY_QUEUE_FULL);
		return;
	}
	count_queued(x, 1);
	engine_serve_soon(e);
	exchange_move(x, X_QUEUED);
}

static void
leave_queue(struct exchange *x, bool served)
{
	queue_leave(x->e->queues[x->role->target], &x->queue, served);
	count_queued(x, -1);
	x->queue_us = x->e->now_us - x->queued_us;
}

void
exchange_leave_queue(struct exchange *x)
{
	leave_queue(x, false);
}

/* Whoever's turn it is tries; a site at its own bound lets the next one
 * pass; nodes that are full end it. */
void
exchange_serve_queue(struct engine *e, const struct snap_role *role)
{
	struct queue *q = e->queues[role->target];
	struct queue_entry *entry = NULL;

	if (q == NULL || e->serving)
		return; /* whoever is serving already goes on */
	e->serving = true;
	while ((entry = queue_next(q, entry)) != NULL) {
		struct exchange *x = of_queue(entry);
		struct client *c = x->client;
		struct balance_answer answer;

		if (!hold_site(x))
			continue;
		x->ask.now_ms = e->now_ms;
		balance_pick(e->balance, &x->ask, &answer);
		if (answer.action == BALANCE_WAIT)
			break;
		leave_queue(x, true);
		if (answer.action == BALANCE_NODE)
			connect_node(x, answer.node);
		else
			exchange_reply(x, WHY_NO_NODE);
		if (x->state == X_QUEUED)
			break; /* nor would the next one get through */
		client_run(c);
		entry = NULL;
	}
	e->serving = false;
}

/* --- connection and request */

static enum why
connect_why(int error)
{
	switch (error) {
	case ECONNREFUSED:
	case ENOENT: /* no such socket */
		return WHY_CONNECT_REFUSED;
	case EACCES:
	case EPERM:
		return WHY_CONNECT_DENIED;
	case ETIMEDOUT:
		return WHY_CONNECT_TIMEOUT;
	default:
		return WHY_CONNECT_FAILED;
	}
}

/* Whether it is we who lack something: no reason to think ill of a node. */
static bool
is_ours(int error)
{
	return error == EMFILE || error == ENFILE || error == ENOMEM ||
	    error == ENOBUFS || error == EADDRNOTAVAIL;
}

/* It was no attempt, and says nothing about the node. */
static void
wait_to_connect(struct exchange *x, enum why why)
{
	exchange_release(x, BALANCE_NEUTRAL, why, false);
	x->ask.n_tried--;
	x->attempts--;
	wait_in_queue(x, why);
}

/* A place at the node is held. */
static void
connect_node(struct exchange *x, uint32_t index)
{
	bool careful = !method_idempotent(x->req.method);

	x->snap_node = snapshot_node(x->snap, index);
	x->target = sb_target(x->e->sb, x->snap_node->target);
	x->ask.tried[x->ask.n_tried++] = index;
	x->holds_node = true;
	x->attempts++;
	x->node = node_conn_get(x->e, x->snap, x->snap_node, x->client,
	    introduce_key(x), x->fresh, careful);
	x->sent_us = x->e->now_us;
	if (x->node == NULL && is_ours(errno)) {
		/* Somebody else's will be free, and serve this one, too. */
		engine_pause(x->e);
		wait_to_connect(x, WHY_NO_DESCRIPTORS);
	} else if (x->node == NULL && errno == EAGAIN) {
		wait_to_connect(x, WHY_NODE_FULL);
	} else if (x->node == NULL) {
		enum why why = connect_why(errno);

		exchange_move(x, X_CONNECT);
		exchange_node_failed(x, why);
	} else if (x->node->state == NODE_CONNECTING) {
		exchange_move(x, X_CONNECT);
	} else {
		send_request(x);
	}
}

void
exchange_connect_run(struct exchange *x)
{
	switch (node_conn_connected(x->node)) {
	case 1:
		x->connect_us = x->e->now_us - x->sent_us;
		send_request(x);
		break;
	case -1:
		exchange_node_failed(x, connect_why(errno));
		break;
	}
}

static void
send_request(struct exchange *x)
{
	struct engine *e = x->e;
	bool no_ip = x->client->peer.u.sa.sa_family == AF_UNIX;
	struct forward_request fr = {
		.req = &x->req,
		.base = exchange_base(x),
		.peer_ip = no_ip ? NULL : x->client->ip,
		.client_ip = no_ip && x->client_ip == x->client->ip ?
		    NULL :
		    x->client_ip,
		.proto = x->client->secure ? "https" : "http",
		.host = snapshot_text(x->snap, x->site->name),
		.via = snapshot_text(x->snap, x->snap->head->settings.via),
		.id = x->request_id,
		.id_len = x->id_len,
		.trusted = x->trusted,
	};
	size_t first = introduce_write(x, e->scratch, sizeof(e->scratch));
	size_t head = forward_request(e->scratch + first,
	    sizeof(e->scratch) - first, &fr);
	size_t size = first + head;

	assert(head > 0); /* FORWARD_MAX is more than any accepted head */
	sb_add(&x->target->total, 1);
	x->sent_us = e->now_us;
	x->node_us = -1; /* whatever an earlier attempt came to */
	x->broken_up = false;
	x->rate_ms = e->now_ms;
	x->rate_bytes = x->up.bytes;
	response_init(&x->res);
	begin_body(x);
	if (x->first_chunk > 0)
		size += (size_t)snprintf(e->scratch + size,
		    sizeof(e->scratch) - size, "%" PRIx64 "\r\n",
		    x->first_chunk);
	flow_head(&x->up, e->scratch, size, sizeof(e->scratch));
	exchange_move(x, X_REQUEST);
	exchange_run_up(x);
}

/* Once more from the start, which is the last time where none may follow. */
static void
begin_body(struct exchange *x)
{
	/* What came with the head is still behind it, wherever that is now. */
	if (x->up.buf == NULL && x->up.held_size > 0)
		x->up.held = x->client->in->data + x->client->in->start +
		    x->req.head_len;
	flow_rewind(&x->up, &x->e->tools);
	if (x->resent || !method_idempotent(x->req.method))
		flow_send_once(&x->up, &x->e->tools);
}

void
exchange_run_up(struct exchange *x)
{
	uint64_t before = x->up.bytes, written = x->up.written;
	enum why why = WHY_NONE;
	enum flow_result r;

	if (x->up.state == FLOW_DONE)
		return;
	r = flow_run(&x->up, &x->e->tools, &x->client->s, &x->node->s, &why);
	if (x->up.bytes != before || x->up.written != written)
		x->progress_ms = x->e->now_ms;
	switch (r) {
	case FLOW_WAITS_SRC:
	case FLOW_WAITS_DST:
	case FLOW_WAITS_LEAVE:
		break;
	case FLOW_FINISHED:
		x->progress_ms = x->e->now_ms;
		break;
	case FLOW_WAITS_TURN:
		sock_again(&x->client->s);
		break;
	case FLOW_DST_ERROR:
		/* It may have said why before it closed: see what can still
		 * be read. */
		x->up.state = FLOW_DONE;
		x->up.head_size = x->up.size = 0;
		x->broken_up = true;
		x->node->s.readable = true;
		break;
	case FLOW_BAD:
	case FLOW_TOO_LARGE:
	case FLOW_FILTER_ERROR:
	case FLOW_NO_MEMORY:
		why = r == FLOW_BAD	? why :
		    r == FLOW_TOO_LARGE ? WHY_BODY_TOO_LARGE :
					  WHY_NO_MEMORY;
		if (x->state == X_REQUEST)
			exchange_reply(x, why);
		else
			exchange_abandon(x, why);
		break;
	case FLOW_LOST:
		exchange_abandon(x, WHY_SPOOL_LOST);
		break;
	case FLOW_CUT:
	case FLOW_SRC_ERROR:
		exchange_abandon(x, WHY_CLIENT_GONE);
		break;
	}
}

/* --- failures */

/* May this request be sent again? */
static bool
may_resend(const struct exchange *x)
{
	if (x->ask.n_tried > x->snap->head->settings.retries)
		return false;
	if (x->state == X_CONNECT)
		return true; /* nothing was sent */
	return !x->resent && x->body_held && x->interims == 0 &&
	    method_idempotent(x->req.method);
}

/* The node may have closed an idle connection, or be dying with more in its
 * backlog: another one is safer, where it makes no difference which serves;
 * else the same one, on a fresh connection. */
static void
go_elsewhere_if_free(struct exchange *x)
{
	x->fresh = true;
	if (x->role->balance == SNAP_LEAST_CONN ||
	    x->role->balance == SNAP_ROUND_ROBIN)
		x->may_return = true;
	else
		x->ask.n_tried--;
}

void
exchange_node_failed(struct exchange *x, enum why why)
{
	/* A pooled connection that dies untouched tells nothing about its
	 * node. */
	bool stale = x->node != NULL && x->node->reused &&
	    x->node->in == NULL &&
	    (why == WHY_NODE_RESET || why == WHY_NODE_CLOSED);
	bool again = may_resend(x) && why != WHY_NODE_TIMEOUT;
	bool sent = x->state == X_REQUEST;

	exchange_release(x, stale ? BALANCE_NEUTRAL : BALANCE_FAILED, why,
	    false);
	x->why = why;
	/* What was never sent adds no load, so it costs nothing. */
	if (again && sent && !balance_retry(x->e->balance, x->snap)) {
		again = false;
		x->why = WHY_RETRY_BUDGET;
	}
	if (!again) {
		exchange_reply(x, x->why);
		return;
	}
	sb_add(&x->target->retried, 1);
	engine_count(&x->e->row->retries);
	x->resent = x->resent || sent;
	if (stale)
		go_elsewhere_if_free(x);
	choose(x);
}

void
exchange_release(struct exchange *x, enum balance_end how, enum why why,
    bool reusable)
{
	struct engine *e = x->e;

	if (x->node != NULL) {
		struct node_conn *n = x->node;

		x->node = NULL;
		if (reusable)
			node_conn_put(n);
		else
			node_conn_drop(n);
	}
	if (!x->holds_node)
		return;
	x->holds_node = false;
	if (x->up.bytes > 0)
		sb_add(&x->target->bytes_out, flow_delivered(&x->up));
	if (x->state == X_RESPONSE)
		sb_add(&x->target->bytes_in, x->down.bytes);
	balance_end(e->balance, x->snap, x->role_index,
	    (uint32_t)(x->snap_node - snapshot_node(x->snap, 0)), how, why,
	    e->now_ms);
}
