/* digest.c: see digest.h. */
#include "clusterctl/digest.h"

#include <errno.h>
#include <sys/types.h>
#include <unistd.h>

#define PIECE 65536

void
digest_init(struct digest *d)
{
	crypto_generichash_init(&d->state, NULL, 0, crypto_generichash_BYTES);
}

void
digest_add(struct digest *d, const void *bytes, size_t n)
{
	crypto_generichash_update(&d->state, bytes, n);
}

void
digest_end(struct digest *d, char hex[DIGEST_HEX + 1])
{
	unsigned char hash[crypto_generichash_BYTES];

	crypto_generichash_final(&d->state, hash, sizeof(hash));
	sodium_bin2hex(hex, DIGEST_HEX + 1, hash, sizeof(hash));
}

int
digest_fd(int fd, const char *name, char hex[DIGEST_HEX + 1], struct err *e)
{
	static unsigned char buf[PIECE];
	struct digest d;
	off_t at = 0;
	ssize_t n;

	digest_init(&d);
	while ((n = pread(fd, buf, sizeof(buf), at)) != 0) {
		if (n == -1 && errno == EINTR)
			continue;
		if (n == -1)
			return err_errno(e, ERR_LOCAL, "cannot read %s", name);
		digest_add(&d, buf, (size_t)n);
		at += n;
	}
	digest_end(&d, hex);
	return 0;
}
