/*
 * manycerts.c: certificates for a benchmark: N leaves below one authority,
 * for s0.example, s1.example and so on.
 *
 * usage: manycerts DIR N
 *
 * Leaves in DIR: tls/ as proxyd keeps them (custody.h), pem/sI.pem with
 * certificate, chain and key each for the others.  Prints what clusterctl
 * registry apply takes.  Keys are few, since they take long to find; each
 * certificate has its own copy all the same.
 */
#include <sys/stat.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/rsa.h>
#include <openssl/x509v3.h>
#include <sodium.h>

#include "common/base/io.h"
#include "common/custody/custody.h"
#include "common/custody/pkcs8.h"

#define N_KEYS	16
#define DAY_S	86400L
#define PADDING 260 /* signed timestamps, which a real one carries */

struct key {
	EVP_PKEY *key;
	uint8_t hash[PKCS8_HASH];
};

static EVP_PKEY *authority_key;
static X509 *authority;

static _Noreturn void
die(const char *what)
{
	fprintf(stderr, "manycerts: %s\n", what);
	exit(1);
}

static void
put_file(const char *dir, const char *name, const void *bytes, size_t size)
{
	char path[PATH_MAX];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	if ((f = fopen(path, "we")) == NULL ||
	    fwrite(bytes, 1, size, f) != size || fclose(f) == EOF)
		die(path);
}

static void
add_extension(X509 *x, int nid, const char *value)
{
	X509_EXTENSION *e = X509V3_EXT_conf_nid(NULL, NULL, nid, value);

	if (e == NULL || X509_add_ext(x, e, -1) != 1)
		die("extension");
	X509_EXTENSION_free(e);
}

static void
pad(X509 *x)
{
	uint8_t bytes[PADDING];
	ASN1_OCTET_STRING *text = ASN1_OCTET_STRING_new();
	ASN1_OBJECT *oid = OBJ_txt2obj("1.2.3.4", 1);
	X509_EXTENSION *e;

	RAND_bytes(bytes, sizeof(bytes));
	ASN1_OCTET_STRING_set(text, bytes, sizeof(bytes));
	e = X509_EXTENSION_create_by_OBJ(NULL, oid, 0, text);
	if (e == NULL || X509_add_ext(x, e, -1) != 1)
		die("padding");
	X509_EXTENSION_free(e);
	ASN1_OCTET_STRING_free(text);
	ASN1_OBJECT_free(oid);
}

static X509 *
make(const char *name, EVP_PKEY *key, long serial)
{
	X509 *x = X509_new();
	X509_NAME *subject = X509_NAME_new();
	char names[160];

	X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC,
	    (const unsigned char *)name, -1, -1, 0);
	X509_set_version(x, X509_VERSION_3);
	ASN1_INTEGER_set(X509_get_serialNumber(x), serial);
	X509_gmtime_adj(X509_getm_notBefore(x), -DAY_S);
	X509_gmtime_adj(X509_getm_notAfter(x), 80 * DAY_S);
	X509_set_subject_name(x, subject);
	X509_set_issuer_name(x,
	    authority != NULL ? X509_get_subject_name(authority) : subject);
	X509_set_pubkey(x, key);
	if (authority != NULL) {
		snprintf(names, sizeof(names), "DNS:%s,DNS:www.%s", name, name);
		add_extension(x, NID_subject_alt_name, names);
		pad(x);
	} else
		add_extension(x, NID_basic_constraints, "critical,CA:TRUE");
	if (X509_sign(x, authority_key, EVP_sha256()) == 0)
		die("signature");
	X509_NAME_free(subject);
	return x;
}

static void
make_keys(const char *tls, struct key keys[N_KEYS])
{
	char name[CUSTODY_NAME_MAX];

	for (size_t i = 0; i < N_KEYS; i++) {
		uint8_t *der = NULL;
		PKCS8_PRIV_KEY_INFO *info;
		int n;

		if ((keys[i].key = EVP_RSA_gen(2048)) == NULL)
			die("key");
		info = EVP_PKEY2PKCS8(keys[i].key);
		n = i2d_PKCS8_PRIV_KEY_INFO(info, &der);
		if (n <= 0 || !pkcs8_public_hash(der, (size_t)n, keys[i].hash))
			die("key");
		custody_name(CUSTODY_KEY, keys[i].hash, name);
		put_file(tls, name, der, (size_t)n);
		OPENSSL_free(der);
		PKCS8_PRIV_KEY_INFO_free(info);
	}
}

/* Leaf and authority; its hash is the caller's. */
static void
put_chain(const char *tls, X509 *leaf, uint8_t hash[CUSTODY_HASH])
{
	char name[CUSTODY_NAME_MAX];
	uint8_t der[8192], *at = der;

	i2d_X509(leaf, &at);
	i2d_X509(authority, &at);
	crypto_hash_sha256(hash, der, (size_t)(at - der));
	custody_name(CUSTODY_CHAIN, hash, name);
	put_file(tls, name, der, (size_t)(at - der));
}

static void
put_pem(const char *dir, const char *site, X509 *leaf, EVP_PKEY *key)
{
	BIO *bio = BIO_new(BIO_s_mem());
	char name[64], *text;

	PEM_write_bio_X509(bio, leaf);
	PEM_write_bio_X509(bio, authority);
	PEM_write_bio_PKCS8PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL);
	snprintf(name, sizeof(name), "%.40s.pem", site);
	put_file(dir, name, text, (size_t)BIO_get_mem_data(bio, &text));
	BIO_free(bio);
}

static void
put_row(const char *site, const struct key *k, const uint8_t *chain, bool last)
{
	char key_hex[2 * CUSTODY_HASH + 1], chain_hex[2 * CUSTODY_HASH + 1];

	sodium_bin2hex(key_hex, sizeof(key_hex), k->hash, CUSTODY_HASH);
	sodium_bin2hex(chain_hex, sizeof(chain_hex), chain, CUSTODY_HASH);
	printf("{\"site\":\"%s\",\"kind\":\"rsa\",\"key\":\"%s\","
	       "\"chain\":\"%s\",\"not_before_s\":0,"
	       "\"not_after_s\":4000000000,\"issuer\":\"bench\","
	       "\"names\":\"%s www.%s\"}%s\n",
	    site, key_hex, chain_hex, site, site, last ? "" : ",");
}

int
main(int argc, char **argv)
{
	char tls[PATH_MAX], pem[PATH_MAX], site[32];
	struct key keys[N_KEYS];
	uint8_t chain[CUSTODY_HASH];
	long n = argc == 3 ? strtol(argv[2], NULL, 10) : 0;

	if (n <= 0 || sodium_init() == -1)
		die("usage: manycerts DIR N");
	umask(077);
	snprintf(tls, sizeof(tls), "%s/tls", argv[1]);
	snprintf(pem, sizeof(pem), "%s/pem", argv[1]);
	mkdir(tls, 0700);
	mkdir(pem, 0700);
	authority_key = EVP_EC_gen("P-256");
	authority = make("bench authority", authority_key, 1);
	make_keys(tls, keys);
	puts("{\"sites\":[");
	for (long i = 0; i < n; i++)
		printf("{\"name\":\"s%ld.example\",\"aliases\":"
		       "[\"www.s%ld.example\"]}%s\n",
		    i, i, i + 1 < n ? "," : "");
	puts("],\"site_certs\":[");
	for (long i = 0; i < n; i++) {
		const struct key *k = &keys[i % N_KEYS];
		X509 *leaf;

		snprintf(site, sizeof(site), "s%ld.example", i);
		leaf = make(site, k->key, i + 2);
		put_chain(tls, leaf, chain);
		put_pem(pem, site, leaf, k->key);
		put_row(site, k, chain, i + 1 == n);
		X509_free(leaf);
	}
	puts("]}");
	return 0;
}
