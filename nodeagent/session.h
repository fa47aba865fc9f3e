/*
 * session.h: one client of this agent: its channel, and the one request that
 * is under way on it.
 *
 * A verb (verbs.h) either answers at once, or starts a task, which gets the
 * records that follow until it answers with one of session_reply(),
 * session_fail() and session_exit().
 */
#ifndef NODEAGENT_SESSION_H
#define NODEAGENT_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include <jansson.h>

#include "common/net/channel.h"

struct agent;
struct session;

/* Why a task loses its session: the client is gone; it may no longer; this
 * agent is being stopped. */
enum task_loss { LOST_CLIENT, LOST_RIGHTS, LOST_AGENT };

struct task_ops {
	/* STDIN, FILE, EOF, SIGNAL, RESIZE; NULL: ignored. */
	void (*record)(enum record_type, const uint8_t *body, size_t size,
	    void *task);
	/* There is room again for session_send(). */
	void (*drained)(void *task);
	/* The session goes, and must not be used any more. */
	void (*lost)(enum task_loss, void *task);
};

/* How the server keeps it. */
TAILQ_HEAD(session_list, session);

/* Takes an accepted socket.  NULL: closed, too little memory. */
struct session *session_new(struct agent *, int fd, const struct addr *from,
    const struct channel_policy *, struct session_list *half_open,
    struct session_list *open);

/* Ends it: a request under way fails with the err first. */
void session_end(struct session *, enum task_loss, const struct err *why);
/* Without another word to the peer; leaves the list at once. */
void session_abort(struct session *);

/* Ends it when its peer's certificate has expired or is revoked. */
void session_recheck(struct session *, int64_t now_s);

struct session *session_next(struct session *);

/* ---- for verbs -------------------------------------------------------- */

struct agent *session_agent(const struct session *);
/* What the journal knows the request under way by. */
const char *session_order(const struct session *);
struct channel *session_channel(const struct session *);
const struct cert *session_peer(const struct session *); /* NULL: joiner */

/* The request goes on as a task; both are borrowed until it ends. */
void session_run(struct session *, const struct task_ops *, void *task);

/* One record; false when the peer is slow: no more before `drained`. */
bool session_send(struct session *, enum record_type, const void *body,
    size_t size);
/* Whether session_send() would return true. */
bool session_has_room(const struct session *);

/* Each ends the request.  The first two take the object. */
void session_reply(struct session *, json_t *);
void session_exit(struct session *, json_t *);
void session_fail(struct session *, const struct err *);

/* Stops and goes on reading from the peer. */
void session_pause(struct session *);
void session_resume(struct session *);

#endif
