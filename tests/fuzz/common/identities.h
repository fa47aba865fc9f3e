/*
 * identities.h: a node, an operator and a token that are the same in every
 * run of a fuzzer, so that its findings can be repeated.
 */
#ifndef FUZZ_IDENTITIES_H
#define FUZZ_IDENTITIES_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "common/net/handshake.h"

#define NOW_MS INT64_C(1800000000000)

static struct channel_identity server, client;
static struct token token;

static inline void
make_identity(struct channel_identity *us, uint8_t seed, enum cert_kind kind)
{
	uint8_t bytes[32], secret[crypto_sign_SECRETKEYBYTES];
	struct cert c = { .kind = kind,
		.name = "a",
		.serial = 1,
		.not_after_s = 10 * (NOW_MS / 1000) };
	struct err e;

	memset(bytes, 77, sizeof(bytes));
	crypto_sign_seed_keypair(us->authority, secret, bytes);
	memset(bytes, seed, sizeof(bytes));
	crypto_box_seed_keypair(us->public, us->secret, bytes);
	memcpy(c.key, us->public, KEY_SIZE);
	if (cert_sign(&c, secret, us->cert, &us->cert_size, &e) == -1)
		abort();
}

static inline void
make_identities(void)
{
	if (server.cert_size != 0)
		return;
	if (sodium_init() == -1)
		abort();
	make_identity(&server, 1, CERT_NODE);
	make_identity(&client, 2, CERT_OPERATOR);
	memcpy(token.master_key, server.public, KEY_SIZE);
}

static inline int
admit(const struct cert *peer, const struct addr *from, void *arg,
    struct err *e)
{
	(void)from;
	(void)arg;
	return peer->serial % 2 ? 0 : err_set(e, ERR_REVOKED, "revoked");
}

#endif
