/*
 * cert.h: certificates: who holds a static key and what it may do, as exact
 * bytes under the authority's Ed25519 signature (RFC 8032).
 *
 * Encoded: 64 bytes of signature, then a JSON object of at most
 * CERT_JSON_MAX bytes.  The signature covers the label "muster-cert-1\n" and
 * the JSON as it stands.  Nothing is parsed before the signature is verified.
 */
#ifndef MUSTER_CERT_H
#define MUSTER_CERT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/base/grant.h"
#include "common/base/name.h"
#include "common/base/secret.h"

#define CERT_JSON_MAX	1200
#define CERT_MAX	(64 + CERT_JSON_MAX)
#define CERT_GRANTS_MAX GRANTS_MAX
#define CERT_GRANT_LEN	GRANT_LEN

enum cert_kind { CERT_NODE, CERT_OPERATOR };

struct cert {
	enum cert_kind kind;
	char name[NAME_MAX_LEN + 1];
	uint8_t key[KEY_SIZE]; /* the holder's X25519 static key */
	uint64_t serial;
	int64_t not_before_s, not_after_s; /* wall seconds */
	size_t n_grants;
	char grants[CERT_GRANTS_MAX][CERT_GRANT_LEN + 1]; /* verb[:role] */
};

/* Signs; fills out[CERT_MAX] and *size.  authority_secret: 64 bytes
 * (crypto_sign secret key). */
int cert_sign(const struct cert *, const uint8_t *authority_secret,
    uint8_t *out, size_t *size, struct err *);

/*
 * Verifies signature, form, and that it is for `key` (skipped when NULL);
 * then its time: ERR_EXPIRED and ERR_NOT_YET (beyond PROTO_SKEW_S) are told
 * apart from ERR_STRANGER (no signature of this authority).  *c is filled
 * also when the error is one of time.
 */
int cert_verify(const uint8_t *bytes, size_t size,
    const uint8_t authority_pub[KEY_SIZE], const uint8_t *key, int64_t now_s,
    struct cert *c, struct err *);

/* The last part of it alone, as time goes on. */
int cert_check_time(const struct cert *, int64_t now_s, struct err *);

/*
 * Whether a grant "verb" or "verb:role" or "*" or "*:role" covers the verb
 * on a node with these roles.
 */
bool cert_grants(const struct cert *, const char *verb,
    const char *const *roles, size_t n_roles);

/* The short fingerprint that both ends show: "k7qm-2xpa-91fd-h3zt". */
#define FINGERPRINT_LEN 19
void key_fingerprint(const uint8_t key[KEY_SIZE],
    char buf[FINGERPRINT_LEN + 1]);

#endif
