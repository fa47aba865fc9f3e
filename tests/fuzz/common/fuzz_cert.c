/*
 * fuzz_cert.c: certificates: as they come (the signature will not fit), and
 * with a good signature of the authority over whatever the input says.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "common/net/cert.h"

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	static const uint8_t seed[crypto_sign_SEEDBYTES] = { 1 };
	uint8_t message[14 + CERT_MAX] = "muster-cert-1\n", bytes[CERT_MAX];
	uint8_t pub[KEY_SIZE], secret[crypto_sign_SECRETKEYBYTES];
	struct cert c;
	struct err e;
	size_t n;

	if (cert_verify(input, size, seed, NULL, 0, &c, &e) == 0)
		abort();
	if (size > CERT_JSON_MAX || sodium_init() == -1)
		return 0;
	crypto_sign_seed_keypair(pub, secret, seed);
	memcpy(message + 14, input, size);
	crypto_sign_detached(bytes, NULL, message, 14 + size, secret);
	memcpy(bytes + crypto_sign_BYTES, input, size);
	c.serial = 0;
	if (cert_verify(bytes, crypto_sign_BYTES + size, pub, NULL, 1800000000,
		&c, &e) == -1 &&
	    e.code != ERR_EXPIRED && e.code != ERR_NOT_YET)
		return 0;
	/* What is read can be signed again, unless escapes made it short. */
	if (c.serial == 0 ||
	    (cert_sign(&c, secret, bytes, &n, &e) == -1 &&
		strstr(e.text, "fewer grants") == NULL))
		abort();
	cert_grants(&c, "exec", NULL, 0);
	return 0;
}
