/* admin.c: see admin.h: the sockets, and the bytes on them. */
#include "proxyd/admin/admin.h"

#include <sys/queue.h>
#include <sys/socket.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <event2/buffer.h>
#include <event2/bufferevent.h>

#include "common/base/clock.h"
#include "common/base/io.h"
#include "common/base/json.h"
#include "common/base/local.h"
#include "common/base/log.h"
#include "proxyd/admin/metrics.h"
#include "proxyd/process/listeners.h"

#define CONNECTIONS_MAX 64 /* at each door: strangers keep nobody out */
#define IDLE_S		30
#define LINGER_S	2
#define HEAD_MAX	8192

enum door { DOOR_ADMIN, DOOR_STATUS, DOORS };

enum visit_state {
	VISIT_OPEN,
	VISIT_CLOSING, /* we said our last: the peer shall have it, then close */
	VISIT_ENDING   /* the peer said its last: our answers go out */
};

struct visit {
	struct admin *admin;
	enum door door;
	struct bufferevent *bev;
	enum visit_state state;
	LIST_ENTRY(visit) link;
};

struct admin {
	struct event_base *base;
	const struct scoreboard *board;
	const struct notices *notices;
	char path[PATH_MAX];
	struct snapshot *snapshot; /* NULL: none yet */
	struct cert_image *certs;  /* likewise */
	struct rates *rates;
	struct event *second;
	int fd;
	struct event *ev;
	struct listeners status;
	struct event **status_events; /* one a listener */
	size_t n_status_events;
	LIST_HEAD(, visit) visits;
	unsigned n_visits[DOORS];
};

static int watch(struct admin *, struct err *);
static void unwatch_status(struct admin *);
static void on_second(evutil_socket_t, short, void *);
static void on_admin(evutil_socket_t, short, void *);
static void on_status(evutil_socket_t, short, void *);
static void receive(struct admin *, int fd, enum door);
static void visit_free(struct visit *);
static void on_read(struct bufferevent *, void *);
static void on_written(struct bufferevent *, void *);
static void on_event(struct bufferevent *, short, void *);
static bool has_output(const struct visit *);
static void read_lines(struct visit *);
static void answer_line(struct visit *, const char *line, size_t len);
static void read_request(struct visit *);
static void serve(struct visit *, const char *method, const char *path);
static void reply(struct visit *, int status, const char *type,
    struct evbuffer *body, bool head_only);
static struct report report_now(const struct admin *);

struct admin *
admin_new(struct event_base *base, const struct scoreboard *board,
    const struct notices *notices, const char *path, int socket_fd,
    struct err *e)
{
	struct admin *a = calloc(1, sizeof(*a));

	if (a == NULL) {
		err_set(e, ERR_LOCAL, "out of memory for the admin socket");
		return NULL;
	}
	a->base = base;
	a->board = board;
	a->notices = notices;
	a->fd = socket_fd;
	snprintf(a->path, sizeof(a->path), "%s", path);
	LIST_INIT(&a->visits);
	if ((a->fd == -1 && (a->fd = local_listen(path, e)) == -1) ||
	    (a->rates = rates_new(board, e)) == NULL || watch(a, e) == -1) {
		admin_free(a);
		return NULL;
	}
	return a;
}

void
admin_free(struct admin *a)
{
	if (a == NULL)
		return;
	while (!LIST_EMPTY(&a->visits))
		visit_free(LIST_FIRST(&a->visits));
	if (a->fd != -1)
		unlink(a->path);
	admin_close(a);
	if (a->second != NULL)
		event_free(a->second);
	rates_free(a->rates);
	snapshot_release(a->snapshot);
	cert_image_release(a->certs);
	free(a);
}

void
admin_close(struct admin *a)
{
	unwatch_status(a);
	listeners_close(&a->status);
	if (a->ev != NULL)
		event_free(a->ev);
	a->ev = NULL;
	io_close(&a->fd);
}

int
admin_socket(const struct admin *a)
{
	return a->fd;
}

void
admin_apply(struct admin *a, struct snapshot *s)
{
	snapshot_release(a->snapshot);
	a->snapshot = s;
}

void
admin_certs(struct admin *a, struct cert_image *certs)
{
	cert_image_release(a->certs);
	a->certs = certs;
}

int
admin_status_listen(struct admin *a, const char *list, struct err *e)
{
	struct event **events;
	bool changed;

	if (listeners_apply(&a->status, list, "", 1, &changed, e) == -1)
		return -1;
	if (!changed && a->status_events != NULL)
		return 0;
	if ((events = calloc(a->status.n + 1, sizeof(*events))) == NULL)
		return err_set(e, ERR_LOCAL, "out of memory for listeners");
	unwatch_status(a);
	a->status_events = events;
	a->n_status_events = a->status.n;
	for (size_t i = 0; i < a->status.n; i++) {
		events[i] = event_new(a->base, a->status.rows[i].fd,
		    EV_READ | EV_PERSIST, on_status, a);
		if (events[i] == NULL || event_add(events[i], NULL) == -1)
			return err_set(e, ERR_LOCAL,
			    "out of memory for listeners");
	}
	return 0;
}

const struct listeners *
admin_status_listeners(const struct admin *a)
{
	return &a->status;
}

void
admin_take_status(struct admin *a, struct listeners *l)
{
	a->status = *l;
	*l = (struct listeners){ NULL, 0 };
}

static int
watch(struct admin *a, struct err *e)
{
	static const struct timeval second = { .tv_sec = 1 };

	a->second = event_new(a->base, -1, EV_PERSIST, on_second, a);
	a->ev = event_new(a->base, a->fd, EV_READ | EV_PERSIST, on_admin, a);
	if (a->second == NULL || a->ev == NULL ||
	    event_add(a->second, &second) == -1 || event_add(a->ev, NULL) == -1)
		return err_set(e, ERR_LOCAL,
		    "out of memory for the admin socket");
	return 0;
}

static void
unwatch_status(struct admin *a)
{
	for (size_t i = 0; i < a->n_status_events; i++)
		if (a->status_events[i] != NULL)
			event_free(a->status_events[i]);
	free(a->status_events);
	a->status_events = NULL;
	a->n_status_events = 0;
}

static void
on_second(evutil_socket_t fd, short what, void *arg)
{
	struct admin *a = arg;

	(void)fd;
	(void)what;
	rates_tick(a->rates, clock_mono_ms());
}

/* ---- connections ------------------------------------------------------ */

static void
on_admin(evutil_socket_t fd, short what, void *arg)
{
	(void)what;
	receive(arg, fd, DOOR_ADMIN);
}

/* The mode of the socket says so already; this holds whoever changed it. */
static bool
may_enter(int fd)
{
	struct err e;
	uid_t uid;

	if (local_peer_uid(fd, &uid, &e) == -1) {
		log_warn("%s", e.text);
		return false;
	}
	if (uid == 0 || uid == geteuid())
		return true;
	log_warn("refused uid %u at the admin socket", (unsigned)uid);
	return false;
}

static void
on_status(evutil_socket_t fd, short what, void *arg)
{
	(void)what;
	receive(arg, fd, DOOR_STATUS);
}

static void
receive(struct admin *a, int listen_fd, enum door door)
{
	static const struct timeval idle = { .tv_sec = IDLE_S };
	int fd = accept4(listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	struct visit *v;

	if (fd == -1)
		return;
	if (a->n_visits[door] >= CONNECTIONS_MAX || a->snapshot == NULL ||
	    (door == DOOR_ADMIN && !may_enter(fd)) ||
	    (v = calloc(1, sizeof(*v))) == NULL) {
		close(fd);
		return;
	}
	v->admin = a;
	v->door = door;
	v->bev = bufferevent_socket_new(a->base, fd, BEV_OPT_CLOSE_ON_FREE);
	if (v->bev == NULL) {
		close(fd);
		free(v);
		return;
	}
	LIST_INSERT_HEAD(&a->visits, v, link);
	a->n_visits[door]++;
	bufferevent_setcb(v->bev, on_read, on_written, on_event, v);
	bufferevent_setwatermark(v->bev, EV_READ, 0, HEAD_MAX);
	bufferevent_set_timeouts(v->bev, &idle, &idle);
	bufferevent_enable(v->bev, EV_READ | EV_WRITE);
}

static void
visit_free(struct visit *v)
{
	v->admin->n_visits[v->door]--;
	LIST_REMOVE(v, link);
	bufferevent_free(v->bev);
	free(v);
}

static void
on_read(struct bufferevent *bev, void *arg)
{
	struct visit *v = arg;
	struct evbuffer *in = bufferevent_get_input(bev);

	if (v->state == VISIT_CLOSING)
		evbuffer_drain(in, evbuffer_get_length(in));
	else if (v->door == DOOR_ADMIN)
		read_lines(v);
	else
		read_request(v);
}

/* What was not read yet would make close() a reset, and the answer be lost:
 * so the peer closes first, or the time is up. */
static void
on_written(struct bufferevent *bev, void *arg)
{
	static const struct timeval linger = { .tv_sec = LINGER_S };
	struct visit *v = arg;

	if (v->state == VISIT_CLOSING) {
		shutdown(bufferevent_getfd(bev), SHUT_WR);
		bufferevent_set_timeouts(bev, &linger, NULL);
		return;
	}
	if (v->door == DOOR_ADMIN)
		read_lines(v);
	if (v->state == VISIT_ENDING && !has_output(v))
		visit_free(v);
}

static void
on_event(struct bufferevent *bev, short what, void *arg)
{
	struct visit *v = arg;

	(void)bev;
	if ((what & BEV_EVENT_EOF) != 0 && has_output(v))
		v->state = VISIT_ENDING;
	else if ((what &
		     (BEV_EVENT_EOF | BEV_EVENT_ERROR | BEV_EVENT_TIMEOUT)) !=
	    0)
		visit_free(v);
}

static bool
has_output(const struct visit *v)
{
	return evbuffer_get_length(bufferevent_get_output(v->bev)) > 0;
}

/* ---- the admin socket: lines of JSON ---------------------------------- */

/* One answer at a time: who does not take it gets no other. */
static void
read_lines(struct visit *v)
{
	struct evbuffer *in = bufferevent_get_input(v->bev);
	size_t len;
	char *line;

	while (!has_output(v) &&
	    (line = evbuffer_readln(in, &len, EVBUFFER_EOL_LF)) != NULL) {
		answer_line(v, line, len);
		free(line);
	}
	if (evbuffer_get_length(in) >= ADMIN_LINE_MAX && !has_output(v)) {
		evbuffer_drain(in, evbuffer_get_length(in));
		v->state = VISIT_CLOSING;
		answer_line(v, "", 0);
	}
}

static void
answer_line(struct visit *v, const char *line, size_t len)
{
	struct report r = report_now(v->admin);
	struct err e;
	json_t *request, *answer;
	char *text;

	request = json_parse_object(line, len, ADMIN_LINE_MAX, &e);
	answer = request != NULL ?
	    admin_answer(&r, request) :
	    json_pack("{s:b s:i s:s}", "ok", 0, "code", e.code, "text", e.text);
	json_decref(request);
	text = answer != NULL ? json_dumps(answer, JSON_COMPACT) : NULL;
	json_decref(answer);
	if (text != NULL)
		evbuffer_add_printf(bufferevent_get_output(v->bev), "%s\n",
		    text);
	free(text);
}

/* ---- the status listener: one GET a connection ------------------------ */

static void
read_request(struct visit *v)
{
	struct evbuffer *in = bufferevent_get_input(v->bev);
	struct evbuffer_ptr end = evbuffer_search(in, "\r\n\r\n", 4, NULL);
	char line[256], method[8], path[128];
	ev_ssize_t n;

	if (end.pos == -1) {
		if (evbuffer_get_length(in) >= HEAD_MAX)
			reply(v, 431, "text/plain", NULL, false);
		return;
	}
	n = evbuffer_copyout(in, line, sizeof(line) - 1);
	line[n > 0 ? n : 0] = '\0';
	line[strcspn(line, "\r\n")] = '\0';
	if (sscanf(line, "%7[A-Z] %127s HTTP/1.", method, path) == 2)
		serve(v, method, path);
	else
		reply(v, 400, "text/plain", NULL, false);
}

static void
serve(struct visit *v, const char *method, const char *path)
{
	struct report r = report_now(v->admin);
	struct evbuffer *body;
	bool head = strcmp(method, "HEAD") == 0;
	struct err e;
	json_t *request, *o;
	char *text;

	if (!head && strcmp(method, "GET") != 0) {
		reply(v, 405, "text/plain", NULL, false);
		return;
	}
	if ((body = evbuffer_new()) == NULL) {
		reply(v, 503, "text/plain", NULL, false);
		return;
	}
	if (strcmp(path, "/metrics") == 0) {
		if (metrics_write(&r, body, &e) == 0)
			reply(v, 200, "text/plain; version=0.0.4", body, head);
		else
			reply(v, 503, "text/plain", NULL, head);
	} else if (strcmp(path, "/status.json") == 0) {
		request = json_pack("{s:s}", "ask", "status");
		o = admin_answer(&r, request);
		text = o != NULL ? json_dumps(o, JSON_INDENT(1)) : NULL;
		json_decref(request);
		json_decref(o);
		if (text != NULL)
			evbuffer_add_printf(body, "%s\n", text);
		reply(v, text != NULL ? 200 : 503, "application/json", body,
		    head);
		free(text);
	} else {
		reply(v, 404, "text/plain", NULL, head);
	}
	evbuffer_free(body);
}

static void
reply(struct visit *v, int status, const char *type, struct evbuffer *body,
    bool head_only)
{
	struct evbuffer *out = bufferevent_get_output(v->bev);

	v->state = VISIT_CLOSING;
	evbuffer_add_printf(out,
	    "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n"
	    "Cache-Control: no-store\r\nConnection: close\r\n\r\n",
	    status, status == 200 ? "OK" : "Refused", type,
	    body != NULL ? evbuffer_get_length(body) : 0);
	if (body != NULL && !head_only)
		evbuffer_add_buffer(out, body);
}

static struct report
report_now(const struct admin *a)
{
	return (struct report){
		.board = a->board,
		.snapshot = a->snapshot,
		.certs = a->certs,
		.rates = a->rates,
		.notices = a->notices,
		.now_ms = clock_mono_ms(),
	};
}
