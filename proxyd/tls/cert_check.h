/*
 * cert_check.h: whether what an administrator brings is a certificate that a
 * site can be served with: `proxyd cert-check`, which clusterctl asks.
 *
 * Refused with a sentence: no key for it, a chain in the wrong order, expired,
 * weak, not for servers.  What is doubtful but works is a warning.
 */
#ifndef MUSTER_CERT_CHECK_H
#define MUSTER_CERT_CHECK_H

#include <jansson.h>

#include "proxyd/tls/cert_image.h"

#define CERT_CHECK_FILE_MAX (1U << 20)
#define CERT_CHECK_HASH	    32 /* SHA-256 */

/* What was brought; name NULL: it was not. */
struct cert_check_file {
	const char *name; /* for the sentences */
	const uint8_t *at;
	size_t size;
};

struct cert_check_input {
	/* Certificates, the leaf first: PEM, or DER one after another. */
	struct cert_check_file cert, chain; /* chain: the rest of them */
	struct cert_check_file key;	    /* PEM or DER */
	struct cert_check_file ocsp;	    /* DER */
	int64_t now_s;
};

struct cert_checked {
	enum cert_image_kind kind;
	int bits;
	char subject[128], issuer[128]; /* common names, for people */
	char *names;			/* "a.b *.b": lower case, by a space */
	int64_t not_before_s, not_after_s, ocsp_until_s;
	int n_chain;
	bool self_signed;
	uint8_t spki[CERT_CHECK_HASH]; /* of the public key */
	/* DER, as the image wants it; key NULL: none was brought. */
	uint8_t *chain, *key, *ocsp;
	size_t chain_size, key_size, ocsp_size;
	json_t *warnings; /* sentences */
};

/* Fill *out, which cert_checked_fini() wipes and frees. */
int cert_check(const struct cert_check_input *, struct cert_checked *out,
    struct err *);
void cert_checked_fini(struct cert_checked *);

/* `proxyd cert-check`: paths, or NULL.  Prints one JSON object; with emit the
 * bytes of chain, key and staple follow it, and an err is printed like one
 * that travels (proto.h).  Returns the exit status. */
struct cert_check_paths {
	const char *cert, *chain, *key, *ocsp;
	bool emit;
};
int cert_check_run(const struct cert_check_paths *, struct err *);

#endif
