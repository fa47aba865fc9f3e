/*
 * authority.h: the cluster's signing key (Ed25519) in a master's state
 * directory: authority.pub for everybody, authority.key in the clear or
 * sealed under a passphrase.
 *
 * Sealed: "muster-sealed-1\n", 16 bytes of salt, 24 of nonce, and a
 * crypto_secretbox of the 64-byte secret under Argon2id (MODERATE) of the
 * passphrase.  In the clear: the 64 bytes alone.
 */
#ifndef MUSTER_AUTHORITY_H
#define MUSTER_AUTHORITY_H

#include <stdint.h>

#include "common/base/err.h"
#include "common/base/state.h"
#include "common/net/cert.h"

#define AUTHORITY_SECRET_SIZE	 64 /* crypto_sign secret key */
#define AUTHORITY_PASSPHRASE_MAX 1024

/* A new pair; the caller wipes the secret. */
void authority_generate(uint8_t secret[AUTHORITY_SECRET_SIZE],
    uint8_t public[KEY_SIZE]);

/* Writes authority.pub and authority.key, replacing what is there.
 * passphrase NULL: in the clear (0600 like the sealed one). */
int authority_store(const struct state *,
    const uint8_t secret[AUTHORITY_SECRET_SIZE], const char *passphrase,
    struct err *);

/*
 * Reads the secret.  A sealed key without a passphrase is ERR_LOCKED, with a
 * wrong one ERR_DENIED.  Deriving takes about a second and 256 MiB.  A
 * secret that does not fit authority.pub is ERR_CORRUPT.
 */
int authority_load(const struct state *, const char *passphrase,
    uint8_t secret[AUTHORITY_SECRET_SIZE], struct err *);

/* The public key, on any enrolled machine. */
int authority_load_public(const struct state *, uint8_t public[KEY_SIZE],
    struct err *);

#endif
