/*
 * server.h: what one worker speaks TLS with: the profiles' contexts, the
 * certificates, the ticket keys.  OpenSSL is used in this folder only, and
 * first when a listener asks for it.
 *
 * No state of a session is kept here: sessions live in tickets, which every
 * worker can open.  Certificates are parsed when first asked for and kept in
 * bounded number (cert_cache.h); ten thousand of them cost no context each.
 */
#ifndef MUSTER_TLS_SERVER_H
#define MUSTER_TLS_SERVER_H

#include "common/base/err.h"
#include "proxyd/process/snapshot.h"
#include "proxyd/tls/cert_image.h"
#include "proxyd/tls/ticket_keys.h"

struct tls_server;

struct tls_server *tls_server_new(struct err *);
/* No connection may be left. */
void tls_server_free(struct tls_server *);

/* Makes ready for connections; does nothing the second time. */
int tls_server_open(struct tls_server *, struct err *);

/* For handshakes from now on.  Connections keep what they began with. */
void tls_server_profile(struct tls_server *, enum snap_tls_profile);
/* The reference is taken. */
void tls_server_certs(struct tls_server *, struct cert_image *);
void tls_server_tickets(struct tls_server *, const struct ticket_keys *);

#endif
