/* proxies.c: see proxies.h. */
#include "clusterctl/proxies.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "clusterctl/fanout.h"
#include "clusterctl/output.h"
#include "clusterctl/xalloc.h"
#include "common/base/clock.h"
#include "common/base/io.h"
#include "common/base/json.h"
#include "common/base/local.h"
#include "common/net/identity.h"
#include "common/registry/roles.h"

#define SOCKET_NAME "proxyd.sock"
#define ANSWER_MAX  (64U << 20)
#define SILENCE_S   10
#define CONNECT_MS  3000

/* An answer as far as it came. */
struct text {
	char *bytes;
	size_t len, room;
};

struct asking {
	char *line; /* the question to an agent */
	bool quiet;
	void (*answer)(const char *proxy, json_t *, void *arg);
	void *arg;
	struct proxies *result;
};

static char *own_name(const struct context *);
static void ask_here(const struct context *, const char *name, json_t *question,
    struct asking *);
static int ask_others(struct context *, const char *own, json_t *question,
    struct asking *, struct err *);
static size_t other_entries(const struct context *, const char *own,
    const struct dir_node **nodes);
static int start(struct task *, void *, struct err *);
static int record(struct task *, enum record_type, const uint8_t *, size_t,
    void *, struct err *);
static void ended(struct task *, void *);
static void deliver(struct asking *, const char *proxy, const struct text *);
static void remark(struct asking *, const char *proxy, const char *why);
static int add(struct text *, const void *bytes, size_t n, struct err *);

static const struct fanout_job job = {
	.start = start,
	.record = record,
	.ended = ended,
	.own_size = sizeof(struct text),
};

int
proxies_ask(struct context *cx, json_t *question, bool quiet,
    void (*answer)(const char *, json_t *, void *), void *arg,
    struct proxies *result, struct err *e)
{
	struct asking a = { .quiet = quiet,
		.answer = answer,
		.arg = arg,
		.result = result };
	char *own = own_name(cx);
	int rv;

	*result = (struct proxies){ 0 };
	ask_here(cx, own != NULL ? own : "here", question, &a);
	rv = ask_others(cx, own, question, &a, e);
	free(own);
	return rv;
}

int
proxies_status(const struct proxies *p, struct err *e)
{
	if (p->interrupted)
		return outcome_exit_status(OUTCOME_CANCELLED);
	if (p->n_silent > 0)
		return ERR_UNREACHABLE;
	if (p->n > 0)
		return 0;
	return err_set(e, ERR_UNREACHABLE,
	    "no proxy runs here, on another master, or on a node with the "
	    "role proxy (start it with: proxyd run)");
}

/* The name of this machine's node; NULL: it is none. */
static char *
own_name(const struct context *cx)
{
	struct channel_identity id;
	struct cert c;
	struct err e;

	if (!state_has(context_state(cx), STATE_NODE_CERT) ||
	    identity_load(context_state(cx), CERT_NODE, clock_wall_ms() / 1000,
		&id, &c, &e) == -1)
		return NULL;
	identity_wipe(&id);
	return xstrdup(c.name);
}

static void
ask_here(const struct context *cx, const char *name, json_t *question,
    struct asking *a)
{
	char *line = json_dumps(question, JSON_COMPACT);
	char run[PATH_MAX], path[PATH_MAX];
	struct text t = { NULL, 0, 0 };
	struct err e;

	state_path(context_state(cx), STATE_RUN, run);
	if (line == NULL ||
	    io_path(path, sizeof(path), run, SOCKET_NAME, &e) == -1)
		remark(a, name, "out of memory");
	else if (local_ask(path, line, SILENCE_S, ANSWER_MAX, &t.bytes, &t.len,
		     &e) == 0)
		deliver(a, name, &t);
	else if (e.code != ERR_UNREACHABLE) /* else none runs here */
		remark(a, name, e.text);
	free(line);
	free(t.bytes);
}

/* A machine without an operator's identity sees its own proxy only. */
static int
ask_others(struct context *cx, const char *own, json_t *question,
    struct asking *a, struct err *e)
{
	const struct dir_node **nodes =
	    xcalloc(directory_n_nodes(context_directory(cx)), sizeof(*nodes));
	struct fanout_plan plan = {
		.nodes = nodes,
		.n = other_entries(cx, own, nodes),
		.window = 128,
		.connect_ms = CONNECT_MS,
		.limit_ms = SILENCE_S * 1000,
		.limit_outcome = OUTCOME_TIMEOUT,
		.max_fail = -1,
		.quick = true,
		.job = &job,
		.arg = a,
	};
	json_t *request =
	    json_pack("{s:s s:O}", "verb", "proxy", "question", question);
	struct fanout *f = NULL;
	int rv = 0;

	a->line = json_dumps(request, JSON_COMPACT);
	if (plan.n > 0 && context_need(cx, NEEDS_OPERATOR, e) == -1) {
		for (size_t i = 0; i < plan.n; i++)
			remark(a, nodes[i]->name, e->text);
	} else if (plan.n > 0) {
		f = fanout_new(cx, &plan, e);
		rv = f != NULL ? fanout_run(f, e) : -1;
		a->result->interrupted = rv == 0 && fanout_interrupted(f);
	}
	fanout_free(f);
	json_decref(request);
	free(a->line);
	free(nodes);
	return rv;
}

/* The other machines that a proxy may run on. */
static size_t
other_entries(const struct context *cx, const char *own,
    const struct dir_node **nodes)
{
	const struct dir_node *d;
	size_t n = 0;

	for (size_t i = 0; (d = directory_at(context_directory(cx), i)) != NULL;
	     i++)
		if (d->has_agent &&
		    (directory_node_has_role(d, ROLE_MASTER) ||
			directory_node_has_role(d, ROLE_PROXY)) &&
		    (own == NULL || strcmp(d->name, own) != 0))
			nodes[n++] = d;
	return n;
}

/* ---- through an agent -------------------------------------------------- */

static int
start(struct task *t, void *arg, struct err *e)
{
	struct asking *a = arg;

	return task_send(t, REC_REQUEST, a->line, strlen(a->line), e);
}

static int
record(struct task *t, enum record_type type, const uint8_t *body, size_t size,
    void *arg, struct err *e)
{
	(void)arg;
	if (type == REC_FILE)
		return add(t->own, body, size, e);
	if (type == REC_REPLY) {
		task_end(t, OUTCOME_OK, NULL);
		return 0;
	}
	err_set(e, ERR_PROTOCOL, "it sent a record out of turn");
	task_end(t, OUTCOME_LOST, e);
	return 0;
}

static void
ended(struct task *t, void *arg)
{
	struct asking *a = arg;
	struct text *own = t->own;
	char sentence[400];

	if (t->result.outcome == OUTCOME_OK) {
		deliver(a, t->node->name, own);
	} else if (t->result.outcome != OUTCOME_REFUSED ||
	    t->result.why.code != ERR_UNREACHABLE) {
		/* Refused as unreachable: no proxy runs there. */
		result_sentence(&t->result, sentence, sizeof(sentence));
		remark(a, t->node->name, sentence);
	}
	free(own->bytes);
}

/* ---- what comes back --------------------------------------------------- */

static void
deliver(struct asking *a, const char *proxy, const struct text *t)
{
	struct err e;
	const char *text;
	json_t *o = json_parse_object(t->bytes, t->len, ANSWER_MAX, &e);

	if (o == NULL) {
		remark(a, proxy, e.text);
	} else if (!json_is_true(json_object_get(o, "ok"))) {
		text = json_string_value(json_object_get(o, "text"));
		remark(a, proxy, text != NULL ? text : "refused");
	} else {
		a->result->n++;
		a->answer(proxy, o, a->arg);
	}
	json_decref(o);
}

static void
remark(struct asking *a, const char *proxy, const char *why)
{
	a->result->n_silent++;
	if (!a->quiet)
		output_note("the proxy on %s: %s", proxy, why);
}

static int
add(struct text *t, const void *bytes, size_t n, struct err *e)
{
	if (n > ANSWER_MAX - t->len)
		return err_set(e, ERR_PROTOCOL,
		    "its answer is longer than %u bytes", ANSWER_MAX);
	if (n > t->room - t->len) {
		t->room = (t->len + n) * 2;
		t->bytes = xreallocarray(t->bytes, t->room, 1);
	}
	memcpy(t->bytes + t->len, bytes, n);
	t->len += n;
	return 0;
}
