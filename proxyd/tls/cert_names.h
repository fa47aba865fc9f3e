/*
 * cert_names.h: which certificates a server name gets: the rules of
 * cert_image.h, decided once, when an image is built, into its name table.
 */
#ifndef MUSTER_CERT_NAMES_H
#define MUSTER_CERT_NAMES_H

#include "proxyd/tls/cert_plan.h"

struct cert_image_slot;
struct cert_names;

struct cert_names *cert_names_new(struct err *);
void cert_names_free(struct cert_names *);

/* What the certificate could be for, under the index of its entry. */
int cert_names_add(struct cert_names *, uint32_t entry,
    const struct cert_plan_entry *, struct err *);

/* The caller's to free(), both; names of slots are places in text. */
struct cert_names_table {
	struct cert_image_slot *slots;
	uint32_t n_slots;
	char *text;
	size_t text_size;
};
int cert_names_table(struct cert_names *, struct cert_names_table *,
    struct err *);

/* What the table has for a name, by itself or by a wildcard; by_kind stands
 * when it has nothing. */
void cert_names_find(const struct cert_names_table *, const char *name,
    uint32_t by_kind[CERT_IMAGE_KINDS]);

#endif
