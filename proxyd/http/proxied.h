/*
 * proxied.h: clients whom another balancer passes on to us, and what its
 * PROXY header tells of them.
 *
 * Whoever is to send one (proxy.proxy_protocol) sends it first, before TLS
 * too.  Not a byte behind it is taken from the socket, and no buffer is held
 * while it is awaited.  The address in it becomes the client's peer: for
 * logs, limits, hash:ip, trust, everything.
 */
#ifndef MUSTER_PROXIED_H
#define MUSTER_PROXIED_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/addr.h"

struct client;
struct engine;

/* What was told beside the client's address. */
struct proxied {
	struct addr to; /* where it had connected; len 0: not told */
	uint8_t id_len;
	uint8_t host_len;
	char text[]; /* its request id; the host it asked for in TLS */
};

/* Whether a peer begins with a header. */
bool proxied_expected(const struct engine *, const struct addr *peer);

/* Reads it.  True: what comes next is the client's own; false: it is not all
 * there yet, or was wrong and the client is closed. */
bool proxied_read(struct client *);

/* Closes a client whose header is wrong, or late. */
void proxied_refuse(struct client *);

#endif
