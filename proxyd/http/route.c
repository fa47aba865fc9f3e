/*
 * route.c: which site a request is for, and the answers that need no node.
 */
#include <stdio.h>
#include <string.h>

#include "proxyd/http/engine_parts.h"
#include "proxyd/http/exchange.h"
#include "proxyd/http/proxied.h"
#include "proxyd/http/reply.h"
#include "proxyd/http/writer.h"
#include "proxyd/static/serve.h"

#define HTTPS_PORT 443
#define EXTRA_MAX  (17U << 10) /* our own lines; a whole target is in one */
#define RETRY_S	   5	       /* when to come back after a 503 */
#define HOPS_MAX   3	       /* our own name in Via: then it goes round */

static enum why find_site(struct exchange *);
static enum why check_site(struct exchange *);
static enum why check_scheme(const struct exchange *);
static enum why max_forwards(const struct exchange *);
static void find_client(struct exchange *);
static bool take_id(struct exchange *);
static void make_id(struct exchange *);

void
exchange_route(struct exchange *x)
{
	enum why why;

	find_client(x);
	if ((why = find_site(x)) != WHY_NONE ||
	    (why = check_scheme(x)) != WHY_NONE ||
	    (why = max_forwards(x)) != WHY_NONE ||
	    (why = check_site(x)) != WHY_NONE ||
	    (why = limit_request(x)) != WHY_NONE) {
		exchange_reply(x, why);
		return;
	}
	if ((x->site->flags & SNAP_SITE_STATIC) != 0 && static_take(x))
		return;
	exchange_to_node(x);
}

void
exchange_to_node(struct exchange *x)
{
	x->role_index = x->site->role;
	x->role = snapshot_role(x->snap, x->role_index);
	exchange_take_body(x);
}

static enum why
find_site(struct exchange *x)
{
	const char *via = snapshot_text(x->snap, x->snap->head->settings.via);

	if (x->req.host_len > 0)
		x->site = snapshot_find(x->snap, x->req.host, x->req.host_len);
	if (x->site == NULL)
		x->site = snapshot_default_site(x->snap);
	if (x->site == NULL)
		return x->req.host_len == 0 ? WHY_BAD_HOST : WHY_NO_SITE;
	if (fields_have(&x->req.fields, FIELD_VIA) &&
	    forward_hops(&x->req, exchange_base(x), via) >= HOPS_MAX)
		return WHY_LOOP;
	return WHY_NONE;
}

static enum why
check_site(struct exchange *x)
{
	if (x->site->flags & SNAP_SITE_DISABLED)
		return WHY_SITE_DISABLED;
	if (x->site->max_body > 0 && x->req.body.kind == FRAMING_LENGTH &&
	    x->req.body.length > x->site->max_body)
		return WHY_BODY_TOO_LARGE;
	return x->site->role == SNAP_NONE ? WHY_NO_NODE : WHY_NONE;
}

/* An authority that checks the host by HTTP must find it there. */
static bool
is_acme(const struct exchange *x)
{
	static const char prefix[] = "/.well-known/acme-challenge/";
	const struct span *path = &x->req.target.path;

	return path->len >= sizeof(prefix) - 1 &&
	    memcmp(exchange_base(x) + path->off, prefix, sizeof(prefix) - 1) ==
	    0;
}

static enum why
check_scheme(const struct exchange *x)
{
	if ((x->site->flags & SNAP_SITE_HTTPS) == 0 || x->secure ||
	    x->req.host_len == 0 || x->req.target.star || is_acme(x))
		return WHY_NONE;
	return WHY_HTTPS_ONLY;
}

const char *
exchange_hsts(const struct exchange *x)
{
	return x->secure && x->site != NULL ?
	    snapshot_text(x->snap, x->site->hsts) :
	    "";
}

/* OPTIONS may say how far it wants to go (RFC 9110, section 7.6.2). */
static enum why
max_forwards(const struct exchange *x)
{
	const struct fields *fs = &x->req.fields;
	const char *base = exchange_base(x);
	const struct field *f = fields_find(fs, FIELD_MAX_FORWARDS, NULL);
	bool zero = true;

	if (f == NULL || x->req.method != METHOD_OPTIONS)
		return WHY_NONE;
	if (f->value_len == 0 || f->value_len > 9 ||
	    fields_find(fs, FIELD_MAX_FORWARDS, f) != NULL)
		return WHY_BAD_FIELD;
	for (uint32_t i = 0; i < f->value_len; i++) {
		char c = base[f->value + i];

		if (c < '0' || c > '9')
			return WHY_BAD_FIELD;
		zero = zero && c == '0';
	}
	return zero ? WHY_LOCAL_ANSWER : WHY_NONE;
}

/* Who it is for, and under which name it goes on. */
static bool
was_secure(const struct exchange *x)
{
	const struct field *f =
	    fields_find(&x->req.fields, FIELD_X_FORWARDED_PROTO, NULL);

	return f != NULL &&
	    field_is(exchange_base(x) + f->value, f->value_len, "https");
}

static void
find_client(struct exchange *x)
{
	const struct fields *fs = &x->req.fields;

	x->trusted = snapshot_trusts(x->snap, &x->client->peer);
	if (x->trusted) {
		x->client_ip =
		    forward_client_ip(&x->req, exchange_base(x), x->snap,
			x->client->ip, true, x->ip_text, sizeof(x->ip_text));
		x->tell_why = fields_have(fs, FIELD_X_MUSTER_WHY);
	}
	x->secure = x->client->secure || (x->trusted && was_secure(x));
	if (!take_id(x))
		make_id(x);
}

/* Eight hexadecimal digits: each byte gets four bits, and those above nine
 * the way from behind '9' to 'a'. */
static uint64_t
eight_digits(uint32_t bits)
{
	uint64_t d = bits, above_9;

	d = (d | d << 16) & 0x0000ffff0000ffff;
	d = (d | d << 8) & 0x00ff00ff00ff00ff;
	d = (d | d << 4) & 0x0f0f0f0f0f0f0f0f;
	above_9 = (d + 0x0606060606060606) >> 4 & 0x0101010101010101;
	return d + 0x3030303030303030 + above_9 * ('a' - '0' - 10);
}

static void
make_id(struct exchange *x)
{
	for (unsigned i = 0; i < REQUEST_ID_LEN; i += 16) {
		uint64_t r = engine_random(x->e);
		uint64_t digits[2] = { eight_digits((uint32_t)r),
			eight_digits((uint32_t)(r >> 32)) };

		memcpy(x->request_id + i, digits, sizeof(digits));
	}
	x->id_len = REQUEST_ID_LEN;
}

static bool
set_id(struct exchange *x, const char *text, size_t len)
{
	if (len > REQUEST_ID_MAX || !field_is_token(text, len))
		return false;
	memcpy(x->request_id, text, len);
	x->id_len = (uint32_t)len;
	return true;
}

/* One that a trusted peer gave it; or a balancer to the connection, whose
 * first request it is. */
static bool
take_id(struct exchange *x)
{
	const struct proxied *p = x->client->proxied;
	const struct field *f = NULL;

	if (x->trusted)
		f = fields_find(&x->req.fields, FIELD_X_REQUEST_ID, NULL);
	if (f != NULL)
		return set_id(x, exchange_base(x) + f->value, f->value_len);
	return p != NULL && x->client->n_requests == 1 &&
	    set_id(x, p->text, p->id_len);
}

/* --- our own answers */

bool
exchange_was_read(const struct exchange *x)
{
	return x->req.head_len > 0 &&
	    (x->body_held || x->req.body.kind == FRAMING_NONE ||
		(x->req.body.kind == FRAMING_LENGTH &&
		    x->req.body.length == 0) ||
		(x->up.state == FLOW_DONE && !x->broken_up));
}

/* Whether the next request can follow: all of this one must have been read,
 * and it must have been right. */
static bool
can_go_on(const struct exchange *x, int status)
{
	/* Behind a refused upgrade may come what is no HTTP. */
	return exchange_was_read(x) && x->req.keep_alive && !x->e->draining &&
	    x->req.upgrade == UPGRADE_NONE &&
	    (status < 400 || status == 421 || status == 429 || status >= 502) &&
	    (x->req.minor >= 1 || x->snap->head->settings.keepalive_http10);
}

static const char *
page_of(const struct exchange *x, enum why why, int status)
{
	struct snap_text t = { 0, 0 };

	if (x->site == NULL)
		return NULL;
	if (why == WHY_SITE_DISABLED)
		t = x->site->disabled_page;
	else if (status >= 502 && status <= 504)
		t = x->site->error_page;
	return t.len == 0 ? NULL : snapshot_text(x->snap, t);
}

static int
status_of(const struct exchange *x, enum why why)
{
	bool plain =
	    x->req.method == METHOD_GET || x->req.method == METHOD_HEAD;

	/* 308 is not known everywhere, but 301 turns a POST into a GET. */
	return why == WHY_HTTPS_ONLY && plain ? 301 : why_status(why);
}

static void
put_location(struct writer *w, const struct exchange *x)
{
	uint32_t port = x->snap->head->settings.https_port;

	PUT(w, "Location: https://");
	put(w, x->req.host, x->req.host_len);
	if (port != 0 && port != HTTPS_PORT) {
		PUT(w, ":");
		put_number(w, port);
	}
	if (x->req.target.slash)
		PUT(w, "/");
	put(w, exchange_base(x) + x->req.target.path.off,
	    x->req.target.path.len);
	PUT(w, "\r\n");
}

/* Our own lines. */
static void
extra_fields(const struct exchange *x, enum why why, char out[EXTRA_MAX])
{
	struct writer w;

	writer_init(&w, out, EXTRA_MAX - 1);
	put_text(&w, exchange_hsts(x));
	if (why == WHY_HTTPS_ONLY)
		put_location(&w, x);
	if (x->tell_why) {
		PUT(&w, "X-Muster-Why: ");
		put_text(&w, why_word(why));
		PUT(&w, "\r\n");
	}
	out[writer_size(&w)] = '\0';
}

void
exchange_reply(struct exchange *x, enum why why)
{
	struct engine *e = x->e;
	char extra[EXTRA_MAX];
	struct reply r = { .status = status_of(x, why), .extra = extra };
	size_t size;

	/* Behind half an interim response no answer would be understood. */
	if (flow_pending(&x->down)) {
		exchange_abandon(x, why);
		return;
	}
	if (x->state == X_QUEUED)
		exchange_leave_queue(x);
	r.page = page_of(x, why, r.status);
	r.date = engine_date(e);
	r.retry_after_s = x->retry_s;
	if (r.status == 503 && why != WHY_SITE_DISABLED)
		r.retry_after_s = RETRY_S;
	r.head = x->req.method == METHOD_HEAD;
	r.keep_alive = x->keep_alive = can_go_on(x, r.status);
	r.keep_alive_10 = x->req.minor == 0;
	extra_fields(x, why, extra);
	exchange_release(x, BALANCE_NEUTRAL, why, false);
	x->why = why;
	x->status = (uint16_t)r.status;
	if ((size = reply_write(e->scratch, sizeof(e->scratch), &r)) == 0) {
		exchange_abandon(x, WHY_NO_MEMORY); /* a page too large */
		return;
	}
	flow_fini(&x->down, &e->tools);
	flow_init(&x->down, (struct body_framing){ FRAMING_NONE, 0 }, FLOW_RAW);
	flow_head(&x->down, e->scratch, size, sizeof(e->scratch));
	exchange_move(x, X_REPLY);
	exchange_reply_run(x);
}

void
exchange_reply_run(struct exchange *x)
{
	enum why why;

	switch (flow_run(&x->down, &x->e->tools, &x->client->s, &x->client->s,
	    &why)) {
	case FLOW_WAITS_DST:
	case FLOW_WAITS_LEAVE:
		return;
	case FLOW_FINISHED:
		exchange_finish(x, x->keep_alive ? CLIENT_KEEP : CLIENT_CLOSE);
		return;
	default:
		exchange_abandon(x, WHY_CLIENT_GONE);
	}
}
