/*
 * cert_ask.h: has proxyd look at a certificate (`proxyd cert-check`): it has
 * OpenSSL, which this program would start slower with.
 */
#ifndef CLUSTERCTL_CERT_ASK_H
#define CLUSTERCTL_CERT_ASK_H

#include <jansson.h>

#include "common/base/err.h"
#include "common/custody/custody.h"
#include "common/registry/site_certs.h"

/* Paths that the operator named, or NULL. */
struct cert_files {
	const char *cert, *chain, *key, *ocsp;
};

struct cert_answer {
	struct site_cert cert; /* without a site */
	/* The bytes for custody; key, staple: none where none was given. */
	struct custody_bytes chain, key, staple;
	json_t *warnings; /* sentences */
};

/* ERR_USAGE and the like: what is wrong with it.  ERR_LOCAL: there is no
 * proxyd here. */
int cert_ask(const struct cert_files *, struct cert_answer *, struct err *);
/* Wipes and frees. */
void cert_answer_fini(struct cert_answer *);

#endif
