/*
 * finish.c: the end of an exchange: what it cost is counted, what it was is
 * logged, what it held is given back.
 */
#include <string.h>

#include "common/base/clock.h"
#include "proxyd/http/access_log.h"
#include "proxyd/http/compress.h"
#include "proxyd/http/engine_parts.h"
#include "proxyd/http/exchange.h"
#include "proxyd/http/reply.h"
#include "proxyd/static/serve.h"
#include "proxyd/tls/conn.h"

#define STATUS_CLIENT_GONE 499 /* in logs: it left before any answer */

static void count(struct exchange *);
static void count_account(struct exchange *, uint32_t row);
static void fill_entry(struct exchange *, struct access_log_entry *);
static void take_rest(struct exchange *);

static bool
logs(const struct exchange *x)
{
	return x->e->log != NULL &&
	    x->e->snap->head->settings.log_format != SNAP_LOG_OFF;
}

void
exchange_finish(struct exchange *x, enum client_next next)
{
	struct client *c = x->client;
	struct access_log_entry entry;
	uint32_t used;

	c->unread = !exchange_was_read(x);
	if (x->state == X_QUEUED)
		exchange_leave_queue(x);
	exchange_release(x, BALANCE_NEUTRAL, x->why, false);
	count(x);
	if (logs(x)) {
		fill_entry(x, &entry);
		engine_log(x->e, &entry);
	}
	if (next == CLIENT_KEEP)
		take_rest(x);
	used = x->in_used;
	exchange_free(x);
	client_next(c, next, used);
}

void
exchange_became_tunnel(struct exchange *x)
{
	exchange_release(x, BALANCE_OK, WHY_NONE, false);
	count(x);
	exchange_free(x);
}

struct access_log_entry *
exchange_log_entry(struct exchange *x)
{
	struct access_log_entry entry;

	if (!logs(x))
		return NULL;
	fill_entry(x, &entry);
	return access_log_keep(&entry);
}

void
exchange_free(struct exchange *x)
{
	struct engine *e = x->e;
	struct snapshot *snap = x->snap;
	const struct snap_role *role = x->role;

	exchange_move(x, X_DONE);
	exchange_release_site(x);
	if (x->delivering)
		atomic_store_explicit(&e->row->delivering, --e->n_delivering,
		    memory_order_relaxed);
	limit_end(e, &x->limited);
	static_release(x);
	atomic_store_explicit(&e->row->exchanges, --e->n_exchanges,
	    memory_order_relaxed);
	exchange_drop_coding(x);
	flow_fini(&x->up, &e->tools);
	flow_fini(&x->down, &e->tools);
	x->next = e->dead_exchanges; /* whoever called looks at its state */
	e->dead_exchanges = x;
	/* A place is free: on the node, or among the site's. */
	if (role != NULL && e->n_queued > 0)
		exchange_serve_queue(e, role);
	snapshot_release(snap);
}

/* What the client sent behind the body goes to its next request. */
static void
take_rest(struct exchange *x)
{
	struct client *c = x->client;
	struct buf *b = x->up.buf;

	if (b == NULL || x->up.rest_size == 0)
		return;
	b->start = (uint32_t)(x->up.rest - b->data);
	b->end = b->start + (uint32_t)x->up.rest_size;
	buf_give(&x->e->bufs, &c->in);
	c->in = b;
	x->up.buf = NULL;
	x->in_used = 0;
}

void
exchange_drop_coding(struct exchange *x)
{
	struct engine *e = x->e;
	struct sb_worker *row = e->row;

	if (x->compress == NULL)
		return;
	compress_free(&x->compress);
	sb_add(&row->compressed, 1);
	sb_add(&row->compress_in, x->down.bytes);
	sb_add(&row->compress_out, x->down.turned);
	atomic_store_explicit(&row->compress_held, e->compress.used,
	    memory_order_relaxed);
}

static void
count(struct exchange *x)
{
	struct sb_worker *row = x->e->row;

	sb_add(&row->bytes_in, x->up.bytes);
	sb_add(&row->bytes_out, flow_delivered(&x->down));
	if (x->why != WHY_NONE)
		engine_count(&row->why[x->why]);
	if (x->site == NULL)
		return;
	count_account(x, x->site->account);
	count_account(x, x->site->owner_account);
}

static void
count_account(struct exchange *x, uint32_t number)
{
	struct sb_account *a;

	if (number == SB_NONE)
		return;
	a = sb_account(x->e->sb, number);
	sb_add(&a->requests, 1);
	sb_add(&a->status[x->status / 100 < 6 ? x->status / 100 : 0], 1);
	if (x->up.bytes > 0)
		sb_add(&a->bytes_in, x->up.bytes);
	sb_add(&a->bytes_out, flow_delivered(&x->down));
	if (x->node_us > 0)
		sb_add(&a->node_us, (uint64_t)x->node_us);
}

/* --- the log */

static struct log_text
span_text(const char *base, struct span s)
{
	return (struct log_text){ base + s.off, s.len };
}

static struct log_text
field_text(const struct exchange *x, const char *base, enum field_id id)
{
	const struct field *f = fields_find(&x->req.fields, id, NULL);

	if (f == NULL)
		return (struct log_text){ NULL, 0 };
	return (struct log_text){ base + f->value, f->value_len };
}

static struct log_text
text_of(const char *s)
{
	return (struct log_text){ s, strlen(s) };
}

static struct log_text
snap_text(const struct exchange *x, struct snap_text t)
{
	return (struct log_text){ snapshot_text(x->snap, t), t.len };
}

static void
fill_entry(struct exchange *x, struct access_log_entry *out)
{
	struct engine *e = x->e;
	const char *base = x->client->in == NULL ? "" : exchange_base(x);

	*out = (struct access_log_entry){
		.client = { x->client_ip, strlen(x->client_ip) },
		.host = { x->req.host, x->req.host_len },
		.method = span_text(base, x->req.method_name),
		.target = span_text(base, x->req.target_text),
		.version = span_text(base, x->req.version),
		.referer = field_text(x, base, FIELD_REFERER),
		.agent = field_text(x, base, FIELD_USER_AGENT),
		.request_id = { x->request_id, x->id_len },
		.status = x->status > 0 ? x->status : STATUS_CLIENT_GONE,
		.why = x->why,
		.bytes_in = x->up.bytes,
		.bytes_out = flow_delivered(&x->down),
		.total_us = e->now_us - x->start_us,
		.queue_us = x->queue_us,
		.connect_us = x->connect_us,
		.node_us = x->node_us,
		.attempts = x->attempts,
	};
	out->wall_ms = clock_wall_ms() - out->total_us / 1000;
	if (x->site != NULL)
		out->site = snap_text(x, x->site->name);
	if (x->client->s.tls != NULL) {
		out->tls = text_of(tls_version(x->client->s.tls));
		out->cipher = text_of(tls_cipher(x->client->s.tls));
	}
	if (x->snap_node != NULL)
		out->node = snap_text(x, x->snap_node->name);
}
