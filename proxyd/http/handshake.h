/*
 * handshake.h: clients whose TLS handshake is under way.
 *
 * One of them costs as much as a hundred requests.  So each takes its turn:
 * between two looks at what has come in for everybody else, handshakes go on
 * for about a millisecond and no longer.  How many may be under way is
 * bounded, too; beyond that, who has made us wait longest has to go.
 */
#ifndef MUSTER_HANDSHAKE_H
#define MUSTER_HANDSHAKE_H

#include <stdbool.h>

#include "common/base/err.h"
#include "proxyd/tls/failure.h"

struct client;
struct engine;
struct handshake;
struct handshakes;
struct tls_server;

/* Both borrowed. */
struct handshakes *handshakes_new(struct engine *, struct tls_server *,
    struct err *);
void handshakes_free(struct handshakes *);

/* Makes it a client in CLIENT_HANDSHAKE, whose socket speaks TLS.  False: no
 * memory; nothing has changed. */
bool handshake_begin(struct client *);

/* Something came, or went out: its turn will come. */
void handshake_run(struct client *);

/* Ends it without success: counted, logged, the client's connection closed. */
void handshake_fail(struct client *, enum tls_failure);

/* The client is closed. */
void handshake_forget(struct client *);

#endif
