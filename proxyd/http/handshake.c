/* handshake.c: see handshake.h. */
#include "proxyd/http/handshake.h"

#include <sys/queue.h>
#include <stdlib.h>

#include "common/base/log.h"
#include "proxyd/http/client.h"
#include "proxyd/http/engine_parts.h"
#include "proxyd/http/reply.h"
#include "proxyd/tls/conn.h"

#define TURN_US	  1000 /* of handshakes, before others have their turn */
#define UNDER_WAY 2048 /* at most; up to 64 KiB each */
/* Failures are logged one by one up to here, then counted only. */
#define LOG_LINES 20
#define LOG_MS	  10000 /* so many lines in so much time */

TAILQ_HEAD(handshake_list, handshake);

enum handshake_state {
	HANDSHAKE_SILENT,  /* nothing came; it costs nothing */
	HANDSHAKE_TURN,	   /* in `turns` */
	HANDSHAKE_WAITING, /* in `waiting` */
};

struct handshake {
	struct client *client;
	enum handshake_state state;
	TAILQ_ENTRY(handshake) link;
};

struct handshakes {
	struct engine *e;
	struct tls_server *server;
	struct handshake_list turns;   /* who goes on, the next one first */
	struct handshake_list waiting; /* for their peer, the longest first */
	unsigned n;		       /* in either */
	struct event *turn;
	int64_t log_ms; /* when the first of n_logged was written */
	unsigned n_logged, n_unlogged;
};

static void count(struct handshakes *, int more);
static void leave_list(struct handshakes *, struct handshake *);
static void on_turn(int fd, short what, void *);
static void step(struct handshake *);
static void succeed(struct handshake *);
static void log_failure(struct client *, enum tls_failure);
static void say_http(struct client *);

struct handshakes *
handshakes_new(struct engine *e, struct tls_server *server, struct err *err)
{
	struct handshakes *hs = calloc(1, sizeof(*hs));

	if (hs == NULL ||
	    (hs->turn = event_new(e->base, -1, 0, on_turn, hs)) == NULL) {
		free(hs);
		err_set(err, ERR_LOCAL, "out of memory for handshakes");
		return NULL;
	}
	hs->e = e;
	hs->server = server;
	TAILQ_INIT(&hs->turns);
	TAILQ_INIT(&hs->waiting);
	return hs;
}

void
handshakes_free(struct handshakes *hs)
{
	if (hs == NULL)
		return;
	event_free(hs->turn);
	free(hs);
}

bool
handshake_begin(struct client *c)
{
	struct handshakes *hs = c->e->handshakes;
	struct handshake *h = calloc(1, sizeof(*h));
	struct tls_conn *t = tls_conn_new(hs->server, &c->s);

	if (h == NULL || t == NULL) {
		free(h);
		tls_conn_free(t);
		return false;
	}
	sock_secure(&c->s, t);
	h->client = c;
	c->handshake = h;
	c->state = CLIENT_HANDSHAKE;
	return true;
}

void
handshake_run(struct client *c)
{
	static const struct timeval at_once = { 0 };
	struct handshakes *hs = c->e->handshakes;
	struct handshake *h = c->handshake;

	if (h->state == HANDSHAKE_TURN)
		return;
	leave_list(hs, h);
	h->state = HANDSHAKE_TURN;
	TAILQ_INSERT_TAIL(&hs->turns, h, link);
	count(hs, 1);
	if (!event_pending(hs->turn, EV_TIMEOUT, NULL))
		event_add(hs->turn, &at_once);
}

static void
count(struct handshakes *hs, int more)
{
	hs->n += (unsigned)more;
	atomic_store_explicit(&hs->e->row->tls_handshaking, hs->n,
	    memory_order_relaxed);
}

static void
leave_list(struct handshakes *hs, struct handshake *h)
{
	if (h->state == HANDSHAKE_SILENT)
		return;
	TAILQ_REMOVE(h->state == HANDSHAKE_TURN ? &hs->turns : &hs->waiting, h,
	    link);
	count(hs, -1);
}

void
handshake_forget(struct client *c)
{
	struct handshakes *hs = c->e->handshakes;
	struct handshake *h = c->handshake;

	leave_list(hs, h);
	free(h);
	c->handshake = NULL;
}

void
handshake_fail(struct client *c, enum tls_failure why)
{
	engine_count(&c->e->row->tls_failed[why]);
	log_failure(c, why);
	handshake_forget(c);
	c->state = CLIENT_READING;
	if (why == TLS_FAILURE_GONE) {
		client_close(c);
		return;
	}
	sock_unsecure(&c->s);
	if (why == TLS_FAILURE_PLAIN_HTTP)
		say_http(c);
	/* What it still sends must not destroy what it was told. */
	client_part(c);
}

/* --- turns */

/* A timer of no time, so that the loop looks at everybody else first. */
static void
on_turn(int fd, short what, void *arg)
{
	static const struct timeval at_once = { 0 };
	struct handshakes *hs = arg;
	struct engine *e = hs->e;
	struct handshake *h;
	int64_t start_us;

	(void)fd;
	(void)what;
	engine_enter(e);
	start_us = e->now_us;
	while ((h = TAILQ_FIRST(&hs->turns)) != NULL &&
	    e->now_us - start_us < TURN_US) {
		step(h);
		engine_enter(e);
	}
	if (h != NULL)
		event_add(hs->turn, &at_once);
	engine_leave(e);
}

static void
step(struct handshake *h)
{
	struct client *c = h->client;
	struct handshakes *hs = c->e->handshakes;
	enum tls_failure why;

	leave_list(hs, h);
	h->state = HANDSHAKE_WAITING;
	TAILQ_INSERT_TAIL(&hs->waiting, h, link);
	count(hs, 1);
	switch (tls_handshake(c->s.tls, &why)) {
	case TLS_DONE:
		succeed(h);
		break;
	case TLS_WAITS:
		if (hs->n > UNDER_WAY)
			handshake_fail(TAILQ_FIRST(&hs->waiting)->client,
			    TLS_FAILURE_CROWDED);
		break;
	case TLS_FAILED:
		handshake_fail(c, why);
		break;
	}
}

static void
succeed(struct handshake *h)
{
	struct client *c = h->client;
	struct sb_worker *row = c->e->row;

	engine_count(&row->tls_handshakes);
	if (tls_resumed(c->s.tls))
		engine_count(&row->tls_resumed);
	handshake_forget(c);
	c->state = CLIENT_READING;
	c->since_ms = c->e->now_ms;
	client_run(c);
}

/* --- failures */

/* Scanners try all day long: some lines tell what is going on. */
static void
log_failure(struct client *c, enum tls_failure why)
{
	struct handshakes *hs = c->e->handshakes;
	char peer[ADDR_TEXT_MAX];

	if (c->e->now_ms - hs->log_ms >= LOG_MS) {
		if (hs->n_unlogged > 0)
			log_info("tls: %u more handshakes failed",
			    hs->n_unlogged);
		hs->log_ms = c->e->now_ms;
		hs->n_logged = hs->n_unlogged = 0;
	}
	if (hs->n_logged == LOG_LINES) {
		hs->n_unlogged++;
		return;
	}
	hs->n_logged++;
	addr_format(&c->peer, peer);
	log_info("tls: %s: %s", peer, tls_failure_text(why));
}

static void
say_http(struct client *c)
{
	struct engine *e = c->e;
	const struct reply r = {
		.status = 400,
		.page = "<!DOCTYPE html>\n<html><head><title>HTTPS</title>"
			"</head>\n<body><p>This port speaks HTTPS: please "
			"use https://.</p></body></html>\n",
		.extra = "",
		.date = engine_date(e),
	};
	struct iovec iov = { e->scratch,
		reply_write(e->scratch, sizeof(e->scratch), &r) };

	sock_send(&c->s, &iov, 1, false);
}
