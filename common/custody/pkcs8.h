/*
 * pkcs8.h: which public key a private one belongs to, read from its encoding
 * alone: a thousandth of what it takes to have OpenSSL load it, which counts
 * with ten thousand keys at a start; and for programs without OpenSSL.
 */
#ifndef MUSTER_PKCS8_H
#define MUSTER_PKCS8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PKCS8_HASH 32

/*
 * The SHA-256 of the SubjectPublicKeyInfo of an RSA or EC key in PKCS #8, not
 * encrypted (RFC 5208, 8017, 5915).  False: damaged, of another type, or an
 * EC key that does not say its public half.
 */
bool pkcs8_public_hash(const uint8_t *der, size_t size,
    uint8_t hash[PKCS8_HASH]);

#endif
