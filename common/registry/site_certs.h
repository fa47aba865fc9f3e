/*
 * site_certs.h: TLS certificates of sites, at most one RSA and one ECDSA
 * each: which they are, never a key.  The bytes are in the machine's custody
 * (common/custody), under the hashes that stand here.
 *
 * Not to be confused with certs.h, the certificates of nodes and operators.
 */
#ifndef MUSTER_SITE_CERTS_H
#define MUSTER_SITE_CERTS_H

#include "common/base/name.h"
#include "common/registry/registry.h"

#define SITE_CERT_HASH	     32	  /* SHA-256 */
#define SITE_CERT_NAMES_MAX  8192 /* bytes of all names together */
#define SITE_CERT_ISSUER_MAX 128

enum site_cert_kind { SITE_CERT_RSA, SITE_CERT_ECDSA, SITE_CERT_KINDS };

struct site_cert {
	char site[HOST_MAX_LEN + 1];
	enum site_cert_kind kind;
	uint8_t key[SITE_CERT_HASH];   /* of its SubjectPublicKeyInfo */
	uint8_t chain[SITE_CERT_HASH]; /* of DER, the leaf first */
	uint8_t staple[SITE_CERT_HASH];
	bool has_staple; /* an OCSP response, until staple_until_s */
	int64_t not_before_s, not_after_s, staple_until_s;
	char issuer[SITE_CERT_ISSUER_MAX + 1]; /* for people */
	char *names; /* that it is for: "a.b *.b", split by one space */
	char *hosts; /* of its site, likewise; NULL until it was read */
};

/* Frees what a cert of one's own holds. */
void site_cert_fini(struct site_cert *);

/* "rsa", "ecdsa".  Parsing: ERR_USAGE for anything else. */
const char *site_cert_kind_name(enum site_cert_kind);
int site_cert_kind_parse(const char *, enum site_cert_kind *, struct err *);

/* By site, RSA first; site: of this one alone, or NULL. */
typedef int site_cert_fn(const struct site_cert *, void *arg);
int site_certs_each(struct registry *, const char *site, site_cert_fn *,
    void *arg, struct err *);

/* One change each.  Set: takes the place of the site's present one of this
 * kind.  ERR_NO_TARGET: no such site; nothing to remove. */
int site_certs_set(struct registry *, const struct site_cert *, struct err *);
int site_certs_remove(struct registry *, const char *site, enum site_cert_kind,
    struct err *);

/* Whether one of the names covers a host, or is the same wildcard as it: "*.b"
 * covers a.b, not x.a.b (RFC 9525, section 6.3). */
bool site_cert_covers(const char *names, const char *host, size_t len);

/* Names as above, at most max bytes of them: checked one by one. */
int site_cert_check_names(const char *names, size_t max, struct err *);

#endif
