/* fuzz_pkcs8.c: any bytes as a private key. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/custody/pkcs8.h"

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	uint8_t hash[PKCS8_HASH], again[PKCS8_HASH];
	uint8_t *copy = malloc(size + 1); /* that an overrun shows */
	bool first;

	memcpy(copy, input, size);
	first = pkcs8_public_hash(copy, size, hash);
	if (first != pkcs8_public_hash(input, size, again) ||
	    (first && memcmp(hash, again, sizeof(hash)) != 0))
		abort();
	free(copy);
	return 0;
}
