/* sni.c: see sni.h. */
#include "proxyd/tls/sni.h"

#include <sodium.h>

#define HOST_NAME 0

static size_t
number(const uint8_t *at)
{
	return (size_t)at[0] << 8 | at[1];
}

/* A list of one entry: its size; a type; a size; the name.  Of other types
 * none was ever defined. */
bool
sni_parse(const uint8_t *extension, size_t size, const uint8_t **name,
    size_t *len)
{
	if (size < 5 || number(extension) != size - 2 ||
	    extension[2] != HOST_NAME || number(extension + 3) != size - 5 ||
	    size - 5 > SNI_NAME_MAX || size == 5)
		return false;
	*name = extension + 5;
	*len = size - 5;
	return true;
}

void
sni_context(const uint8_t *extension, size_t size, uint8_t context[SNI_CONTEXT])
{
	uint8_t lower[SNI_NAME_MAX];
	const uint8_t *name = NULL;
	size_t len = 0;

	_Static_assert(SNI_CONTEXT == crypto_hash_sha256_BYTES, "a SHA-256");
	if (sni_parse(extension, size, &name, &len) && name[len - 1] == '.')
		len--;
	for (size_t i = 0; i < len; i++)
		lower[i] =
		    name[i] >= 'A' && name[i] <= 'Z' ? name[i] | 0x20 : name[i];
	crypto_hash_sha256(context, lower, len);
}
