/*
 * cert_cache.h: certificates as OpenSSL wants them, made from the image when
 * first asked for.
 *
 * They are kept by the id of their entry, so that a new image costs nothing
 * for what stayed the same.  At most CERT_CACHE_MAX are kept; the one not
 * used for the longest time gives way.
 */
#ifndef MUSTER_CERT_CACHE_H
#define MUSTER_CERT_CACHE_H

#include <openssl/ssl.h>

#include "common/base/err.h"
#include "proxyd/tls/cert_image.h"

#define CERT_CACHE_MAX 1024 /* about 15 KiB each */

struct cert_cache;

struct cert_cache *cert_cache_new(struct err *);
void cert_cache_free(struct cert_cache *);

/* Gives a connection the certificate, its chain and its key. */
int cert_cache_use(struct cert_cache *, const struct cert_image *,
    const struct cert_image_entry *, SSL *, struct err *);

/* Whether a certificate that a connection uses is this entry's. */
bool cert_cache_is(const struct cert_cache *, const struct cert_image_entry *,
    const X509 *);

#endif
