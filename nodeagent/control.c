/* control.c: see control.h. */
#include "nodeagent/control.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <unistd.h>

#include <event2/event.h>

#include "common/base/clock.h"
#include "common/base/io.h"
#include "common/base/json.h"
#include "common/base/local.h"
#include "common/base/log.h"
#include "common/base/secret.h"
#include "common/base/text.h"
#include "common/net/authority.h"
#include "common/net/proto.h"
#include "nodeagent/agent.h"
#include "nodeagent/job.h"
#include "nodeagent/master.h"
#include "nodeagent/options.h"
#include "nodeagent/pull.h"
#include "nodeagent/server.h"

#define CONNECTIONS_MAX 8

/* One local client.  Its line may hold a passphrase: wiped at the end. */
struct connection {
	TAILQ_ENTRY(connection) link;
	struct control *control;
	struct event *readable;
	int fd;
	size_t len;
	char line[CONTROL_LINE_MAX];
};

struct control {
	struct agent *agent;
	char path[PATH_MAX];
	int fd;
	struct event *acceptable;
	TAILQ_HEAD(, connection) all;
	size_t n;
};

static json_t *do_status(struct agent *, json_t *, struct err *);
static json_t *do_reload(struct agent *, json_t *, struct err *);
static json_t *do_unlock(struct agent *, json_t *, struct err *);

static const struct {
	const char *name;
	json_t *(*run)(struct agent *, json_t *request, struct err *);
} control_requests[] = {
	{ "status", do_status },
	{ "reload", do_reload },
	{ "unlock", do_unlock },
};

static void control_acceptable(evutil_socket_t, short, void *);
static int admit(struct control *, int fd, struct err *);
static void connection_new(struct control *, int fd);
static void connection_free(struct connection *);
static void connection_readable(evutil_socket_t, short, void *);
static void answer_line(struct connection *, char *line, size_t len);
static json_t *dispatch(struct agent *, json_t *request, struct err *);
static void wipe_json_string(json_t *);
static int ask(const struct state *, const char *request, char *answer,
    size_t size, struct err *);
static void show_status(json_t *);

struct control *
control_new(struct agent *a, const char *run_dir, struct err *e)
{
	struct control *c = calloc(1, sizeof(*c));

	if (c == NULL) {
		err_set(e, ERR_LOCAL, "out of memory for the local socket");
		return NULL;
	}
	c->agent = a;
	c->fd = -1;
	TAILQ_INIT(&c->all);
	if (io_path(c->path, sizeof(c->path), run_dir, CONTROL_SOCKET, e) ==
		-1 ||
	    (c->fd = local_listen(c->path, e)) == -1)
		goto fail;
	c->acceptable = event_new(a->base, c->fd, EV_READ | EV_PERSIST,
	    control_acceptable, c);
	if (c->acceptable == NULL || event_add(c->acceptable, NULL) == -1) {
		err_set(e, ERR_LOCAL, "out of memory for the local socket");
		goto fail;
	}
	return c;
fail:
	control_free(c);
	return NULL;
}

void
control_free(struct control *c)
{
	if (c == NULL)
		return;
	while (!TAILQ_EMPTY(&c->all))
		connection_free(TAILQ_FIRST(&c->all));
	if (c->acceptable != NULL)
		event_free(c->acceptable);
	if (c->fd != -1)
		unlink(c->path);
	io_close(&c->fd);
	free(c);
}

int
control_status(const struct options *o, struct err *e)
{
	char answer[CONTROL_LINE_MAX];
	struct state state;
	json_t *status;

	if (state_open(&state, state_dir(o->state), e) == -1 ||
	    ask(&state, "{\"do\":\"status\"}\n", answer, sizeof(answer), e) ==
		-1)
		return -1;
	status = json_parse_object(answer, strlen(answer), sizeof(answer), e);
	if (status == NULL)
		return -1;
	show_status(status);
	json_decref(status);
	return 0;
}

static void
control_acceptable(evutil_socket_t fd, short what, void *arg)
{
	struct control *c = arg;
	struct err e;
	int peer;

	(void)what;
	peer = accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (peer == -1)
		return;
	if (admit(c, peer, &e) == -1) {
		log_warn("local socket: %s", e.text);
		close(peer);
		return;
	}
	connection_new(c, peer);
}

static int
admit(struct control *c, int fd, struct err *e)
{
	uid_t uid;

	if (local_peer_uid(fd, &uid, e) == -1)
		return -1;
	if (uid != 0 && uid != geteuid())
		return err_set(e, ERR_DENIED, "uid %d may not give orders here",
		    (int)uid);
	if (c->n >= CONNECTIONS_MAX)
		return err_set(e, ERR_BUSY, "too many connections");
	return 0;
}

static void
connection_new(struct control *c, int fd)
{
	struct connection *k = calloc(1, sizeof(*k));

	if (k == NULL ||
	    (k->readable = event_new(c->agent->base, fd, EV_READ | EV_PERSIST,
		 connection_readable, k)) == NULL) {
		free(k);
		close(fd);
		return;
	}
	k->control = c;
	k->fd = fd;
	TAILQ_INSERT_TAIL(&c->all, k, link);
	c->n++;
	event_add(k->readable, NULL);
}

static void
connection_free(struct connection *k)
{
	TAILQ_REMOVE(&k->control->all, k, link);
	k->control->n--;
	event_free(k->readable);
	io_close(&k->fd);
	secret_wipe(k->line, sizeof(k->line));
	free(k);
}

static void
connection_readable(evutil_socket_t fd, short what, void *arg)
{
	struct connection *k = arg;
	char *end;
	ssize_t n;

	(void)what;
	n = read(fd, k->line + k->len, sizeof(k->line) - k->len);
	if (n == -1 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		connection_free(k);
		return;
	}
	k->len += (size_t)n;
	while ((end = memchr(k->line, '\n', k->len)) != NULL) {
		size_t used = (size_t)(end - k->line) + 1;

		answer_line(k, k->line, used - 1);
		memmove(k->line, k->line + used, k->len - used);
		k->len -= used;
		secret_wipe(k->line + k->len, used);
	}
	if (k->len == sizeof(k->line))
		connection_free(k);
}

static void
answer_line(struct connection *k, char *line, size_t len)
{
	json_t *request, *answer = NULL;
	struct err e = { 0 };
	char *text;

	request = json_parse_object(line, len, CONTROL_LINE_MAX, &e);
	if (request != NULL)
		answer = dispatch(k->control->agent, request, &e);
	if (answer == NULL)
		answer = json_pack("{s:i, s:s, s:s}", "code", e.code, "word",
		    err_word(e.code), "text", e.text);
	if (request != NULL)
		wipe_json_string(json_object_get(request, "passphrase"));
	json_decref(request);
	if ((text = json_dumps(answer, JSON_COMPACT)) != NULL) {
		/* A few hundred bytes always fit a socket that the other
		 * end reads line by line. */
		if (io_write_n(k->fd, text, strlen(text)) == -1 ||
		    io_write_n(k->fd, "\n", 1) == -1)
			log_debug("a local client did not wait for its answer");
	}
	free(text);
	json_decref(answer);
}

static json_t *
dispatch(struct agent *a, json_t *request, struct err *e)
{
	const char *name;

	if (json_get_string(request, "do", NAME_MAX_LEN, &name, e) == -1)
		return NULL;
	for (size_t i = 0; i < nitems(control_requests); i++)
		if (strcmp(control_requests[i].name, name) == 0)
			return control_requests[i].run(a, request, e);
	err_set(e, ERR_USAGE, "unknown request %s", name);
	return NULL;
}

static json_t *
do_status(struct agent *a, json_t *request, struct err *e)
{
	char at[ADDR_TEXT_MAX], until[32];
	struct err locked;

	(void)request;
	(void)e;
	addr_format(server_addr(a->server), at);
	clock_format_utc(a->cert.not_after_s * 1000, until, sizeof(until));
	return json_pack("{s:s, s:s, s:i, s:s, s:s, s:b, s:I, s:s, s:I, s:I, "
			 "s:I, s:s}",
	    "node", a->view.name, "version", MUSTER_VERSION, "pid",
	    (int)getpid(), "listen", at, "roles", a->view.roles, "enrolled",
	    a->view.enrolled, "roster_revision", (json_int_t)a->view.revision,
	    "cert_until", until, "sessions",
	    (json_int_t)server_n_sessions(a->server), "running",
	    (json_int_t)jobs_count(a->jobs), "orders", (json_int_t)a->n_orders,
	    "authority",
	    a->master == NULL				  ? "none" :
		master_secret(a->master, &locked) == NULL ? "locked" :
							    "open");
}

static json_t *
do_reload(struct agent *a, json_t *request, struct err *e)
{
	(void)request;
	if (a->master != NULL && master_refresh(a->master, e) == -1)
		return NULL;
	pull_now(a->pull);
	return json_pack("{s:I}", "roster_revision",
	    (json_int_t)a->view.revision);
}

static json_t *
do_unlock(struct agent *a, json_t *request, struct err *e)
{
	const char *passphrase;

	if (a->master == NULL) {
		err_set(e, ERR_USAGE,
		    "%s has no authority key: unlock the master", a->view.name);
		return NULL;
	}
	if (json_get_string(request, "passphrase", AUTHORITY_PASSPHRASE_MAX,
		&passphrase, e) == -1 ||
	    master_unlock(a->master, passphrase, e) == -1)
		return NULL;
	return json_pack("{s:s}", "authority", "open");
}

static void
wipe_json_string(json_t *s)
{
	if (json_is_string(s))
		secret_wipe((void *)(uintptr_t)json_string_value(s),
		    json_string_length(s));
}

/* One request, one line of answer, as a string. */
static int
ask(const struct state *state, const char *request, char *answer, size_t size,
    struct err *e)
{
	char dir[PATH_MAX], path[PATH_MAX];
	size_t len = 0;
	ssize_t n = 0;
	int fd;

	if (io_path(path, sizeof(path), state_path(state, STATE_RUN, dir),
		CONTROL_SOCKET, e) == -1)
		return -1;
	if ((fd = local_connect(path, e)) == -1)
		return err_set(e, ERR_UNREACHABLE,
		    "no agent runs with the state directory %s (start it: "
		    "systemctl start muster-nodeagent, or nodeagent run)",
		    state->dir);
	if (io_write_n(fd, request, strlen(request)) == 0)
		do
			len += (size_t)n;
		while (len < size - 1 && memchr(answer, '\n', len) == NULL &&
		    (n = read(fd, answer + len, size - 1 - len)) > 0);
	close(fd);
	answer[len] = '\0';
	if (len == 0)
		return err_set(e, ERR_UNREACHABLE, "the agent did not answer");
	return 0;
}

static void
show_status(json_t *status)
{
	const char *name;
	json_t *v;

	json_object_foreach (status, name, v) {
		if (json_is_string(v))
			printf("%-16s %s\n", name, json_string_value(v));
		else if (json_is_integer(v))
			printf("%-16s %" JSON_INTEGER_FORMAT "\n", name,
			    json_integer_value(v));
		else
			printf("%-16s %s\n", name,
			    json_is_true(v) ? "yes" : "no");
	}
}
