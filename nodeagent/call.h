/*
 * call.h: one request of this agent to another: connect, ask, take the
 * answer, close.
 */
#ifndef NODEAGENT_CALL_H
#define NODEAGENT_CALL_H

#include <stddef.h>
#include <stdint.h>

#include <event2/event.h>
#include <jansson.h>

#include "common/base/addr.h"
#include "common/base/err.h"
#include "common/net/channel.h"

#define CALL_CONNECT_MS 5000
#define CALL_ANSWER_MS	30000 /* between one record and the next */

struct call;

/* Calls from the event loop.  `done` comes exactly once and last, with the
 * REPLY's object (borrowed) or with why there is none. */
struct call_handlers {
	/* Before the request goes out; NULL: no question.  -1 ends the call
	 * with the err. */
	int (*opened)(int64_t skew_ms, void *arg, struct err *);
	/* Bytes of a FILE record; NULL: the verb sends none.  -1 ends the
	 * call with the err. */
	int (*file)(const uint8_t *bytes, size_t size, void *arg, struct err *);
	void (*done)(json_t *reply, const struct err *why, int64_t skew_ms,
	    void *arg);
};

/* Takes `request` (also on failure), an object with "verb".  token not NULL:
 * a join, and node_key is not used.  NULL on failure, without `done`. */
struct call *call_start(struct event_base *, const struct addr *,
    const struct channel_identity *, const uint8_t *node_key,
    const struct token *token, json_t *request, const struct call_handlers *,
    void *arg, struct err *);

/* Ends it without `done`.  NULL is legal. */
void call_cancel(struct call *);

#endif
