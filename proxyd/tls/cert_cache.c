/* cert_cache.c: see cert_cache.h. */
#include "proxyd/tls/cert_cache.h"

#include <sys/queue.h>
#include <stdlib.h>
#include <string.h>

#include "proxyd/tls/server_parts.h"

#define BUCKETS 1024 /* a power of two */

struct cached {
	uint8_t id[CERT_IMAGE_ID];
	X509 *leaf;
	STACK_OF(X509) * chain; /* behind the leaf */
	EVP_PKEY *key;
	LIST_ENTRY(cached) bucket;
	TAILQ_ENTRY(cached) used; /* the last one used first */
};

struct cert_cache {
	LIST_HEAD(, cached) buckets[BUCKETS];
	TAILQ_HEAD(used_list, cached) used;
	unsigned n;
};

static struct cached *find(const struct cert_cache *, const uint8_t *id);
static struct cached *make(const struct cert_image *,
    const struct cert_image_entry *, struct err *);
static void add(struct cert_cache *, struct cached *);
static void drop(struct cert_cache *, struct cached *);
static void cached_free(struct cached *);

struct cert_cache *
cert_cache_new(struct err *e)
{
	struct cert_cache *c = calloc(1, sizeof(*c));

	if (c == NULL) {
		err_set(e, ERR_LOCAL, "out of memory for certificates");
		return NULL;
	}
	TAILQ_INIT(&c->used);
	return c;
}

void
cert_cache_free(struct cert_cache *c)
{
	if (c == NULL)
		return;
	while (!TAILQ_EMPTY(&c->used))
		drop(c, TAILQ_FIRST(&c->used));
	free(c);
}

int
cert_cache_use(struct cert_cache *c, const struct cert_image *image,
    const struct cert_image_entry *entry, SSL *ssl, struct err *e)
{
	struct cached *it = find(c, entry->id);

	if (it == NULL) {
		if ((it = make(image, entry, e)) == NULL)
			return -1;
		add(c, it);
	} else if (it != TAILQ_FIRST(&c->used)) {
		TAILQ_REMOVE(&c->used, it, used);
		TAILQ_INSERT_HEAD(&c->used, it, used);
	}
	if (SSL_use_cert_and_key(ssl, it->leaf, it->key, it->chain, 1) != 1)
		return tls_err(e, ERR_CORRUPT, "a certificate is refused");
	return 0;
}

bool
cert_cache_is(const struct cert_cache *c, const struct cert_image_entry *entry,
    const X509 *leaf)
{
	const struct cached *it = find(c, entry->id);

	return it != NULL && it->leaf == leaf;
}

static unsigned
bucket_of(const uint8_t *id)
{
	uint32_t n;

	memcpy(&n, id, sizeof(n)); /* it is a hash */
	return n % BUCKETS;
}

static struct cached *
find(const struct cert_cache *c, const uint8_t *id)
{
	struct cached *it;

	LIST_FOREACH (it, &c->buckets[bucket_of(id)], bucket)
		if (memcmp(it->id, id, CERT_IMAGE_ID) == 0)
			return it;
	return NULL;
}

static X509 *
decode_certificate(const struct cert_image *image, struct cert_image_bytes der)
{
	const unsigned char *at = cert_image_at(image, der);

	return d2i_X509(NULL, &at, (long)der.size);
}

static int
decode(struct cached *it, const struct cert_image *image,
    const struct cert_image_entry *entry)
{
	const unsigned char *key = cert_image_at(image, entry->key);

	it->leaf = decode_certificate(image, entry->chain[0]);
	it->key = d2i_AutoPrivateKey(NULL, &key, (long)entry->key.size);
	it->chain = sk_X509_new_null();
	if (it->leaf == NULL || it->key == NULL || it->chain == NULL)
		return -1;
	for (uint32_t i = 1; i < entry->n_chain; i++) {
		X509 *cert = decode_certificate(image, entry->chain[i]);

		if (cert == NULL || sk_X509_push(it->chain, cert) == 0) {
			X509_free(cert);
			return -1;
		}
	}
	return 0;
}

static struct cached *
make(const struct cert_image *image, const struct cert_image_entry *entry,
    struct err *e)
{
	struct cached *it = calloc(1, sizeof(*it));

	if (it == NULL) {
		err_set(e, ERR_LOCAL, "out of memory for a certificate");
		return NULL;
	}
	memcpy(it->id, entry->id, sizeof(it->id));
	if (decode(it, image, entry) == 0)
		return it;
	tls_err(e, ERR_CORRUPT, "a certificate cannot be read");
	cached_free(it);
	return NULL;
}

static void
add(struct cert_cache *c, struct cached *it)
{
	if (c->n == CERT_CACHE_MAX)
		drop(c, TAILQ_LAST(&c->used, used_list));
	LIST_INSERT_HEAD(&c->buckets[bucket_of(it->id)], it, bucket);
	TAILQ_INSERT_HEAD(&c->used, it, used);
	c->n++;
}

/* Connections that use it have references of their own. */
static void
drop(struct cert_cache *c, struct cached *it)
{
	LIST_REMOVE(it, bucket);
	TAILQ_REMOVE(&c->used, it, used);
	c->n--;
	cached_free(it);
}

static void
cached_free(struct cached *it)
{
	X509_free(it->leaf);
	EVP_PKEY_free(it->key);
	sk_X509_pop_free(it->chain, X509_free);
	free(it);
}
