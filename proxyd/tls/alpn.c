/* alpn.c: see alpn.h. */
#include "proxyd/tls/alpn.h"

#include <string.h>

static const char ours[] = "http/1.1";

const uint8_t *
alpn_choose(const uint8_t *list, size_t size, uint8_t *len)
{
	for (size_t at = 0; at < size;) {
		uint8_t n = list[at++];

		if (n == 0 || n > size - at)
			return NULL;
		if (n == sizeof(ours) - 1 && memcmp(list + at, ours, n) == 0) {
			*len = n;
			return list + at;
		}
		at += n;
	}
	return NULL;
}
