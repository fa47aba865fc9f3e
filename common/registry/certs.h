/*
 * certs.h: the certificates the authority has issued: serials, and which of
 * them are revoked.  A revoked serial stays listed until its certificate
 * would have expired.  The ledger itself is kept for ever (a few rows a year
 * and node): a clock that was wrong for a moment must not make a revocation
 * forgotten.
 */
#ifndef MUSTER_CERTS_H
#define MUSTER_CERTS_H

#include "common/base/name.h"
#include "common/base/secret.h"
#include "common/registry/registry.h"

enum cert_holder { HOLDER_NODE, HOLDER_OPERATOR };

/*
 * A new serial (never used before, never 0) for the node or operator of this
 * name, which gets `key` if it has none; with another key: ERR_CONFLICT.
 * One change, together with whatever the caller has begun.  What is issued is
 * revoked by removing its holder (nodes.h, operators.h).
 */
int certs_issue(struct registry *, enum cert_holder, const char *name,
    const uint8_t key[KEY_SIZE], int64_t not_after_s, uint64_t *serial,
    struct err *);

/* Those revoked and not expired at now_s. */
int certs_revoked(struct registry *, int64_t now_s,
    int (*fn)(uint64_t serial, int64_t not_after_s, void *arg), void *arg,
    struct err *);

#endif
