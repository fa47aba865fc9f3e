/* cert_check.c: see cert_check.h. */
#include "proxyd/tls/cert_check.h"

#include <stdlib.h>
#include <string.h>

#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include "common/base/io.h"
#include "common/custody/pkcs8.h"
#include "proxyd/tls/cert_chain.h"

#define RSA_MIN 2048
#define RSA_MAX 8192 /* more takes a core for a while, each handshake */

/* What browsers take, with its size. */
static const struct {
	const char *group;
	int bits;
} curves[] = {
	{ "prime256v1", 256 },
	{ "secp384r1", 384 },
	{ "secp521r1", 521 },
};

static int check_all(const struct cert_check_input *, STACK_OF(X509) *,
    struct cert_checked *, struct err *);
static int check_strength(X509 *, const char *file, struct cert_checked *,
    struct err *);
static int take_key(const struct cert_check_input *, STACK_OF(X509) *,
    struct cert_checked *, struct err *);
static EVP_PKEY *parse_key(const struct cert_check_file *, struct err *);
static int ask_passphrase(char *buf, int size, int writing, void *asked);
static int refuse_key(const struct cert_check_input *, STACK_OF(X509) *,
    EVP_PKEY *, struct err *);
static int export_key(EVP_PKEY *, const char *file, struct cert_checked *,
    struct err *);
static int export_chain(STACK_OF(X509) *, struct cert_checked *, struct err *);
static int export_staple(const struct cert_check_file *, struct cert_checked *,
    struct err *);
static int hash_public(EVP_PKEY *, uint8_t spki[CERT_CHECK_HASH]);

int
cert_check(const struct cert_check_input *in, struct cert_checked *out,
    struct err *e)
{
	struct cert_checked c = { .warnings = json_array() };
	STACK_OF(X509) *chain = sk_X509_new_null();
	int rv;

	if (chain == NULL || c.warnings == NULL)
		rv = err_set(e, ERR_LOCAL, "out of memory");
	else
		rv = check_all(in, chain, &c, e);
	sk_X509_pop_free(chain, X509_free);
	ERR_clear_error();
	if (rv == 0)
		*out = c;
	else
		cert_checked_fini(&c);
	return rv;
}

void
cert_checked_fini(struct cert_checked *c)
{
	OPENSSL_free(c->chain);
	OPENSSL_clear_free(c->key, c->key_size);
	OPENSSL_free(c->ocsp);
	free(c->names);
	json_decref(c->warnings);
	memset(c, 0, sizeof(*c));
}

static int
check_all(const struct cert_check_input *in, STACK_OF(X509) * chain,
    struct cert_checked *c, struct err *e)
{
	const char *file = in->cert.name;
	X509 *leaf;

	if (cert_chain_read(&in->cert, chain, e) == -1 ||
	    (in->chain.name != NULL &&
		cert_chain_read(&in->chain, chain, e) == -1))
		return -1;
	leaf = sk_X509_value(chain, 0);
	if (check_strength(leaf, file, c, e) == -1 ||
	    (in->key.name != NULL && take_key(in, chain, c, e) == -1) ||
	    cert_chain_check(chain, file, in->now_s, c->warnings, e) == -1 ||
	    cert_chain_names(leaf, file, &c->names, e) == -1 ||
	    (in->ocsp.name != NULL &&
		(cert_chain_staple(chain, &in->ocsp, in->now_s,
		     &c->ocsp_until_s, e) == -1 ||
		    export_staple(&in->ocsp, c, e) == -1)))
		return -1;
	c->not_before_s = cert_chain_time(X509_get0_notBefore(leaf));
	c->not_after_s = cert_chain_time(X509_get0_notAfter(leaf));
	c->self_signed = X509_self_signed(leaf, 0) == 1;
	cert_chain_subject(leaf, c->subject, sizeof(c->subject));
	cert_chain_issuer(leaf, c->issuer, sizeof(c->issuer));
	return export_chain(chain, c, e);
}

static int
check_strength(X509 *leaf, const char *file, struct cert_checked *c,
    struct err *e)
{
	EVP_PKEY *key = X509_get0_pubkey(leaf);
	char group[64] = "";
	size_t len;

	if (key == NULL || hash_public(key, c->spki) == -1)
		return err_set(e, ERR_USAGE,
		    "the public key of the certificate in %.100s is damaged",
		    file);
	c->bits = EVP_PKEY_get_bits(key);
	if (EVP_PKEY_get_base_id(key) == EVP_PKEY_RSA) {
		c->kind = CERT_IMAGE_RSA;
		if (c->bits >= RSA_MIN && c->bits <= RSA_MAX)
			return 0;
		return err_set(e, ERR_USAGE,
		    "the RSA key of the certificate in %.100s has %d bits; "
		    "%d to %d are taken",
		    file, c->bits, RSA_MIN, RSA_MAX);
	}
	c->kind = CERT_IMAGE_ECDSA;
	if (EVP_PKEY_get_base_id(key) == EVP_PKEY_EC)
		EVP_PKEY_get_group_name(key, group, sizeof(group), &len);
	for (size_t i = 0; i < nitems(curves); i++)
		if (strcmp(curves[i].group, group) == 0)
			return 0;
	return err_set(e, ERR_USAGE,
	    "the certificate in %.100s is for a key of type %.30s; browsers "
	    "take RSA, and ECDSA with P-256, P-384 or P-521",
	    file,
	    *group != '\0' ? group :
		EVP_PKEY_get0_type_name(key) != NULL ?
			     EVP_PKEY_get0_type_name(key) :
			     "unknown");
}

static int
take_key(const struct cert_check_input *in, STACK_OF(X509) * chain,
    struct cert_checked *c, struct err *e)
{
	EVP_PKEY *key = parse_key(&in->key, e);
	int rv;

	if (key == NULL)
		return -1;
	if (EVP_PKEY_eq(key, X509_get0_pubkey(sk_X509_value(chain, 0))) != 1)
		rv = refuse_key(in, chain, key, e);
	else
		rv = export_key(key, in->key.name, c, e);
	EVP_PKEY_free(key);
	return rv;
}

static EVP_PKEY *
parse_key(const struct cert_check_file *f, struct err *e)
{
	const uint8_t *at = f->at;
	EVP_PKEY *key = NULL;
	bool asked = false;
	BIO *bio;

	if (f->size > 0 && f->at[0] == 0x30)
		key = d2i_AutoPrivateKey(NULL, &at, (long)f->size);
	else if ((bio = BIO_new_mem_buf(f->at, (int)f->size)) != NULL) {
		key =
		    PEM_read_bio_PrivateKey(bio, NULL, ask_passphrase, &asked);
		BIO_free(bio);
	}
	ERR_clear_error();
	if (key == NULL && asked)
		err_set(e, ERR_USAGE,
		    "the key in %.60s is encrypted; give it plain, muster "
		    "keeps it where only root reads (umask 077; openssl pkey "
		    "-in %.60s -out plain.key)",
		    f->name, f->name);
	else if (key == NULL)
		err_set(e, ERR_USAGE,
		    "there is no private key in %.100s (PEM is wanted: "
		    "-----BEGIN PRIVATE KEY-----)",
		    f->name);
	return key;
}

static int
ask_passphrase(char *buf, int size, int writing, void *asked)
{
	(void)buf;
	(void)size;
	(void)writing;
	*(bool *)asked = true;
	return -1;
}

static int
refuse_key(const struct cert_check_input *in, STACK_OF(X509) * chain,
    EVP_PKEY *key, struct err *e)
{
	for (int i = 1; i < sk_X509_num(chain); i++)
		if (EVP_PKEY_eq(key,
			X509_get0_pubkey(sk_X509_value(chain, i))) == 1)
			return err_set(e, ERR_USAGE,
			    "%.80s: the key belongs to certificate %d; the "
			    "order is the site's own first, then who signed "
			    "it, and so on",
			    in->cert.name, i + 1);
	return err_set(e, ERR_USAGE,
	    "the key in %.80s does not belong to the certificate in %.80s",
	    in->key.name, in->cert.name);
}

/* One form for all, so that it can be read without OpenSSL's guessing. */
static int
export_key(EVP_PKEY *key, const char *file, struct cert_checked *c,
    struct err *e)
{
	PKCS8_PRIV_KEY_INFO *info = EVP_PKEY2PKCS8(key);
	uint8_t again[CERT_CHECK_HASH];
	int n = info != NULL ? i2d_PKCS8_PRIV_KEY_INFO(info, &c->key) : -1;

	PKCS8_PRIV_KEY_INFO_free(info);
	if (n <= 0)
		return err_set(e, ERR_LOCAL,
		    "the key in %.100s cannot be "
		    "written",
		    file);
	c->key_size = (size_t)n;
	if (pkcs8_public_hash(c->key, c->key_size, again) &&
	    memcmp(again, c->spki, sizeof(again)) == 0)
		return 0;
	return err_set(e, ERR_USAGE,
	    "the certificate spells its public key in another way than the "
	    "key in %.100s (a compressed point?); get one for a usual key",
	    file);
}

static int
export_chain(STACK_OF(X509) * chain, struct cert_checked *c, struct err *e)
{
	size_t size = 0;
	uint8_t *at;

	c->n_chain = sk_X509_num(chain);
	for (int i = 0; i < c->n_chain; i++) {
		int n = i2d_X509(sk_X509_value(chain, i), NULL);

		size += n > 0 ? (size_t)n : 0;
	}
	if ((c->chain = at = OPENSSL_malloc(size)) == NULL)
		return err_set(e, ERR_LOCAL, "out of memory");
	c->chain_size = size;
	for (int i = 0; i < c->n_chain; i++)
		i2d_X509(sk_X509_value(chain, i), &at);
	return 0;
}

static int
export_staple(const struct cert_check_file *f, struct cert_checked *c,
    struct err *e)
{
	if ((c->ocsp = OPENSSL_memdup(f->at, f->size)) == NULL)
		return err_set(e, ERR_LOCAL, "out of memory");
	c->ocsp_size = f->size;
	return 0;
}

static int
hash_public(EVP_PKEY *key, uint8_t spki[CERT_CHECK_HASH])
{
	uint8_t *der = NULL;
	int n = i2d_PUBKEY(key, &der);
	unsigned len;
	int ok = n > 0 &&
	    EVP_Digest(der, (size_t)n, spki, &len, EVP_sha256(), NULL) == 1;

	OPENSSL_free(der);
	return ok ? 0 : -1;
}
