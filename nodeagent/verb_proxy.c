/* verb_proxy.c: the verb proxy: what the proxy of this machine says of its
 * traffic, for operators elsewhere. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <event2/event.h>

#include "common/base/io.h"
#include "common/base/json.h"
#include "common/base/local.h"
#include "nodeagent/agent.h"
#include "nodeagent/session.h"
#include "nodeagent/verbs.h"

#define PROXY_SOCKET "proxyd.sock" /* as in proxyd(8) */
#define QUESTION_MAX 4096	   /* of a question, there */
#define CHUNK	     (32 * 1024)
#define SILENCE_S    10

/* What the grant `status` covers: questions that change nothing. */
static const char *const harmless[] = { "nodes", "workers", "sites", "limits",
	"status" };

/* An answer, one line of any length, on its way to a peer. */
struct relay {
	struct session *session;
	int fd;
	struct event *readable;
	size_t size;
};

static int check_question(json_t *question, struct err *);
static struct relay *relay_new(struct session *, struct err *);
static void relay_free(struct relay *);
static int send_question(struct relay *, json_t *question, struct err *);
static void relay_read(evutil_socket_t, short, void *);
static void relay_fail(struct relay *, int code, const char *why);
static void relay_drained(void *);
static void relay_lost(enum task_loss, void *);
static void listen_on(struct relay *);

static const struct task_ops relay_task = {
	.drained = relay_drained,
	.lost = relay_lost,
};

int
verb_proxy(struct session *s, json_t *args, struct err *e)
{
	json_t *question = json_object_get(args, "question"); /* borrowed */
	struct relay *r;

	if (check_question(question, e) == -1 || (r = relay_new(s, e)) == NULL)
		return -1;
	if (send_question(r, question, e) == -1) {
		relay_free(r);
		return -1;
	}
	session_run(s, &relay_task, r);
	listen_on(r);
	return 0;
}

static int
check_question(json_t *question, struct err *e)
{
	const char *word;

	if (!json_is_object(question))
		return err_set(e, ERR_PROTOCOL,
		    "proxy needs an object named question");
	if (json_get_string(question, "ask", 32, &word, e) == -1)
		return -1;
	for (size_t i = 0; i < nitems(harmless); i++)
		if (strcmp(harmless[i], word) == 0)
			return 0;
	return err_set(e, ERR_DENIED,
	    "the grant status does not cover asking a proxy for '%s'", word);
}

static struct relay *
relay_new(struct session *s, struct err *e)
{
	const struct agent *a = session_agent(s);
	struct relay *r = calloc(1, sizeof(*r));
	char run[PATH_MAX], path[PATH_MAX];

	if (r == NULL) {
		err_set(e, ERR_LOCAL, "out of memory for a question");
		return NULL;
	}
	r->session = s;
	r->fd = -1;
	state_path(&a->state, STATE_RUN, run);
	if (io_path(path, sizeof(path), run, PROXY_SOCKET, e) == -1 ||
	    (r->fd = local_connect_now(path, e)) == -1)
		goto fail;
	r->readable = event_new(a->base, r->fd, EV_READ, relay_read, r);
	if (r->readable != NULL)
		return r;
	err_set(e, ERR_LOCAL, "out of memory for a question");
fail:
	if (e->code == ERR_UNREACHABLE)
		err_set(e, ERR_UNREACHABLE, "no proxy runs on %s",
		    a->view.name);
	relay_free(r);
	return NULL;
}

static void
relay_free(struct relay *r)
{
	if (r->readable != NULL)
		event_free(r->readable);
	io_close(&r->fd);
	free(r);
}

/* A new socket has room for a line, or something is wrong with it. */
static int
send_question(struct relay *r, json_t *question, struct err *e)
{
	char line[QUESTION_MAX];
	size_t n = json_dumpb(question, line, sizeof(line) - 1, JSON_COMPACT);

	if (n == 0 || n > sizeof(line) - 1)
		return err_set(e, ERR_PROTOCOL,
		    "a question to a proxy is at most %zu bytes long",
		    sizeof(line) - 1);
	line[n++] = '\n';
	if (write(r->fd, line, n) == (ssize_t)n)
		return 0;
	return err_errno(e, ERR_UNREACHABLE, "cannot ask the proxy");
}

static void
relay_read(evutil_socket_t fd, short what, void *arg)
{
	struct relay *r = arg;
	char buf[CHUNK];
	const char *end;
	ssize_t n;

	if ((what & EV_TIMEOUT) != 0) {
		relay_fail(r, ERR_TIMEOUT, "the proxy is silent");
		return;
	}
	n = read(fd, buf, sizeof(buf));
	if (n == -1 && (errno == EAGAIN || errno == EINTR)) {
		listen_on(r);
		return;
	}
	if (n <= 0) {
		relay_fail(r, ERR_UNREACHABLE,
		    "the proxy broke its answer off");
		return;
	}
	end = memchr(buf, '\n', (size_t)n);
	n = end != NULL ? end - buf : n;
	r->size += (size_t)n;
	if (n > 0)
		session_send(r->session, REC_FILE, buf, (size_t)n);
	if (end == NULL) {
		listen_on(r);
		return;
	}
	session_reply(r->session,
	    json_pack("{s:I}", "size", (json_int_t)r->size));
	relay_free(r);
}

static void
relay_fail(struct relay *r, int code, const char *why)
{
	struct err e;

	err_set(&e, code, "%s", why);
	session_fail(r->session, &e);
	relay_free(r);
}

static void
relay_drained(void *arg)
{
	listen_on(arg);
}

static void
relay_lost(enum task_loss how, void *arg)
{
	(void)how;
	relay_free(arg);
}

/* As long as the peer takes it. */
static void
listen_on(struct relay *r)
{
	static const struct timeval silence = { .tv_sec = SILENCE_S };

	if (session_has_room(r->session))
		event_add(r->readable, &silence);
}
