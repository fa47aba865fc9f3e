/*
 * limit.h: what the limits of sites and clients mean for a request: whether
 * it is served at all (429 if not), and how fast its response goes out.
 *
 * A request uses a connection from the end of its head to the end of its
 * response, and a tunnel from there to its own end; a connection that waits
 * for the next request belongs to no site.  Bandwidth is of all bytes to the
 * client: heads, bodies, what comes down a tunnel.  The numbers, and what is
 * used of them, are shared by all workers (proxyd/limits/).
 */
#ifndef MUSTER_LIMIT_H
#define MUSTER_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

#include "proxyd/limits/bucket.h"
#include "proxyd/process/why.h"

struct client;
struct engine;
struct exchange;

/* What an exchange, or the tunnel that it became, uses. */
struct limited {
	uint32_t site, client; /* rows; while held */
	uint32_t kept;	       /* bytes it may send without asking again */
	bool holds_site, holds_client;
	bool slowed, slowed_client; /* and counted as such */
};

/* How many bytes may go out, for as long as one callback runs. */
struct leave {
	uint64_t bytes; /* UINT64_MAX: as many as it likes; the rest is unset */
	bool full;	/* as many as are given at once: ask again soon */
	bool by_client; /* his own limit is what there is no more of */
	struct bucket_rate site, client;
};

/* May it go on?  WHY_NONE, or why not; then x->retry_s is set. */
enum why limit_request(struct exchange *);

/* What it used is free; nothing may be held. */
void limit_end(struct engine *, struct limited *);

/* Asks for leave to send to a client; `account` is the site's row. */
void limit_ask(struct client *, struct limited *, uint32_t account,
    struct leave *);
/* `left` of it were not sent. */
void limit_back(struct client *, struct limited *, const struct leave *,
    uint64_t left);
/* All were sent, and there is more: runs the client again. */
void limit_wait(struct client *, struct limited *, const struct leave *);
/* The client is gone. */
void limit_forget(struct client *);
/* The engine's timer for those that wait. */
void limit_tick(int fd, short what, void *engine);

/* The same for an exchange's response: sets how much x->down may write, and
 * counts what it wrote. */
void limit_ask_down(struct exchange *, struct leave *);
void limit_back_down(struct exchange *, const struct leave *);

/* proxy.max_client_connections: counts a connection with its address until it
 * is closed.  False: it has too many.  Once the peer is known. */
bool limit_connection(struct client *);

#endif
