/*
 * wsecho.c: a WebSocket server that sends back every message.
 *
 * usage: wsecho ADDRESS:PORT
 *
 * Fragments go back as they came, pings are answered, a close is returned
 * and ends the connection.  Whoever does not read is not read from.  Any
 * path upgrades; a request that is no handshake gets a 400.
 */
#include <sys/socket.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/listener.h>

#include "common/base/addr.h"
#include "common/base/err.h"
#include "tests/bench/ws.h"

#define HEAD_MAX  (16U << 10)
#define FRAME_MAX (16U << 20)
#define OUT_MAX	  (256U << 10) /* beyond it nothing more is read */

static const char refusal[] = "HTTP/1.1 400 Bad Request\r\n"
			      "Content-Length: 0\r\nConnection: close\r\n\r\n";

struct peer {
	struct bufferevent *bev;
	bool open;   /* the handshake is over */
	bool ending; /* freed when all is written */
};

static void accepted(struct evconnlistener *, evutil_socket_t,
    struct sockaddr *, int, void *);
static void readable(struct bufferevent *, void *);
static void written(struct bufferevent *, void *);
static void ended(struct bufferevent *, short, void *);

int
main(int argc, char **argv)
{
	struct event_base *base = event_base_new();
	struct addr a;
	struct err e;

	if (argc != 2 || addr_parse(argv[1], 0, &a, &e) == -1) {
		fputs("usage: wsecho ADDRESS:PORT\n", stderr);
		return 2;
	}
	signal(SIGPIPE, SIG_IGN);
	if (evconnlistener_new_bind(base, accepted, base,
		LEV_OPT_REUSEABLE | LEV_OPT_CLOSE_ON_EXEC, 4096, &a.u.sa,
		(int)a.len) == NULL) {
		perror(argv[1]);
		return 1;
	}
	return event_base_dispatch(base) == 0 ? 0 : 1; /* until a signal */
}

static void
accepted(struct evconnlistener *l, evutil_socket_t fd, struct sockaddr *sa,
    int len, void *arg)
{
	struct peer *p = calloc(1, sizeof(*p));

	(void)l;
	(void)sa;
	(void)len;
	if (p == NULL ||
	    (p->bev = bufferevent_socket_new(arg, fd, BEV_OPT_CLOSE_ON_FREE)) ==
		NULL) {
		evutil_closesocket(fd);
		free(p);
		return;
	}
	bufferevent_setcb(p->bev, readable, written, ended, p);
	bufferevent_enable(p->bev, EV_READ | EV_WRITE);
}

static void
peer_free(struct peer *p)
{
	bufferevent_free(p->bev);
	free(p);
}

/* Nothing more is read; what is written goes out, then it ends. */
static void
finish(struct peer *p)
{
	p->ending = true;
	bufferevent_disable(p->bev, EV_READ);
	if (evbuffer_get_length(bufferevent_get_output(p->bev)) == 0)
		peer_free(p);
}

/* --- the handshake */

/* False: the head is not whole, or wrong. */
static bool
handshake(struct peer *p)
{
	struct evbuffer *in = bufferevent_get_input(p->bev);
	struct evbuffer_ptr end = evbuffer_search(in, "\r\n\r\n", 4, NULL);
	char accept[WS_ACCEPT_MAX] = "";
	const char *head, *key;
	size_t size = (size_t)end.pos + 4, len;

	if (end.pos == -1) {
		if (evbuffer_get_length(in) > HEAD_MAX)
			peer_free(p);
		return false;
	}
	head = (const char *)evbuffer_pullup(in, (ev_ssize_t)size);
	if ((key = ws_field(head, size, "Sec-WebSocket-Key", &len)) != NULL)
		ws_accept(key, len, accept);
	evbuffer_drain(in, size);
	if (accept[0] == '\0') {
		bufferevent_write(p->bev, refusal, sizeof(refusal) - 1);
		finish(p);
		return false;
	}
	evbuffer_add_printf(bufferevent_get_output(p->bev),
	    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
	    "Connection: Upgrade\r\nSec-WebSocket-Accept: %s\r\n\r\n",
	    accept);
	p->open = true;
	return true;
}

/* --- frames */

static void
answer(struct peer *p, const struct ws_frame *f, unsigned char *payload)
{
	enum ws_opcode opcode =
	    f->opcode == WS_PING ? WS_PONG : (enum ws_opcode)f->opcode;
	unsigned char head[WS_HEAD_MAX];

	if (f->opcode == WS_PONG)
		return;
	ws_mask(payload, f->len, f->mask);
	bufferevent_write(p->bev, head,
	    ws_head(head, f->fin, opcode, f->len, NULL));
	bufferevent_write(p->bev, payload, f->len);
}

/* Takes one frame: 1, 0 when there is none, -1 when it is the last. */
static int
take_frame(struct peer *p)
{
	struct evbuffer *in = bufferevent_get_input(p->bev);
	unsigned char head[WS_HEAD_MAX], *whole;
	ev_ssize_t n = evbuffer_copyout(in, head, sizeof(head));
	struct ws_frame f;
	int r = ws_parse(&f, head, n < 0 ? 0 : (size_t)n);

	if (r == 0)
		return 0;
	if (r == -1 || !f.masked || f.len > FRAME_MAX)
		return -1;
	if (evbuffer_get_length(in) < f.head + f.len)
		return 0;
	whole = evbuffer_pullup(in, (ev_ssize_t)(f.head + f.len));
	answer(p, &f, whole + f.head);
	evbuffer_drain(in, f.head + f.len);
	return f.opcode == WS_CLOSE ? -1 : 1;
}

static void
readable(struct bufferevent *bev, void *arg)
{
	struct peer *p = arg;
	int r;

	if (!p->open && !handshake(p))
		return;
	do {
		if (evbuffer_get_length(bufferevent_get_output(bev)) >
		    OUT_MAX) {
			bufferevent_disable(bev, EV_READ);
			return;
		}
		r = take_frame(p);
	} while (r == 1);
	if (r == -1)
		finish(p);
}

/* All of it is out. */
static void
written(struct bufferevent *bev, void *arg)
{
	struct peer *p = arg;

	if (p->ending) {
		peer_free(p);
	} else if (!(bufferevent_get_enabled(bev) & EV_READ)) {
		bufferevent_enable(bev, EV_READ);
		readable(bev, p); /* what is there makes no event */
	}
}

static void
ended(struct bufferevent *bev, short what, void *arg)
{
	(void)bev;
	(void)what;
	peer_free(arg);
}
