/* client.c: see client.h. */
#include "proxyd/http/client.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proxyd/http/engine_parts.h"
#include "proxyd/http/exchange.h"
#include "proxyd/http/handshake.h"
#include "proxyd/http/limit.h"
#include "proxyd/http/node_conn.h"
#include "proxyd/http/proxied.h"
#include "proxyd/http/tunnel.h"

#define LINGER_BYTES  (256U << 10)
#define TURN_REQUESTS 64   /* answered in a row before others have their turn */
#define DRAIN_IDLE_MS 3000 /* whoever just got an answer may ask again */

static void client_ready(int fd, short what, void *);
static void begin(struct client *);
static bool read_head(struct client *);
static void linger(struct client *);

void
client_new(struct engine *e, int fd, const struct addr *peer, bool secure)
{
	struct client *c;

	if (e->n_clients == e->room) {
		uint32_t room = e->room < 64 ? 64 : e->room * 2;
		struct client **more =
		    reallocarray(e->clients, room, sizeof(*more));

		if (more == NULL) {
			close(fd);
			return;
		}
		e->clients = more;
		e->room = room;
	}
	if ((c = spare_take(&e->spare_clients, sizeof(*c))) == NULL) {
		close(fd);
		return;
	}
	memset(c, 0, sizeof(*c));
	if (sock_open(&c->s, fd, &e->loop, client_ready, c) == -1) {
		spare_put(&e->spare_clients, c);
		return;
	}
	c->s.writable = true;
	c->e = e;
	c->peer = *peer;
	c->secure = c->speaks_tls = secure;
	c->index = e->n_clients;
	e->clients[e->n_clients++] = c;
	atomic_store_explicit(&e->row->clients, e->n_clients,
	    memory_order_relaxed);
	engine_count(&e->row->accepted);
	if (proxied_expected(e, peer)) {
		c->state = CLIENT_PROXIED;
		c->since_ms = e->now_ms;
	} else {
		begin(c);
	}
}

/* From here on its peer is known for good, and speaks for itself. */
static void
begin(struct client *c)
{
	c->state = CLIENT_READING;
	c->since_ms = c->e->now_ms;
	if (!limit_connection(c) || (c->speaks_tls && !handshake_begin(c)))
		client_close(c);
}

void
client_close(struct client *c)
{
	struct engine *e = c->e;

	if (c->state == CLIENT_DEAD)
		return;
	if (c->state == CLIENT_HANDSHAKE)
		handshake_forget(c);
	c->state = CLIENT_DEAD;
	limit_forget(c);
	buf_give(&e->bufs, &c->in);
	free(c->proxied);
	c->proxied = NULL;
	while (!LIST_EMPTY(&c->kept))
		node_conn_drop(LIST_FIRST(&c->kept));
	sock_close(&c->s);
	e->clients[c->index] = e->clients[--e->n_clients];
	e->clients[c->index]->index = c->index;
	atomic_store_explicit(&e->row->clients, e->n_clients,
	    memory_order_relaxed);
	c->next = e->dead_clients;
	e->dead_clients = c;
	engine_resume(e);
}

static void
client_ready(int fd, short what, void *arg)
{
	struct client *c = arg;
	struct engine *e = c->e;

	(void)fd;
	engine_enter(e);
	sock_event(&c->s, what);
	client_run(c);
	engine_leave(e);
}

void
client_run(struct client *c)
{
	for (int turn = 0;;) {
		switch (c->state) {
		case CLIENT_PROXIED:
			if (!proxied_read(c))
				return;
			begin(c);
			break;
		case CLIENT_HANDSHAKE:
			handshake_run(c);
			return;
		case CLIENT_READING:
			if (turn++ == TURN_REQUESTS) {
				sock_again(&c->s);
				return;
			}
			if (!read_head(c))
				return;
			break;
		case CLIENT_BUSY:
			exchange_run(c->x);
			if (c->state == CLIENT_BUSY)
				return;
			break;
		case CLIENT_TUNNEL:
			tunnel_run(c->tunnel);
			return;
		case CLIENT_LINGER:
			linger(c);
			return;
		default:
			return;
		}
	}
}

/* --- reading heads */

/* What is there is parsed as far as it goes.  True: the client is busy. */
static bool
parse_head(struct client *c)
{
	enum why why;

	if (c->x == NULL) {
		if ((c->x = exchange_new(c)) == NULL) {
			client_close(c);
			return false;
		}
		c->since_ms = c->e->now_ms;
	}
	switch (parse_request(&c->x->req, c->in->data + c->in->start,
	    buf_len(c->in),
	    &(struct head_limits){ c->x->snap->head->settings.target_size,
		c->x->snap->head->settings.fields_size,
		c->x->snap->head->settings.fields_max },
	    &why)) {
	case PARSE_MORE:
		return false;
	case PARSE_DONE:
		c->state = CLIENT_BUSY;
		exchange_start(c->x);
		return true;
	case PARSE_BAD:
		break;
	}
	c->state = CLIENT_BUSY;
	exchange_refuse(c->x, why);
	return true;
}

/* Room for at least one more byte; -1: there can be none. */
static int
make_room(struct client *c)
{
	struct buf_pool *bufs = &c->e->bufs;

	if (c->in == NULL)
		return (c->in = buf_take(bufs, BUF_MEDIUM)) == NULL ? -1 : 0;
	if (c->in->end < c->in->room)
		return 0;
	if (c->in->start > 0) {
		buf_pack(c->in);
		return 0;
	}
	if (c->in->kind == BUF_LARGE)
		return -1;
	return buf_resize(bufs, &c->in, (enum buf_size)(c->in->kind + 1));
}

/* Reads until a head is complete (true: the client is busy) or nothing more
 * comes. */
static bool
read_head(struct client *c)
{
	if (c->in != NULL && buf_len(c->in) > 0 && parse_head(c))
		return true;
	while (c->state == CLIENT_READING &&
	    (c->s.readable || (c->x != NULL && sock_look_again(&c->s)))) {
		ssize_t n;

		if (make_room(c) == -1) {
			client_close(c);
			return false;
		}
		n = sock_recv(&c->s, c->in->data + c->in->end,
		    c->in->room - c->in->end);
		if (n == SOCK_AGAIN)
			break;
		if (n <= 0) {
			if (c->x != NULL)
				exchange_abandon(c->x, WHY_CLIENT_GONE);
			else
				client_close(c);
			return false;
		}
		c->in->end += (uint32_t)n;
		if (parse_head(c))
			return true;
	}
	if (c->in != NULL && buf_len(c->in) == 0)
		buf_give(&c->e->bufs, &c->in);
	return false;
}

/* Ten thousand slow ones must not hold large buffers. */
void
client_shrink(struct client *c)
{
	enum buf_size kind = buf_size_for(buf_len(c->in));

	if (kind < (enum buf_size)c->in->kind)
		buf_resize(&c->e->bufs, &c->in, kind);
}

/* --- the end of an exchange */

void
client_part(struct client *c)
{
	buf_give(&c->e->bufs, &c->in);
	sock_shut(&c->s);
	c->state = CLIENT_LINGER;
	c->since_ms = c->e->now_ms;
}

void
client_next(struct client *c, enum client_next next, uint32_t used)
{
	bool more = c->s.readable || c->unread ||
	    (c->in != NULL && buf_len(c->in) > used);

	c->x = NULL;
	if (next == CLIENT_ABORT) {
		sock_abort(&c->s);
		client_close(c);
		return;
	}
	if (next == CLIENT_CLOSE) {
		/* Unread bytes, also those that come later, would turn our
		 * FIN into a reset, and that may destroy the response on its
		 * way. */
		if (more || !sock_last_word(&c->s)) {
			client_part(c);
			linger(c);
		} else {
			client_close(c);
		}
		return;
	}
	if (c->in != NULL) {
		c->in->start += used;
		if (c->in->start == c->in->end)
			buf_give(&c->e->bufs, &c->in);
	}
	c->state = CLIENT_READING;
	c->since_ms = c->e->now_ms;
}

void
client_tunnel(struct client *c, struct tunnel *t)
{
	c->x = NULL;
	c->tunnel = t;
	c->state = CLIENT_TUNNEL;
}

void
client_cut(struct client *c, enum why why)
{
	if (c->state == CLIENT_TUNNEL)
		tunnel_cut(c->tunnel, why);
	else if (c->x != NULL)
		exchange_abandon(c->x, why);
	else
		client_close(c);
}

static void
linger(struct client *c)
{
	while (c->s.readable && c->lingered < LINGER_BYTES) {
		ssize_t n =
		    sock_recv(&c->s, c->e->scratch, sizeof(c->e->scratch));

		if (n == SOCK_AGAIN)
			return;
		if (n == SOCK_ERROR)
			client_close(c);
		if (n <= 0)
			break;
		c->lingered += (uint32_t)n;
	}
	if ((c->s.closed && !c->s.shutting) || c->lingered >= LINGER_BYTES)
		client_close(c);
}

/* --- time */

void
client_sweep(struct client *c)
{
	const struct snap_settings *s = &c->e->snap->head->settings;
	int64_t age = c->e->now_ms - c->since_ms;

	switch (c->state) {
	case CLIENT_PROXIED:
		if (age >= s->header_ms)
			proxied_refuse(c);
		break;
	case CLIENT_HANDSHAKE:
		if (age >= s->header_ms)
			handshake_fail(c, TLS_FAILURE_TIMEOUT);
		break;
	case CLIENT_READING:
		if (c->x != NULL) {
			if (age >= s->header_ms) {
				c->state = CLIENT_BUSY;
				exchange_refuse(c->x, WHY_TOO_SLOW);
				client_run(c);
			} else {
				client_shrink(c);
			}
		} else if (age >=
			(c->n_requests == 0 ? s->header_ms : s->keepalive_ms) ||
		    (c->e->draining && c->n_requests > 0 &&
			age >= DRAIN_IDLE_MS)) {
			client_close(c);
		}
		break;
	case CLIENT_BUSY:
		exchange_sweep(c->x);
		client_run(c);
		break;
	case CLIENT_TUNNEL:
		tunnel_sweep(c->tunnel);
		break;
	case CLIENT_LINGER:
		if (age >= (c->s.shutting ? s->send_ms : s->linger_ms))
			client_close(c);
		break;
	default:
		break;
	}
}
