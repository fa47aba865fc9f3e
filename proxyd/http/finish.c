/*
 * finish.c: the end of an exchange: what it cost is counted, what it was is
 * logged, what it held is given back.
 */
#include <string.h>

#include "proxyd/http/access_log.h"
#include "proxyd/http/engine_parts.h"
#include "proxyd/http/exchange.h"
#include "proxyd/http/reply.h"

#define STATUS_CLIENT_GONE 499 /* in logs: it left before any answer */

static void count(struct exchange *);
static void count_account(struct exchange *, uint32_t row);
static void log_line(struct exchange *);
static void take_rest(struct exchange *);

void
exchange_finish(struct exchange *x, enum client_next next)
{
	struct client *c = x->client;
	uint32_t used;

	if (x->state == X_QUEUED)
		exchange_leave_queue(x);
	exchange_release(x, BALANCE_NEUTRAL, x->why, false);
	count(x);
	if (x->e->log != NULL &&
	    x->snap->head->settings.log_format != SNAP_LOG_OFF)
		log_line(x);
	if (next == CLIENT_KEEP)
		take_rest(x);
	used = x->in_used;
	exchange_free(x);
	client_next(c, next, used);
}

void
exchange_free(struct exchange *x)
{
	struct engine *e = x->e;
	struct snapshot *snap = x->snap;
	const struct snap_role *role = x->role;
	bool held = x->holds_site;

	exchange_move(x, X_DONE);
	if (held)
		sb_release(sb_account(e->sb, x->site->account)->active,
		    e->slot);
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

static void
count(struct exchange *x)
{
	struct sb_worker *row = x->e->row;

	sb_add(&row->bytes_in, x->up.bytes);
	sb_add(&row->bytes_out, x->down.bytes);
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
	sb_add(&a->bytes_out, x->down.bytes);
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
snap_text(const struct exchange *x, struct snap_text t)
{
	return (struct log_text){ snapshot_text(x->snap, t), t.len };
}

static void
log_line(struct exchange *x)
{
	struct engine *e = x->e;
	const char *base = x->client->in == NULL ? "" : exchange_base(x);
	struct access_log_entry entry = {
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
		.bytes_out = x->down.bytes,
		.total_us = e->now_us - x->start_us,
		.queue_us = x->queue_us,
		.connect_us = x->connect_us,
		.node_us = x->node_us,
		.attempts = x->attempts,
	};
	char *room;

	entry.wall_ms = engine_wall_ms(e) - entry.total_us / 1000;
	if (x->site != NULL)
		entry.site = snap_text(x, x->site->name);
	if (x->snap_node != NULL)
		entry.node = snap_text(x, x->snap_node->name);
	if ((room = log_ring_room(e->log, LOG_LINE_MAX)) == NULL) {
		engine_count(&e->row->log_dropped);
		return;
	}
	log_ring_put(e->log,
	    access_log_format(room, LOG_LINE_MAX,
		(enum snap_log_format)x->snap->head->settings.log_format,
		&entry));
}
