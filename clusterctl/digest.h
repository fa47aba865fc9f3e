/*
 * digest.h: BLAKE2b-256 of files, as hexadecimal: how both ends of a copy
 * tell equal content.
 */
#ifndef CLUSTERCTL_DIGEST_H
#define CLUSTERCTL_DIGEST_H

#include <sodium.h>
#include <stddef.h>

#include "common/base/err.h"

#define DIGEST_HEX (2 * crypto_generichash_BYTES)

struct digest {
	crypto_generichash_state state;
};

void digest_init(struct digest *);
void digest_add(struct digest *, const void *bytes, size_t n);
void digest_end(struct digest *, char hex[DIGEST_HEX + 1]);

/* Of all that fd holds from its beginning; its offset stays. */
int digest_fd(int fd, const char *name, char hex[DIGEST_HEX + 1], struct err *);

#endif
