/*
 * engine.h: one worker's HTTP: everything between its listeners and its
 * connections to nodes.  The worker process around it owns the event loop,
 * maps snapshots and the scoreboard, and says when to drain.
 */
#ifndef MUSTER_ENGINE_H
#define MUSTER_ENGINE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/err.h"
#include "proxyd/process/log_ring.h"
#include "proxyd/process/scoreboard.h"
#include "proxyd/process/snapshot.h"

struct event_base;
struct engine;
struct files;
struct tls_server;

/* The flags a worker's event base wants: no locks, changes in batches. */
struct event_base *engine_event_base(struct err *);

/* Borrowed: all must outlive the engine.  log may be NULL: no access log.
 * The snapshot reference is taken. */
struct engine *engine_new(struct event_base *, const struct scoreboard *,
    uint32_t slot, struct log_ring *log, struct snapshot *, struct err *);

/* Serves static files from now on; borrowed, must outlive the engine. */
void engine_serve_files(struct engine *, struct files *);

/* Takes TLS clients from now on; borrowed, must outlive the engine. */
int engine_serve_tls(struct engine *, struct tls_server *, struct err *);

/* Where bodies go that somebody is too slow for; fd is taken. */
int engine_spool(struct engine *, int fd, struct err *);

/* Ends every connection at once. */
void engine_free(struct engine *);

/* From now on new requests are served from this one; those under way finish
 * with theirs.  The reference is taken. */
void engine_snapshot(struct engine *, struct snapshot *);

/* Accepts from a listening socket (non-blocking; taken); `secure`: its clients
 * speak TLS.  When descriptors run out it pauses, and goes on when some are
 * free. */
int engine_listen(struct engine *, int fd, bool secure, struct err *);

/* Stops accepting and closes the listeners. */
void engine_unlisten(struct engine *);

/* Unlistens, tells clients to close after their next response, closes those
 * that stay idle.  What is still there at deadline_ms (monotonic) is cut. */
void engine_drain(struct engine *, int64_t deadline_ms);

/* Whether it drains and nothing is left.  idle_cb is called when it becomes
 * so. */
bool engine_idle(const struct engine *);
void engine_on_idle(struct engine *, void (*idle_cb)(void *), void *arg);

#endif
