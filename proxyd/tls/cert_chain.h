/*
 * cert_chain.h: certificates read from a file and looked through one by one;
 * the part of cert_check.h that knows X.509.
 */
#ifndef MUSTER_CERT_CHAIN_H
#define MUSTER_CERT_CHAIN_H

#include <openssl/x509.h>

#include "proxyd/tls/cert_check.h"

/* Adds those of a file.  ERR_USAGE: there is none in it, or too many. */
int cert_chain_read(const struct cert_check_file *, STACK_OF(X509) *,
    struct err *);

/* Whether each was signed by the next, is in time and not weak.  `name`: the
 * file of the first. */
int cert_chain_check(STACK_OF(X509) *, const char *name, int64_t now_s,
    json_t *warnings, struct err *);

/* The host names of a certificate, lower case, each once, split by one space;
 * malloc'ed.  ERR_USAGE: it has none that a site could have. */
int cert_chain_names(X509 *, const char *file, char **names, struct err *);

/* The common name, or what else there is. */
void cert_chain_subject(X509 *, char *buf, size_t size);
void cert_chain_issuer(X509 *, char *buf, size_t size);

int64_t cert_chain_time(const ASN1_TIME *);
/* "2026-11-30 13:45 UTC". */
#define CERT_CHAIN_DATE 24
void cert_chain_date(int64_t s, char date[CERT_CHAIN_DATE]);

/* Whether an OCSP response is good for the first of the chain now; until
 * when. */
int cert_chain_staple(STACK_OF(X509) *, const struct cert_check_file *,
    int64_t now_s, int64_t *until_s, struct err *);

#endif
