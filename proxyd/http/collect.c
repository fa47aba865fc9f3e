/*
 * collect.c: a request's body, before a node is chosen.
 *
 * Where the site says so a body is held as a whole first, in memory and then
 * on disk: however slowly it comes, it costs no node until it is there, and
 * it can be sent again.  What is too large for that, or finds no room, goes
 * through as it comes: an upload never fails for want of a buffer.
 */
#include <string.h>

#include "proxyd/http/engine_parts.h"
#include "proxyd/http/exchange.h"

#define HEAD_CONTINUE "HTTP/1.1 100 Continue\r\n\r\n"

/* One request may take a quarter of the spool. */
#define SHARES 4

static bool feed(struct exchange *);
static bool fits(struct exchange *);
static bool say_continue(struct exchange *);
static void collected(struct exchange *);
static void stream(struct exchange *);
static void go_on(struct exchange *);

static bool
collects(const struct exchange *x)
{
	return (x->site->flags & SNAP_SITE_COLLECTS) != 0;
}

void
exchange_take_body(struct exchange *x)
{
	bool turn = x->req.body.kind == FRAMING_CHUNKED && !collects(x);

	flow_init(&x->up, x->req.body, turn ? FLOW_CHUNKS : FLOW_RAW);
	if (x->site->max_body > 0)
		x->up.limit = x->site->max_body;
	x->up.splice = x->snap->head->settings.splice != 0;
	if (!feed(x))
		return;
	if (x->up.state != FLOW_OPEN) {
		collected(x);
	} else if (!collects(x) || !fits(x)) {
		go_on(x);
	} else {
		x->rate_ms = x->e->now_ms;
		x->rate_bytes = x->up.bytes;
		exchange_move(x, X_BODY);
		if (say_continue(x))
			exchange_collect_run(x);
	}
}

/* What of the body came with the head.  A chunked one is turned in a buffer
 * of its own, so that the head stays as it is. */
static bool
feed(struct exchange *x)
{
	struct buf *in = x->client->in;
	char *data = in->data + in->start + x->req.head_len;
	size_t size = buf_len(in) - x->req.head_len;
	enum flow_result r;
	enum why why = WHY_NO_MEMORY;

	if (x->req.body.kind == FRAMING_CHUNKED && size > 0) {
		x->up.buf = buf_take(&x->e->bufs, buf_size_for(size));
		if (x->up.buf == NULL) {
			exchange_reply(x, why);
			return false;
		}
		data = memcpy(x->up.buf->data, data, size);
	}
	r = flow_feed(&x->up, data, size, &why);
	if (r == FLOW_BAD || r == FLOW_TOO_LARGE) {
		exchange_reply(x, r == FLOW_BAD ? why : WHY_BODY_TOO_LARGE);
		return false;
	}
	x->in_used = (uint32_t)(buf_len(in) - x->up.rest_size);
	return true;
}

/* Whether all of it can be held, as far as that is known. */
static bool
fits(struct exchange *x)
{
	const struct spool *sp = x->e->tools.spool;
	uint64_t share = x->snap->head->settings.spool_size / SHARES;
	uint64_t need = x->up.left;

	x->up.store_max = share;
	if (x->req.body.kind != FRAMING_LENGTH || need <= FLOW_MEMORY)
		return true;
	return sp != NULL && need <= share && need <= spool_room(sp);
}

/* Nobody else will say it: the node is asked when the body is here.  Whoever
 * already sends does not wait for it. */
static bool
say_continue(struct exchange *x)
{
	struct engine *e = x->e;
	bool awaited = x->req.expect && x->up.bytes == 0;
	enum why why;

	x->req.expect = false;
	if (!awaited)
		return true;
	memcpy(e->scratch, HEAD_CONTINUE, sizeof(HEAD_CONTINUE) - 1);
	flow_init(&x->down, (struct body_framing){ FRAMING_NONE, 0 }, FLOW_RAW);
	flow_head(&x->down, e->scratch, sizeof(HEAD_CONTINUE) - 1,
	    sizeof(e->scratch));
	switch (flow_run(&x->down, &e->tools, NULL, &x->client->s, &why)) {
	case FLOW_FINISHED:
	case FLOW_WAITS_DST:
		return true;
	default:
		exchange_abandon(x, WHY_CLIENT_GONE);
		return false;
	}
}

/* What is behind the head has been taken: a slow client's buffer may be small
 * then. */
static void
trim_head(struct exchange *x)
{
	struct buf *in = x->client->in;

	in->end = in->start + x->req.head_len;
	x->in_used = x->req.head_len;
}

void
exchange_collect_run(struct exchange *x)
{
	uint64_t before = x->up.bytes;
	enum why why = WHY_NONE;
	enum flow_result r;

	if (flow_pending(&x->down) &&
	    flow_run(&x->down, &x->e->tools, NULL, &x->client->s, &why) ==
		FLOW_DST_ERROR) {
		exchange_abandon(x, WHY_CLIENT_GONE);
		return;
	}
	r = flow_collect(&x->up, &x->e->tools, &x->client->s, &why);
	if (x->up.bytes != before)
		x->progress_ms = x->e->now_ms;
	trim_head(x);
	switch (r) {
	case FLOW_WAITS_SRC:
	case FLOW_WAITS_LEAVE:
		break;
	case FLOW_WAITS_TURN:
		sock_again(&x->client->s);
		break;
	case FLOW_WAITS_DST:
		stream(x);
		break;
	case FLOW_FINISHED:
		collected(x);
		break;
	case FLOW_BAD:
		exchange_reply(x, why);
		break;
	case FLOW_TOO_LARGE:
		exchange_reply(x, WHY_BODY_TOO_LARGE);
		break;
	case FLOW_NO_MEMORY:
		exchange_reply(x, WHY_NO_MEMORY);
		break;
	default:
		exchange_abandon(x, WHY_CLIENT_GONE);
		break;
	}
}

/* All of it is here. */
static void
collected(struct exchange *x)
{
	x->body_held = x->up.keep = true;
	if (collects(x)) {
		x->req.expect = false;
		/* Its length is known by now, whatever the client said. */
		if (x->req.body.kind == FRAMING_CHUNKED)
			x->req.body = (struct body_framing){ FRAMING_LENGTH,
				x->up.bytes };
	}
	go_on(x);
}

/* No more of it can be held: the rest goes through. */
static void
stream(struct exchange *x)
{
	if (x->req.body.kind == FRAMING_CHUNKED &&
	    flow_open_chunk(&x->up, &x->e->tools, &x->first_chunk) == -1) {
		exchange_reply(x, WHY_NO_MEMORY);
		return;
	}
	go_on(x);
}

static void
go_on(struct exchange *x)
{
	x->up.store_max = 0; /* nothing is put away for a node */
	flow_hold(&x->up);
	exchange_dispatch(x);
}
