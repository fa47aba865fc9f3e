/* journal.c: see journal.h. */
#include "nodeagent/journal.h"

#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "common/audit/audit.h"
#include "common/base/io.h"
#include "common/base/log.h"
#include "nodeagent/agent.h"
#include "nodeagent/durable.h"
#include "nodeagent/session.h"

#define SYNC_MS 1000

struct journal {
	struct agent *agent;
	struct event *sync;	 /* pending: something is unsynced */
	struct durable *durable; /* NULL: not on this system */
	char path[PATH_MAX];
	bool failing; /* said so already */
};

/* What of a request belongs in the log: never the environment, which is
 * where people put passwords. */
static const char *const request_fields[] = {
	"typed",
	"argv",
	"shell",
	"user",
	"cwd",
	"path",
	"target",
	"files",
	"name",
	"address",
	"on_disconnect",
};

static json_t *event_of(const char *event, const struct session *,
    const char *verb);
static void append(struct journal *, json_t *event);
static void sync_due(evutil_socket_t, short, void *);
static void sync_here(struct journal *);
static void sync_done(const struct err *why, void *arg);

struct journal *
journal_new(struct agent *a, struct err *e)
{
	struct journal *j = calloc(1, sizeof(*j));
	struct err none;

	if (j == NULL ||
	    (j->sync = evtimer_new(a->base, sync_due, j)) == NULL) {
		err_set(e, ERR_LOCAL, "out of memory for the audit log");
		free(j);
		return NULL;
	}
	j->agent = a;
	state_path(&a->state, STATE_AUDIT_NODE, j->path);
	j->durable = durable_new(a->base, sync_done, j, &none);
	if (j->durable == NULL)
		log_debug("audit log: %s", none.text);
	return j;
}

void
journal_free(struct journal *j)
{
	struct err e;

	if (j == NULL)
		return;
	if (evtimer_pending(j->sync, NULL) && audit_sync(j->path, &e) == -1)
		log_error("audit log: %s", e.text);
	durable_free(j->durable);
	event_free(j->sync);
	free(j);
}

void
journal_begin(struct journal *j, const struct session *s, const char *verb,
    json_t *request, char order[JOURNAL_ORDER_LEN + 1])
{
	json_t *event = event_of("start", s, verb);
	uint8_t id[JOURNAL_ORDER_LEN / 2];

	randombytes_buf(id, sizeof(id));
	sodium_bin2hex(order, JOURNAL_ORDER_LEN + 1, id, sizeof(id));
	json_object_set_new(event, "order", json_string(order));
	for (size_t i = 0; i < nitems(request_fields); i++) {
		json_t *v = json_object_get(request, request_fields[i]);

		if (v != NULL)
			json_object_set(event, request_fields[i], v);
	}
	append(j, event);
}

void
journal_end(struct journal *j, const char *order, json_t *how,
    const struct err *why)
{
	json_t *event = json_pack("{s:s, s:s, s:s}", "event", "end", "order",
	    order, "result", why != NULL ? err_word(why->code) : "ok");

	if (why != NULL)
		json_object_set_new(event, "text", json_string(why->text));
	if (how != NULL)
		json_object_update_missing(event, how);
	append(j, event);
}

void
journal_lost(struct journal *j, const char *order)
{
	append(j, json_pack("{s:s, s:s}", "event", "lost", "order", order));
}

void
journal_note(struct journal *j, const struct session *s, const char *verb,
    json_t *about)
{
	json_t *event = event_of(verb, s, verb);
	json_t *name = json_object_get(about, "name"); /* borrowed */

	if (name != NULL)
		json_object_set(event, "name", name);
	append(j, event);
}

void
journal_denied(struct journal *j, const struct session *s, const char *verb,
    const struct err *why)
{
	json_t *event = event_of("denied", s, verb);

	json_object_set_new(event, "text", json_string(why->text));
	append(j, event);
}

static json_t *
event_of(const char *event, const struct session *s, const char *verb)
{
	const struct cert *peer = session_peer(s);
	char from[ADDR_TEXT_MAX];

	addr_format(channel_addr(session_channel(s)), from);
	return json_pack("{s:s, s:s, s:s, s:s, s:s}", "event", event, "verb",
	    verb, "who", peer != NULL ? peer->name : "", "kind",
	    peer == NULL		    ? "joiner" :
		peer->kind == CERT_OPERATOR ? "operator" :
					      "node",
	    "from", from);
}

/* A log that cannot be written does not stop orders: the order that frees a
 * full disk comes this way too.  The agent's own log says it once. */
static void
append(struct journal *j, json_t *event)
{
	static const struct timeval soon = { SYNC_MS / 1000,
		SYNC_MS % 1000 * 1000 };
	struct err e;

	if (audit_append_soon(j->path, event, &e) == -1) {
		if (!j->failing)
			log_error("audit log: %s", e.text);
		j->failing = true;
		return;
	}
	j->failing = false;
	if (!evtimer_pending(j->sync, NULL))
		evtimer_add(j->sync, &soon);
}

static void
sync_due(evutil_socket_t fd, short what, void *arg)
{
	static const struct timeval later = { SYNC_MS / 1000,
		SYNC_MS % 1000 * 1000 };
	struct journal *j = arg;
	struct err e;

	(void)fd;
	(void)what;
	if (j->durable == NULL)
		sync_here(j);
	else if (durable_is_busy(j->durable))
		evtimer_add(j->sync, &later);
	else if (durable_begin(j->durable, j->path, &e) == -1) {
		log_debug("%s", e.text);
		sync_here(j);
	}
}

/* Where the kernel does not do it for us, the loop waits for the disk. */
static void
sync_here(struct journal *j)
{
	struct err e;

	if (audit_sync(j->path, &e) == -1)
		sync_done(&e, j);
}

static void
sync_done(const struct err *why, void *arg)
{
	struct journal *j = arg;

	if (why == NULL)
		return;
	if (!j->failing)
		log_error("audit log: %s", why->text);
	j->failing = true;
}
