/* uuid.c: see uuid.h. */
#include "common/base/uuid.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <sodium.h>

void
uuid_make(char uuid[UUID_LEN + 1])
{
	uint8_t b[16];
	char hex[33];

	randombytes_buf(b, sizeof(b));
	b[6] = (uint8_t)((b[6] & 0x0f) | 0x40);
	b[8] = (uint8_t)((b[8] & 0x3f) | 0x80);
	sodium_bin2hex(hex, sizeof(hex), b, sizeof(b));
	snprintf(uuid, UUID_LEN + 1, "%.8s-%.4s-%.4s-%.4s-%.12s", hex, hex + 8,
	    hex + 12, hex + 16, hex + 20);
}

bool
uuid_valid(const char *uuid)
{
	if (strlen(uuid) != UUID_LEN)
		return false;
	for (size_t i = 0; i < UUID_LEN; i++) {
		if (i == 8 || i == 13 || i == 18 || i == 23) {
			if (uuid[i] != '-')
				return false;
		} else if (strchr("0123456789abcdef", uuid[i]) == NULL) {
			return false;
		}
	}
	return true;
}
