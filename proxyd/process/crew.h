/*
 * crew.h: the workers of a master: as many as wanted, replaced at once when
 * one dies, drained when one is no longer wanted.
 *
 * A worker that serves has a position, 0 to the wanted number less one,
 * which names its listening sockets.  One that drains has none.
 */
#ifndef MUSTER_CREW_H
#define MUSTER_CREW_H

#include <sys/types.h>
#include <stdbool.h>
#include <stdint.h>

#include <event2/event.h>

#include "common/base/err.h"
#include "proxyd/process/listeners.h"
#include "proxyd/process/log_writer.h"
#include "proxyd/process/scoreboard.h"
#include "proxyd/tls/ticket_keys.h"

#define CREW_MAX 256 /* positions */

struct crew;

/* Borrows all of it.  on_change is called when a worker gets ready or ends,
 * and with an err when one cannot start. */
struct crew *crew_new(struct event_base *, struct scoreboard *,
    const struct listeners *, struct log_writer *,
    void (*on_change)(const struct err *, void *arg), void *arg, struct err *);
void crew_free(struct crew *);

/* What new workers start with and present ones switch to.  fd is taken. */
void crew_snapshot(struct crew *, int fd, int64_t revision);

/* The same of a certificate image. */
void crew_certs(struct crew *, int fd);
/* The same of the keys of session tickets; copied. */
void crew_tickets(struct crew *, const struct ticket_keys *);

/* The account for workers started from now on. */
void crew_set_user(struct crew *, const char *user);

/* The directory of their spool files, for workers started from now on. */
void crew_set_spool(struct crew *, const char *dir);

/* Starts what is missing, drains what is too many; `relisten`: the listeners
 * have changed.  Needs a snapshot. */
void crew_resize(struct crew *, unsigned n_workers, int64_t drain_ms,
    bool relisten);

/* Drains all and replaces none. */
void crew_drain(struct crew *, int64_t drain_ms);

/* Sends SIGKILL to whoever is still there. */
void crew_kill(struct crew *);

/* From the reaper: whether the process was one of ours. */
bool crew_reaped(struct crew *, pid_t, int wait_status);

/* Whether every position is served; whether nobody is left. */
bool crew_is_serving(const struct crew *);
bool crew_is_empty(const struct crew *);

#endif
