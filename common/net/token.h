/*
 * token.h: what `clusterctl enroll` prints: "muster1." and base64url.  It
 * holds where the master is, its static key, a public id and a secret.
 */
#ifndef MUSTER_TOKEN_H
#define MUSTER_TOKEN_H

#include <stdint.h>

#include "common/base/addr.h"
#include "common/base/err.h"
#include "common/net/cert.h"

#define TOKEN_TEXT_MAX	  320
#define TOKEN_ADDRS_MAX	  4
#define TOKEN_SECRET_SIZE 16

struct token {
	enum cert_kind kind;
	int64_t not_after_s;
	uint8_t id[TOKEN_ID_SIZE];
	uint8_t secret[TOKEN_SECRET_SIZE];
	uint8_t master_key[KEY_SIZE];
	size_t n_addrs;
	struct addr addrs[TOKEN_ADDRS_MAX];
};

int token_encode(const struct token *, char text[TOKEN_TEXT_MAX], struct err *);

/* A cut or mistyped token is told by its checksum. */
int token_decode(const char *text, struct token *, struct err *);

/* The pre-shared key of a join (IKpsk2), and all that the registry stores:
 * BLAKE2b-256 of the secret, keyed with a label. */
void token_psk(const uint8_t secret[TOKEN_SECRET_SIZE], uint8_t psk[KEY_SIZE]);

#endif
