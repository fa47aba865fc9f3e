/* admission.c: see admission.h. */
#include "clusterctl/admission.h"

#include <string.h>
#include <unistd.h>

#include <sodium.h>

#include "common/base/clock.h"
#include "common/base/json.h"

#define CONNECT_MS 5000
#define ANSWER_S   15

/* One attempt at one address. */
struct attempt {
	struct event_base *base;
	struct event *deadline;
	struct channel *channel;
	json_t *reply;
	struct err why; /* while reply is NULL */
};

static int ask_one(struct context *, const struct token *,
    const struct channel_identity *, const struct addr *, json_t **reply,
    struct err *);
static int understand(json_t *reply, const struct channel_identity *,
    struct admission *, struct err *);
static void opened(struct channel *, void *arg);
static void record(struct channel *, enum record_type, const uint8_t *body,
    size_t size, void *arg);
static void closed(struct channel *, const struct err *why, void *arg);
static void overdue(evutil_socket_t, short, void *arg);

static const struct channel_handlers handlers = {
	.opened = opened,
	.record = record,
	.closed = closed,
};

int
admission_ask(struct context *cx, const struct token *t,
    const struct channel_identity *id, struct admission *a, struct err *e)
{
	json_t *reply;
	int rv = -1;

	e->code = ERR_UNREACHABLE;
	for (size_t i = 0; i < t->n_addrs && rv == -1 &&
	     (e->code == ERR_UNREACHABLE || e->code == ERR_TIMEOUT);
	     i++) {
		rv = ask_one(cx, t, id, &t->addrs[i], &reply, e);
		a->master = t->addrs[i];
	}
	if (rv == -1)
		return -1;
	rv = understand(reply, id, a, e);
	json_decref(reply);
	return rv;
}

static int
ask_one(struct context *cx, const struct token *t,
    const struct channel_identity *id, const struct addr *to, json_t **reply,
    struct err *e)
{
	static const struct timeval limit = { .tv_sec = ANSWER_S };
	struct attempt a = { .base = context_base(cx) };
	char at[ADDR_TEXT_MAX];

	a.deadline = evtimer_new(a.base, overdue, &a);
	if (a.deadline == NULL)
		return err_set(e, ERR_LOCAL, "out of memory");
	a.channel = channel_connect_join(a.base, to, id, t, CONNECT_MS,
	    &handlers, &a, e);
	if (a.channel != NULL) {
		evtimer_add(a.deadline, &limit);
		event_base_dispatch(a.base);
	}
	event_free(a.deadline);
	if (a.channel == NULL)
		return -1;
	if (a.reply == NULL) {
		addr_format(to, at);
		*e = a.why;
		return err_wrap(e, "master %s", at);
	}
	*reply = a.reply;
	return 0;
}

static void
opened(struct channel *ch, void *arg)
{
	struct attempt *a = arg;
	char host[256] = "";

	(void)gethostname(host, sizeof(host) - 1);
	if (channel_send_json(ch, REC_REQUEST,
		json_pack("{s:s,s:s,s:s}", "verb", "join", "hostname", host,
		    "version", MUSTER_VERSION),
		&a->why) == -1)
		channel_abort(ch, &a->why);
}

static void
record(struct channel *ch, enum record_type type, const uint8_t *body,
    size_t size, void *arg)
{
	struct attempt *a = arg;

	if (type == REC_REPLY)
		a->reply = json_parse_object(body, size, size, &a->why);
	else if (type == REC_ERROR)
		proto_parse_error(body, size, &a->why);
	else
		err_set(&a->why, ERR_PROTOCOL,
		    "the master's answer is not understood");
	channel_close(ch);
}

static void
closed(struct channel *ch, const struct err *why, void *arg)
{
	struct attempt *a = arg;

	(void)ch;
	if (a->reply == NULL && a->why.code == ERR_NONE) {
		if (why != NULL)
			a->why = *why;
		else
			err_set(&a->why, ERR_UNREACHABLE,
			    "it closed the connection without an answer");
	}
	evtimer_del(a->deadline);
}

static void
overdue(evutil_socket_t fd, short what, void *arg)
{
	struct attempt *a = arg;

	(void)fd;
	(void)what;
	err_set(&a->why, ERR_TIMEOUT, "no answer within %d s", ANSWER_S);
	channel_abort(a->channel, &a->why);
}

static int
understand(json_t *reply, const struct channel_identity *id,
    struct admission *a, struct err *e)
{
	const char *authority, *cert;
	size_t n;

	if (json_get_string(reply, "authority", 2 * KEY_SIZE, &authority, e) ==
		-1 ||
	    json_get_string(reply, "cert", 2 * CERT_MAX, &cert, e) == -1)
		return -1;
	if (sodium_hex2bin(a->authority, sizeof(a->authority), authority,
		strlen(authority), NULL, &n, NULL) == -1 ||
	    n != sizeof(a->authority) ||
	    sodium_base642bin(a->cert, sizeof(a->cert), cert, strlen(cert),
		NULL, &a->cert_size, NULL,
		sodium_base64_VARIANT_ORIGINAL) == -1)
		return err_set(e, ERR_PROTOCOL,
		    "the master's answer is not understood");
	return cert_verify(a->cert, a->cert_size, a->authority, id->public,
	    clock_wall_ms() / 1000, &a->holder, e);
}
