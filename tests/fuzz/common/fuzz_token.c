/*
 * fuzz_token.c: pasted tokens: as text, and (the checksum put right) as the
 * bytes inside.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "common/net/token.h"

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size);

/* What is read is written back as the very same text. */
static void
check(const char *text)
{
	char again[TOKEN_TEXT_MAX];
	struct token t;
	struct err e;

	if (token_decode(text, &t, &e) == -1)
		return;
	if (token_encode(&t, again, &e) == -1 || strcmp(text, again) != 0)
		abort();
}

int
LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	char text[1024] = "muster1.";
	uint8_t bytes[512], hash[16];

	if (size >= sizeof(bytes) - 4 || sodium_init() == -1)
		return 0;
	memcpy(text + 8, input, size);
	text[8 + size] = '\0';
	check(text);
	check(text + 8);
	memcpy(bytes, input, size);
	crypto_generichash(hash, sizeof(hash), bytes, size, NULL, 0);
	memcpy(bytes + size, hash, 4);
	sodium_bin2base64(text + 8, sizeof(text) - 8, bytes, size + 4,
	    sodium_base64_VARIANT_URLSAFE_NO_PADDING);
	check(text);
	return 0;
}
