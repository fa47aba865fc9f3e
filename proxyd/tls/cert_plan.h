/*
 * cert_plan.h: builds the image of cert_image.h.  Add certificates in any
 * order, then write.
 *
 * Chains and keys go into the memfd as they are added, so that no second copy
 * of a key is ever in memory.  Whoever reads the registry and the files is
 * above this; this knows neither.
 */
#ifndef MUSTER_CERT_PLAN_H
#define MUSTER_CERT_PLAN_H

#include "proxyd/tls/cert_image.h"

/* Bytes in memory; borrowed for the call. */
struct cert_plan_bytes {
	const uint8_t *at;
	size_t size;
};

struct cert_plan_entry {
	uint8_t id[CERT_IMAGE_ID];
	const char *site;  /* its name */
	const char *hosts; /* of the site: names and "*.names", by one space */
	const char *names; /* of the certificate, likewise */
	enum cert_image_kind kind;
	int64_t not_before_s, not_after_s, ocsp_until_s;
	struct cert_plan_bytes chain; /* DER, one after another */
	struct cert_plan_bytes key, ocsp;
};

struct cert_plan;

struct cert_plan *cert_plan_new(struct err *);
void cert_plan_free(struct cert_plan *);

/* ERR_CORRUPT: the chain is not one; nothing was added. */
int cert_plan_add(struct cert_plan *, const struct cert_plan_entry *,
    struct err *);

/* One that an earlier image has, with its key: only where it belongs (site,
 * hosts, names) is taken from *where. */
int cert_plan_keep(struct cert_plan *, const struct cert_image *,
    const struct cert_image_entry *, const struct cert_plan_entry *where,
    struct err *);

/* The site whose certificates are for names that no certificate has; without
 * this call: none. */
void cert_plan_default(struct cert_plan *, const char *site);

/* Seals the memfd, which is the caller's.  Once. */
int cert_plan_write(struct cert_plan *, int *fd, struct err *);

#endif
