/*
 * identity.h: the keys and certificates that a state directory holds: one
 * identity of the node (node.key, node.cert), one of an operator
 * (operator.key, operator.cert), both under authority.pub.
 */
#ifndef MUSTER_IDENTITY_H
#define MUSTER_IDENTITY_H

#include <stdint.h>

#include "common/base/err.h"
#include "common/base/state.h"
#include "common/net/cert.h"
#include "common/net/channel.h"

/*
 * The key pair of a kind, made and written (0600) if there is none yet, so
 * that a join that is tried again has the same key.  The rest of *id is
 * cleared: fit for channel_connect_join().
 */
int identity_key(const struct state *, enum cert_kind,
    struct channel_identity *id, struct err *);

/* Keeps what a join or a renewal brought.  authority NULL: unchanged. */
int identity_store(const struct state *, enum cert_kind,
    const uint8_t *authority, const uint8_t *cert, size_t cert_size,
    struct err *);

/*
 * All of an identity, and its certificate as *c (may be NULL).  ERR_LOCAL
 * says how to get one when it is not there; otherwise the errors of
 * cert_verify(), with everything filled for ERR_EXPIRED and ERR_NOT_YET.
 */
int identity_load(const struct state *, enum cert_kind, int64_t now_s,
    struct channel_identity *id, struct cert *c, struct err *);

/* Wipes the secret. */
void identity_wipe(struct channel_identity *);

#endif
