/*
 * respond.c: the node's response on its way to the client.
 */
#include <stdio.h>
#include <string.h>

#include "proxyd/http/compress.h"
#include "proxyd/http/compressible.h"
#include "proxyd/http/cookie.h"
#include "proxyd/http/engine_parts.h"
#include "proxyd/http/exchange.h"
#include "proxyd/http/node_conn.h"
#include "proxyd/http/tunnel.h"
#include "proxyd/http/websocket.h"
#include "proxyd/static/serve.h"

#define INTERIMS_MAX 16
#define EXTRA_MAX    448 /* our own lines, but for the cookie's */

static bool read_more(struct exchange *);
static void take_heads(struct exchange *);
static bool relay_interim(struct exchange *);
static void respond(struct exchange *);
static void open_tunnel(struct exchange *);
static void let_node_go(struct exchange *);
static void complete(struct exchange *);

void
exchange_read_response(struct exchange *x)
{
	enum why why;

	/* An interim response that did not fit goes first. */
	if (flow_pending(&x->down) &&
	    flow_run(&x->down, &x->e->tools, &x->node->s, &x->client->s,
		&why) != FLOW_FINISHED)
		return;
	if (x->node->in != NULL)
		take_heads(x);
	while (x->state == X_REQUEST && read_more(x))
		take_heads(x);
}

/* False: nothing more for now, or it failed. */
static bool
read_more(struct exchange *x)
{
	struct node_conn *n = x->node;
	struct buf_pool *bufs = &x->e->bufs;
	ssize_t got;

	if (!n->s.readable && !sock_look_again(&n->s))
		return false;
	if (n->in == NULL && (n->in = buf_take(bufs, BUF_MEDIUM)) == NULL) {
		exchange_reply(x, WHY_NO_MEMORY);
		return false;
	}
	if (n->in->end == n->in->room &&
	    (n->in->kind == BUF_LARGE ||
		buf_resize(bufs, &n->in, BUF_LARGE) == -1)) {
		exchange_node_failed(x, WHY_NODE_GARBAGE);
		return false;
	}
	got = sock_recv(&n->s, n->in->data + n->in->end,
	    n->in->room - n->in->end);
	if (got > 0) {
		if (x->node_us == -1)
			x->node_us = x->e->now_us - x->sent_us;
		x->progress_ms = x->e->now_ms;
		n->in->end += (uint32_t)got;
		return true;
	}
	if (buf_len(n->in) == 0)
		buf_give(bufs, &n->in);
	if (got != SOCK_AGAIN)
		exchange_node_failed(x,
		    got == SOCK_EOF ? WHY_NODE_CLOSED : WHY_NODE_RESET);
	return false;
}

/* What is there is parsed: any number of interim heads, then the final one,
 * which takes the exchange to its next state. */
static void
take_heads(struct exchange *x)
{
	const struct snap_settings *s = &x->snap->head->settings;
	struct head_limits limits = { s->target_size, s->fields_size,
		s->fields_max };
	struct buf *in = x->node->in;

	do {
		enum parse_result r =
		    parse_response(&x->res, in->data + in->start, buf_len(in),
			&limits, x->req.method == METHOD_HEAD);

		if (r == PARSE_MORE)
			return;
		if (r == PARSE_BAD) {
			exchange_node_failed(x, WHY_NODE_GARBAGE);
			return;
		}
	} while (
	    x->res.status < 200 && x->res.status != 101 && relay_interim(x));
	if (x->state != X_REQUEST || x->node == NULL)
		return;
	if (x->res.status == 101)
		open_tunnel(x);
	else if (x->res.status >= 200)
		respond(x);
}

/* 1xx: passed on to those who know them; the response is still to come.
 * False: not now, or never. */
static bool
relay_interim(struct exchange *x)
{
	struct engine *e = x->e;
	struct buf *in = x->node->in;
	struct forward_response fr = {
		.res = &x->res,
		.base = in->data + in->start,
	};
	enum flow_result r = FLOW_FINISHED;
	enum why why;

	if (++x->interims > INTERIMS_MAX) {
		exchange_node_failed(x, WHY_NODE_GARBAGE);
		return false;
	}
	/* A 100 nobody asked for would only confuse. */
	if (x->req.minor >= 1 && (x->res.status != 100 || x->req.expect)) {
		flow_init(&x->down, (struct body_framing){ FRAMING_NONE, 0 },
		    FLOW_RAW);
		flow_head(&x->down, e->scratch,
		    forward_response(e->scratch, sizeof(e->scratch), &fr),
		    sizeof(e->scratch));
		r = flow_run(&x->down, &e->tools, &x->node->s, &x->client->s,
		    &why);
	}
	in->start += x->res.head_len;
	response_init(&x->res);
	if (r == FLOW_FINISHED)
		return true;
	if (r != FLOW_WAITS_DST)
		exchange_abandon(x, WHY_CLIENT_GONE);
	return false;
}

/* --- the response */

/* How the body goes out, and whether the connection can go on behind it. */
static enum flow_out
plan_body(struct exchange *x)
{
	const struct snap_settings *s = &x->snap->head->settings;
	bool unknown = x->res.body.kind == FRAMING_CHUNKED ||
	    x->res.body.kind == FRAMING_CLOSE;

	x->keep_alive = x->req.keep_alive && !x->e->draining &&
	    x->up.state == FLOW_DONE && !x->broken_up &&
	    (s->keepalive_requests == 0 ||
		x->client->n_requests < s->keepalive_requests);
	if (x->req.minor == 0)
		x->keep_alive =
		    x->keep_alive && s->keepalive_http10 && !unknown;
	return unknown && x->req.minor >= 1 ? FLOW_CHUNKS : FLOW_RAW;
}

/* Our own lines: HSTS, the sticky cookie, the reasons for those who may ask. */
static void
extra_fields(const struct exchange *x, char *line, size_t size)
{
	const char *hsts = exchange_hsts(x);
	size_t n = strlen(hsts);

	memcpy(line, hsts, n + 1);
	if (x->role->balance == SNAP_STICKY &&
	    snapshot_node(x->snap, 0) + x->ask.sticky != x->snap_node) {
		cookie_set_node(line + n, x->snap, x->role, x->snap_node);
		n += strlen(line + n);
	}
	if (x->tell_why)
		snprintf(line + n, size - n,
		    "X-Muster-Why: node=%s attempts=%u skipped=%s "
		    "delayed=%s queue_us=%lld static=%s compress=%s\r\n",
		    snapshot_text(x->snap, x->snap_node->name), x->attempts,
		    why_word(x->skip), why_word(x->why),
		    (long long)(x->queue_us < 0 ? 0 : x->queue_us),
		    static_why(x),
		    compress_why_word((enum compress_why)x->compress_why));
}

/* A stream within what all of them may hold; NULL: without, then. */
static struct compress *
take_compressor(struct exchange *x, enum coding coding)
{
	const struct snap_settings *s = &x->snap->head->settings;
	struct compress_memory *m = &x->e->compress;
	struct compress *c;
	uint32_t level =
	    coding == CODING_GZIP ? s->gzip_level : s->brotli_level;

	if (m->used + compress_cost(coding, level) > s->compress_memory)
		return NULL;
	c = compress_new(m, coding, level,
	    x->res.length_seen ? x->res.body.length : COMPRESS_ANY_SIZE);
	atomic_store_explicit(&x->e->row->compress_held, m->used,
	    memory_order_relaxed);
	return c;
}

/* Whether the response goes out in a coding of ours, and what its head says
 * of it.  True: there is a body, of unknown length. */
static bool
plan_coding(struct exchange *x, struct forward_response *fr)
{
	struct compressible c;

	if (x->site->compress == 0)
		return false;
	compressible_judge(&c,
	    &(struct compress_rules){
		.codings = x->site->compress,
		.min = x->site->compress_min,
		.types = snapshot_text(x->snap, x->site->compress_types),
	    },
	    &x->req, exchange_base(x), &x->res, fr->base);
	if (c.why == COMPRESS_YES && x->req.method != METHOD_HEAD &&
	    (x->compress = take_compressor(x, c.coding)) == NULL) {
		engine_count(&x->e->row->compress_full);
		c.why = COMPRESS_MEMORY;
		c.weak = false;
	}
	x->compress_why = (uint8_t)c.why;
	fr->varies = c.varies;
	fr->weak = c.weak;
	if (c.why == COMPRESS_YES)
		fr->coding = coding_names[c.coding];
	return x->compress != NULL;
}

/* How much of the body may be put away for a slow client.  A program that
 * wants to know how far its client is says no, in the field that nginx made
 * known. */
static uint64_t
may_put_away(const struct exchange *x)
{
	const struct field *f = NULL;
	const char *base = x->node->in->data + x->node->in->start;

	if (fields_have(&x->res.fields, FIELD_X_ACCEL_BUFFERING))
		f = fields_find(&x->res.fields, FIELD_X_ACCEL_BUFFERING, NULL);
	if (f != NULL && field_is(base + f->value, f->value_len, "no"))
		return 0;
	return x->site->response_buffer;
}

static void
respond(struct exchange *x)
{
	struct engine *e = x->e;
	struct node_conn *n = x->node;
	char extra[COOKIE_NODE_FIELD + EXTRA_MAX];
	enum flow_out out = plan_body(x);
	struct forward_response fr = {
		.res = &x->res,
		.base = n->in->data + n->in->start,
		.date = engine_date(e),
		.extra = extra,
		.connection = !x->keep_alive ? FORWARD_CLOSE :
		    x->req.minor == 0	     ? FORWARD_PERSIST_10 :
					       FORWARD_PERSIST,
		.hsts = *exchange_hsts(x) != '\0',
	};
	enum flow_result r;
	enum why why = WHY_NONE;
	size_t size;

	if (plan_coding(x, &fr))
		out = FLOW_CHUNKS;
	fr.chunked = out == FLOW_CHUNKS;
	extra_fields(x, extra, sizeof(extra));
	size = forward_response(e->scratch, sizeof(e->scratch), &fr);
	sb_latency(x->target, (uint64_t)x->node_us);
	flow_init(&x->down, x->res.body, out);
	x->down.splice = x->snap->head->settings.splice != 0;
	x->down.store_max = may_put_away(x);
	if (x->compress != NULL)
		flow_filter(&x->down, &x->compress->filter);
	/* The buffer goes over to the flow: the head in it was copied. */
	x->down.buf = n->in;
	n->in = NULL;
	r = flow_feed(&x->down,
	    x->down.buf->data + x->down.buf->start + x->res.head_len,
	    buf_len(x->down.buf) - x->res.head_len, &why);
	if (r != FLOW_WAITS_SRC || size == 0) {
		flow_fini(&x->down, &e->tools);
		exchange_drop_coding(x);
		exchange_node_failed(x, WHY_NODE_GARBAGE);
		return;
	}
	flow_head(&x->down, e->scratch, size, sizeof(e->scratch));
	x->status = x->res.status;
	x->node_ms = e->now_ms;
	if (x->up.keep)
		flow_send_once(&x->up, &e->tools);
	exchange_move(x, X_RESPONSE);
	exchange_run_down(x);
}

/* What was moved, and who is waited for now. */
static void
note_progress(struct exchange *x, enum flow_result r, uint64_t bytes,
    uint64_t written)
{
	bool read = x->down.bytes != bytes;

	x->node_due = r == FLOW_WAITS_SRC && x->down.state == FLOW_OPEN;
	if (read)
		x->node_ms = x->e->now_ms;
	/* What is put away for a client is no sign of its life. */
	if (x->down.written != written || (read && !flow_pending(&x->down)))
		x->progress_ms = x->e->now_ms;
}

void
exchange_run_down(struct exchange *x)
{
	uint64_t bytes = x->down.bytes, written = x->down.written;
	enum why why = WHY_NONE;
	struct leave leave;
	enum flow_result r;

	limit_ask_down(x, &leave);
	r = flow_run(&x->down, &x->e->tools,
	    x->node == NULL ? NULL : &x->node->s, &x->client->s, &why);
	limit_back_down(x, &leave);
	switch (r) {
	case FLOW_WAITS_LEAVE:
		x->progress_ms = x->e->now_ms;
		limit_wait(x->client, &x->limited, &leave);
		/* FALLTHROUGH */
	case FLOW_WAITS_SRC:
	case FLOW_WAITS_DST:
	case FLOW_WAITS_TURN:
		note_progress(x, r, bytes, written);
		if (r == FLOW_WAITS_TURN)
			sock_again(&x->client->s);
		if (x->down.state == FLOW_ENDED && !x->delivering)
			let_node_go(x);
		if (x->down.filter_done)
			exchange_drop_coding(x);
		break;
	case FLOW_FINISHED:
		complete(x);
		break;
	case FLOW_DST_ERROR:
		exchange_abandon(x, WHY_CLIENT_GONE);
		break;
	case FLOW_CUT:
	case FLOW_SRC_ERROR:
	case FLOW_BAD:
	case FLOW_TOO_LARGE:
		/* The client must see that its response is not whole. */
		exchange_release(x, BALANCE_FAILED, WHY_NODE_CUT, false);
		exchange_abandon(x, WHY_NODE_CUT);
		break;
	case FLOW_FILTER_ERROR:
		exchange_abandon(x, WHY_COMPRESS);
		break;
	case FLOW_NO_MEMORY:
		exchange_abandon(x, WHY_NO_MEMORY);
		break;
	case FLOW_LOST:
		exchange_abandon(x, WHY_SPOOL_LOST);
		break;
	}
}

static void
release_well(struct exchange *x)
{
	/* Whatever the node sends behind its response is no response. */
	bool reusable = x->res.keep_alive && x->up.state == FLOW_DONE &&
	    !x->broken_up && x->down.rest_size == 0 &&
	    x->down.in != FRAMING_CLOSE;

	exchange_release(x, BALANCE_OK, WHY_NONE, reusable);
}

/* All of the response is here, though the client has not taken it all: the
 * next request may have the node's place, and the site's. */
static void
let_node_go(struct exchange *x)
{
	struct engine *e = x->e;

	release_well(x);
	exchange_release_site(x);
	/* A body that the node did not wait for goes nowhere now. */
	if (x->up.state != FLOW_DONE) {
		flow_fini(&x->up, &e->tools);
		x->up.state = FLOW_DONE;
		x->broken_up = true;
	}
	x->delivering = true;
	atomic_store_explicit(&e->row->delivering, ++e->n_delivering,
	    memory_order_relaxed);
	if (e->n_queued > 0)
		exchange_serve_queue(e, x->role);
}

static void
complete(struct exchange *x)
{
	release_well(x);
	exchange_finish(x, x->keep_alive ? CLIENT_KEEP : CLIENT_CLOSE);
}

/* --- upgrades */

/* Whether the node agrees to what the client asked for, and to nothing
 * else. */
static bool
upgrade_right(const struct exchange *x, const char *base)
{
	const char *asked = exchange_base(x);
	const struct field *want =
	    fields_find(&x->req.fields, FIELD_UPGRADE, NULL);
	const struct field *got =
	    fields_find(&x->res.fields, FIELD_UPGRADE, NULL);
	const struct field *key, *accept;

	if (x->req.upgrade == UPGRADE_NONE || got == NULL ||
	    !x->res.connection.upgrade)
		return false;
	if (x->req.upgrade == UPGRADE_OTHER)
		return got->value_len == want->value_len &&
		    memcmp(base + got->value, asked + want->value,
			got->value_len) == 0;
	key = fields_find(&x->req.fields, FIELD_WEBSOCKET_KEY, NULL);
	accept = fields_find(&x->res.fields, FIELD_WEBSOCKET_ACCEPT, NULL);
	return field_is(base + got->value, got->value_len, "websocket") &&
	    accept != NULL &&
	    websocket_accepts(asked + key->value, key->value_len,
		base + accept->value, accept->value_len);
}

static void
open_tunnel(struct exchange *x)
{
	struct engine *e = x->e;
	struct buf *in = x->node->in;
	struct forward_response fr = {
		.res = &x->res,
		.base = in->data + in->start,
	};
	size_t size;

	if (!upgrade_right(x, fr.base)) {
		exchange_node_failed(x, WHY_NODE_UPGRADE);
		return;
	}
	size = forward_response(e->scratch, sizeof(e->scratch), &fr);
	sb_latency(x->target, (uint64_t)x->node_us);
	if (tunnel_open(x, e->scratch, size) == -1)
		exchange_reply(x, WHY_NO_MEMORY);
}
