/*
 * admin.h: the master's two doors for administrators: the Unix socket
 * run/proxyd.sock, one JSON object a line each way, which clusterctl and the
 * nodeagent speak; and the status listener, plain HTTP for Prometheus and
 * people, on loopback.
 *
 * A request is {"ask": WORD, ...}; the words are a table in answer.c.  An
 * answer is {"ok": true, ...} or {"ok": false, "code", "text"}.
 */
#ifndef MUSTER_ADMIN_H
#define MUSTER_ADMIN_H

#include <event2/event.h>

#include "proxyd/admin/report.h"
#include "proxyd/process/listeners.h"

#define ADMIN_SOCKET   "proxyd.sock"
#define ADMIN_LINE_MAX 4096

struct admin;

/* socket_fd: from a predecessor, or -1: bind it at `path` (0600). */
struct admin *admin_new(struct event_base *, const struct scoreboard *,
    const struct notices *, const char *path, int socket_fd, struct err *);
void admin_free(struct admin *);

/* Both doors are a successor's from now on; answers under way go out. */
void admin_close(struct admin *);

/* To hand over in an upgrade, and to take from a predecessor (*l is emptied)
 * before the first admin_status_listen(). */
int admin_socket(const struct admin *);
const struct listeners *admin_status_listeners(const struct admin *);
void admin_take_status(struct admin *, struct listeners *l);

/* What is reported from now on.  The references are taken. */
void admin_apply(struct admin *, struct snapshot *);
void admin_certs(struct admin *, struct cert_image *);

/* Where /metrics and /status.json are served: addresses split by one space.
 * When one cannot be opened nothing has changed. */
int admin_status_listen(struct admin *, const char *list, struct err *);

/* What is asked for, wherever it is; the caller's, never NULL but when memory
 * is out. */
json_t *admin_answer(const struct report *, json_t *request);

#endif
