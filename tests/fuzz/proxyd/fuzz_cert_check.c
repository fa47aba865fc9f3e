/*
 * fuzz_cert_check.c: any bytes as certificates, key and OCSP response, PEM or
 * DER.  What is taken has a key that belongs to it and names a site can have.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/custody/pkcs8.h"
#include "common/registry/site_certs.h"
#include "proxyd/tls/cert_check.h"
#include "proxyd/tls/cert_plan.h"

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size);

#define CHECK(what)              \
	do {                     \
		if (!(what))     \
			abort(); \
	} while (0)

#define NOW_S 1796050000 /* the corpus is in time then */

static void
check_taken(const struct cert_checked *c)
{
	uint8_t hash[PKCS8_HASH];
	struct err e;

	CHECK(c->kind < CERT_IMAGE_KINDS && c->n_chain > 0);
	CHECK(c->chain_size > 0 && c->not_after_s > NOW_S);
	CHECK(site_cert_check_names(c->names, SITE_CERT_NAMES_MAX, &e) == 0);
	CHECK(pkcs8_public_hash(c->key, c->key_size, hash));
	CHECK(memcmp(hash, c->spki, sizeof(hash)) == 0);
}

/* Up to the first byte 1: certificates; up to the next: the key; then the
 * OCSP response.  That byte is not in PEM. */
int
LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	const uint8_t *end = input + size, *key, *ocsp;
	struct cert_check_input in = { .now_s = NOW_S };
	struct cert_checked c;
	struct err e;

	key = memchr(input, 1, size);
	in.cert = (struct cert_check_file){ "c", input,
		(size_t)((key != NULL ? key : end) - input) };
	if (key != NULL) {
		key++;
		ocsp = memchr(key, 1, (size_t)(end - key));
		in.key = (struct cert_check_file){ "k", key,
			(size_t)((ocsp != NULL ? ocsp : end) - key) };
		if (ocsp != NULL)
			in.ocsp = (struct cert_check_file){ "o", ocsp + 1,
				(size_t)(end - ocsp - 1) };
	}
	if (cert_check(&in, &c, &e) == 0) {
		if (in.key.name != NULL)
			check_taken(&c);
		cert_checked_fini(&c);
	}
	return 0;
}
