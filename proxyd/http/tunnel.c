/* tunnel.c: see tunnel.h. */
#include "proxyd/http/tunnel.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "proxyd/http/access_log.h"
#include "proxyd/http/client.h"
#include "proxyd/http/engine_parts.h"
#include "proxyd/http/exchange.h"
#include "proxyd/http/limit.h"
#include "proxyd/http/node_conn.h"

#define TURN_MAX (1U << 20) /* bytes one way before others have their turn */

enum half_state {
	HALF_OPEN,
	HALF_ENDED, /* the source said its last; it is on its way */
	HALF_DONE,
};

/* One direction.  Nothing is read before all that was read is written, so
 * whoever reads slowly slows the other side. */
struct half {
	struct buf *held; /* to be written; NULL: nothing */
	uint64_t bytes, counted;
	uint8_t state;
};

struct tunnel {
	struct client *client;
	struct node_conn *node;
	struct half up, down; /* to the node, to the client */
	int64_t start_us;     /* of the request */
	int64_t moved_ms;     /* when the last byte moved */
	/* Rows in the scoreboard; SB_NONE: none. */
	uint32_t target, site, owner;
	int64_t owner_id;
	struct limited limited;
	struct access_log_entry *entry; /* what is to be logged; or NULL */
};

enum half_result {
	HALF_WAITS,
	HALF_SRC_BROKEN,
	HALF_DST_BROKEN,
	HALF_NO_MEMORY,
};

static enum half_result half_run(struct engine *, struct half *,
    const struct half *other, struct sock *src, struct sock *dst,
    uint64_t *may_read);
static void hold_places(struct tunnel *, const struct exchange *);
static void count(struct tunnel *);
static void end(struct tunnel *, enum why, bool whole);

/* --- from an exchange to a tunnel */

/* The 101 and the node's first bytes behind it. */
static struct buf *
first_down(struct exchange *x, const char *head, size_t size)
{
	struct buf *in = x->node->in;
	size_t rest = buf_len(in) - x->res.head_len;
	enum buf_size kind = buf_size_for(size + rest);
	struct buf *b = kind == BUF_SIZES ? NULL : buf_take(&x->e->bufs, kind);

	if (b == NULL)
		return NULL;
	memcpy(b->data, head, size);
	memcpy(b->data + size, in->data + in->start + x->res.head_len, rest);
	b->end = (uint32_t)(size + rest);
	return b;
}

int
tunnel_open(struct exchange *x, const char *head, size_t size)
{
	struct client *c = x->client;
	struct engine *e = x->e;
	struct tunnel *t = calloc(1, sizeof(*t));

	if (t == NULL || (t->down.held = first_down(x, head, size)) == NULL) {
		free(t);
		return -1;
	}
	t->down.bytes = buf_len(x->node->in) - x->res.head_len;
	t->up.bytes = buf_len(c->in) - x->in_used;
	t->start_us = x->start_us;
	t->moved_ms = e->now_ms;
	t->client = c;
	t->node = x->node;
	x->status = 101;
	t->entry = exchange_log_entry(x);
	t->limited = x->limited;
	x->limited = (struct limited){ 0 };
	hold_places(t, x);
	x->node = NULL;
	buf_give(&e->bufs, &t->node->in);
	c->in->start += x->in_used;
	t->up.held = c->in;
	c->in = NULL;
	atomic_store_explicit(&e->row->tunnels, ++e->n_tunnels,
	    memory_order_relaxed);
	exchange_became_tunnel(x);
	client_tunnel(c, t);
	return 0;
}

static void
count_opened(const struct engine *e, uint32_t row)
{
	if (row != SB_NONE)
		sb_add(&sb_account(e->sb, row)->tunnels, 1);
}

/* Places of its own: those of the exchange end with it. */
static void
hold_places(struct tunnel *t, const struct exchange *x)
{
	const struct engine *e = x->e;

	t->target = x->snap_node->target;
	t->site = x->site->account;
	t->owner = x->site->owner_account;
	sb_hold(sb_target(e->sb, t->target)->active, e->slot);
	if (t->site != SB_NONE)
		sb_hold(sb_account(e->sb, t->site)->active, e->slot);
	if (t->owner != SB_NONE)
		t->owner_id = atomic_load(&sb_account(e->sb, t->owner)->id);
	count_opened(e, t->site);
	count_opened(e, t->owner);
}

/* --- moving bytes */

/* Grows with every byte read or written. */
static uint64_t
progress(const struct half *h)
{
	return 2 * h->bytes - (h->held == NULL ? 0 : buf_len(h->held));
}

static enum why
why_broken(enum half_result down, enum half_result up)
{
	if (down == HALF_NO_MEMORY || up == HALF_NO_MEMORY)
		return WHY_NO_MEMORY;
	if (down == HALF_SRC_BROKEN || up == HALF_DST_BROKEN)
		return WHY_NODE_CUT;
	if (down == HALF_DST_BROKEN || up == HALF_SRC_BROKEN)
		return WHY_CLIENT_GONE;
	return WHY_NONE;
}

void
tunnel_run(struct tunnel *t)
{
	struct engine *e = t->client->e;
	struct sock *client = &t->client->s, *node = &t->node->s;
	uint64_t before = progress(&t->up) + progress(&t->down);
	uint64_t may_send, any = UINT64_MAX;
	enum half_result down, up;
	struct leave leave;
	enum why why;

	limit_ask(t->client, &t->limited, t->site, &leave);
	may_send = leave.bytes;
	down = half_run(e, &t->down, &t->up, node, client, &may_send);
	limit_back(t->client, &t->limited, &leave, may_send);
	up = half_run(e, &t->up, &t->down, client, node, &any);
	why = why_broken(down, up);
	if (may_send == 0 && node->readable)
		limit_wait(t->client, &t->limited, &leave);
	if (progress(&t->up) + progress(&t->down) != before)
		t->moved_ms = e->now_ms;
	/* Who has said its last and closed resets what still comes: no reason
	 * to reset the other side, which may not have read all yet. */
	if (t->up.state == HALF_DONE || t->down.state == HALF_DONE) {
		if (why != WHY_NONE || t->up.state == t->down.state)
			end(t, WHY_NONE, true);
	} else if (why != WHY_NONE) {
		end(t, why, false);
	}
}

/* Writes what is held: 1 when all of it is out, 0 when the destination takes
 * no more, -1 when it is broken. */
static int
half_flush(struct half *h, struct sock *dst)
{
	while (h->held != NULL && buf_len(h->held) > 0) {
		struct iovec iov = { h->held->data + h->held->start,
			buf_len(h->held) };
		ssize_t sent;

		if (!dst->writable)
			return 0;
		if ((sent = sock_send(dst, &iov, 1, false)) < 0)
			return -1;
		h->held->start += (uint32_t)sent;
	}
	return 1;
}

/* Reads into the buffer that is held, empty. */
static enum half_result
half_fill(struct engine *e, struct half *h, struct sock *src,
    uint64_t *may_read)
{
	ssize_t n;

	if (h->held == NULL &&
	    (h->held = buf_take(&e->bufs, BUF_MEDIUM)) == NULL)
		return HALF_NO_MEMORY;
	n = sock_recv(src, h->held->data,
	    h->held->room < *may_read ? h->held->room : (size_t)*may_read);
	if (n == SOCK_ERROR)
		return HALF_SRC_BROKEN;
	if (n == SOCK_EOF)
		h->state = HALF_ENDED;
	h->held->start = 0;
	h->held->end = n > 0 ? (uint32_t)n : 0;
	h->bytes += h->held->end;
	if (*may_read != UINT64_MAX)
		*may_read -= h->held->end;
	return HALF_WAITS;
}

/* may_read: bytes, for now; UINT64_MAX: any.  What was read is taken off. */
static enum half_result
half_run(struct engine *e, struct half *h, const struct half *other,
    struct sock *src, struct sock *dst, uint64_t *may_read)
{
	uint64_t start = h->bytes;

	while (h->state != HALF_DONE) {
		int out = half_flush(h, dst);

		if (out != 1)
			return out == 0 ? HALF_WAITS : HALF_DST_BROKEN;
		if (h->state == HALF_ENDED) {
			/* The other direction may go on; else both are closed
			 * at once. */
			if (other->state != HALF_DONE)
				sock_shut(dst);
			h->state = HALF_DONE;
		} else if (!src->readable || *may_read == 0) {
			break;
		} else if (h->bytes - start > TURN_MAX) {
			sock_again(src);
			break;
		} else {
			enum half_result r = half_fill(e, h, src, may_read);

			if (r != HALF_WAITS)
				return r;
		}
	}
	buf_give(&e->bufs, &h->held);
	return HALF_WAITS;
}

/* --- time, and the end */

void
tunnel_sweep(struct tunnel *t)
{
	struct engine *e = t->client->e;
	const struct snap_settings *s = &e->snap->head->settings;
	bool half = t->up.state != HALF_OPEN || t->down.state != HALF_OPEN;
	bool client, node;

	count(t);
	if (e->now_ms - t->moved_ms >= (half ? s->send_ms : s->tunnel_ms)) {
		end(t, half ? WHY_NONE : WHY_TUNNEL_IDLE, half);
		return;
	}
	/* A reset hides behind data at times.  Looking for it now costs less
	 * than a read after each message. */
	client = sock_look_again(&t->client->s);
	node = sock_look_again(&t->node->s);
	if (client || node)
		tunnel_run(t);
}

void
tunnel_cut(struct tunnel *t, enum why why)
{
	end(t, why, false);
}

static void
count_account(const struct engine *e, uint32_t row, uint64_t in, uint64_t out)
{
	if (row == SB_NONE)
		return;
	sb_add(&sb_account(e->sb, row)->bytes_in, in);
	sb_add(&sb_account(e->sb, row)->bytes_out, out);
}

/* What was moved since the last time: a tunnel may live for days. */
static void
count(struct tunnel *t)
{
	const struct engine *e = t->client->e;
	uint64_t in = t->up.bytes - t->up.counted;
	uint64_t out = t->down.bytes - t->down.counted;

	if (in + out == 0)
		return;
	t->up.counted = t->up.bytes;
	t->down.counted = t->down.bytes;
	sb_add(&e->row->bytes_in, in);
	sb_add(&e->row->bytes_out, out);
	sb_add(&sb_target(e->sb, t->target)->bytes_out, in);
	sb_add(&sb_target(e->sb, t->target)->bytes_in, out);
	count_account(e, t->site, in, out);
	/* Nothing holds an owner's row: it may be another's by now. */
	if (t->owner != SB_NONE &&
	    atomic_load(&sb_account(e->sb, t->owner)->id) == t->owner_id)
		count_account(e, t->owner, in, out);
}

static void
log_end(struct tunnel *t, enum why why)
{
	struct engine *e = t->client->e;
	struct access_log_entry *entry = t->entry;

	if (entry == NULL)
		return;
	entry->why = why;
	entry->bytes_in = t->up.bytes;
	entry->bytes_out = t->down.bytes;
	entry->total_us = e->now_us - t->start_us;
	engine_log(e, entry);
	free(entry);
}

/* `whole`: the client gets all that is on its way, else a reset. */
static void
end(struct tunnel *t, enum why why, bool whole)
{
	struct client *c = t->client;
	struct engine *e = c->e;

	count(t);
	if (why != WHY_NONE)
		engine_count(&e->row->why[why]);
	log_end(t, why);
	/* Whoever waits for these places is served at the next tick. */
	sb_release(sb_target(e->sb, t->target)->active, e->slot);
	if (t->site != SB_NONE)
		sb_release(sb_account(e->sb, t->site)->active, e->slot);
	limit_end(e, &t->limited);
	buf_give(&e->bufs, &t->up.held);
	buf_give(&e->bufs, &t->down.held);
	if (!whole)
		sock_abort(&t->node->s);
	node_conn_drop(t->node);
	free(t);
	atomic_store_explicit(&e->row->tunnels, --e->n_tunnels,
	    memory_order_relaxed);
	client_next(c, whole ? CLIENT_CLOSE : CLIENT_ABORT, 0);
}
