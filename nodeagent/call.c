/* call.c: see call.h. */
#include "nodeagent/call.h"

#include <stdlib.h>

#include "common/base/json.h"

/* A call lives as long as its channel: channel_closed() frees it. */
struct call {
	struct channel *channel;
	json_t *request; /* until it is sent */
	json_t *reply;
	struct err why; /* code 0: none */
	struct event *deadline;
	const struct call_handlers *on; /* NULL: cancelled */
	void *arg;
};

static void channel_opened(struct channel *, void *arg);
static void channel_record(struct channel *, enum record_type,
    const uint8_t *body, size_t size, void *arg);
static void channel_closed(struct channel *, const struct err *, void *arg);
static void call_overdue(evutil_socket_t, short, void *);
static void call_wait(struct call *);
static void call_free(struct call *);

static const struct channel_handlers call_channel = {
	.opened = channel_opened,
	.record = channel_record,
	.closed = channel_closed,
};

struct call *
call_start(struct event_base *base, const struct addr *to,
    const struct channel_identity *id, const uint8_t *node_key,
    const struct token *token, json_t *request, const struct call_handlers *on,
    void *arg, struct err *e)
{
	struct call *c = calloc(1, sizeof(*c));

	if (c == NULL || request == NULL ||
	    (c->deadline = evtimer_new(base, call_overdue, c)) == NULL) {
		err_set(e, ERR_LOCAL, "out of memory for a call");
		json_decref(request);
		free(c);
		return NULL;
	}
	c->request = request;
	c->on = on;
	c->arg = arg;
	c->channel = token != NULL ? channel_connect_join(base, to, id, token,
					 CALL_CONNECT_MS, &call_channel, c, e) :
				     channel_connect(base, to, id, node_key,
					 CALL_CONNECT_MS, &call_channel, c, e);
	if (c->channel == NULL) {
		call_free(c);
		return NULL;
	}
	return c;
}

void
call_cancel(struct call *c)
{
	if (c == NULL)
		return;
	c->on = NULL;
	channel_abort(c->channel, NULL);
}

static void
channel_opened(struct channel *ch, void *arg)
{
	struct call *c = arg;
	json_t *request = c->request;

	if (c->on == NULL)
		return;
	if (c->on->opened != NULL &&
	    c->on->opened(channel_skew_ms(ch), c->arg, &c->why) == -1) {
		channel_abort(ch, &c->why);
		return;
	}
	c->request = NULL;
	if (channel_send_json(ch, REC_REQUEST, request, &c->why) == -1)
		channel_abort(ch, &c->why);
	else
		call_wait(c);
}

static void
channel_record(struct channel *ch, enum record_type type, const uint8_t *body,
    size_t size, void *arg)
{
	struct call *c = arg;

	call_wait(c);
	switch (type) {
	case REC_FILE:
		if (c->on == NULL || c->on->file == NULL ||
		    c->on->file(body, size, c->arg, &c->why) == 0)
			return;
		break;
	case REC_EOF:
		return;
	case REC_REPLY:
		c->reply = json_parse_object(body, size, size, &c->why);
		break;
	case REC_ERROR:
		proto_parse_error(body, size, &c->why);
		break;
	default:
		err_set(&c->why, ERR_PROTOCOL,
		    "unexpected record of type %d in the answer", (int)type);
		break;
	}
	channel_close(ch);
}

static void
channel_closed(struct channel *ch, const struct err *why, void *arg)
{
	struct call *c = arg;

	if (c->reply == NULL && c->why.code == ERR_NONE) {
		if (why != NULL)
			c->why = *why;
		else
			err_set(&c->why, ERR_UNREACHABLE,
			    "the connection was closed without an answer");
	}
	if (c->on != NULL)
		c->on->done(c->reply, c->reply != NULL ? NULL : &c->why,
		    channel_skew_ms(ch), c->arg);
	call_free(c);
}

static void
call_overdue(evutil_socket_t fd, short what, void *arg)
{
	struct call *c = arg;

	(void)fd;
	(void)what;
	err_set(&c->why, ERR_TIMEOUT, "no answer within %d s",
	    CALL_ANSWER_MS / 1000);
	channel_abort(c->channel, &c->why);
}

static void
call_wait(struct call *c)
{
	static const struct timeval limit = { CALL_ANSWER_MS / 1000, 0 };

	evtimer_add(c->deadline, &limit);
}

static void
call_free(struct call *c)
{
	json_decref(c->request);
	json_decref(c->reply);
	event_free(c->deadline);
	free(c);
}
