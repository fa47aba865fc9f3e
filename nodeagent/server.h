/*
 * server.h: the listening socket of an agent, its sessions, and what guards
 * them before authentication (limits.h).
 */
#ifndef NODEAGENT_SERVER_H
#define NODEAGENT_SERVER_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/addr.h"
#include "common/base/err.h"
#include "common/net/channel.h"

struct agent;
struct server;

/*
 * Binds and listens.  ERR_BUSY names an address that is taken.  may_widen: an
 * address that no interface has (the node is behind a NAT, or the network is
 * not up yet) becomes every address, with a warning.
 */
struct server *server_new(struct agent *, const struct addr *listen,
    bool may_widen, struct err *);
void server_free(struct server *); /* no session may be left */

/* Listens elsewhere from now on; sessions stay.  On failure it goes on where
 * it is. */
int server_move(struct server *, const struct addr *to, struct err *);

const struct addr *server_addr(const struct server *);
/* Authenticated ones. */
size_t server_n_sessions(const struct server *);

/* Ends sessions whose peer is no longer allowed: the roster has changed. */
void server_recheck(struct server *);

/* No new session; those under way are told why and go by and by. */
void server_stop(struct server *, const struct err *why);

/* Ends what is left of them; they are gone after a turn of the loop. */
void server_abort(struct server *);

#endif
