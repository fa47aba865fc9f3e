/*
 * cert_form.h: how a certificate image is laid out; for its reader
 * (cert_image.c) and its writer (cert_plan.c) alone.
 */
#ifndef MUSTER_CERT_FORM_H
#define MUSTER_CERT_FORM_H

#include "common/base/name.h"
#include "proxyd/tls/cert_image.h"

#define CERT_IMAGE_MAGIC   "mstrcert" /* 8 bytes, no NUL */
#define CERT_IMAGE_VERSION 1
#define CERT_IMAGE_NONE	   UINT32_MAX /* no such entry */

/* A place of the name table: open addressing, by cert_form_hash(). */
struct cert_image_slot {
	uint64_t hash;
	struct cert_image_bytes name;	    /* "a.b", ".b" for "*.b"; or free */
	uint32_t by_kind[CERT_IMAGE_KINDS]; /* entries, or none */
};

struct cert_image_head {
	char magic[8];
	uint32_t version;
	uint32_t size;
	uint32_t entries_off, n_entries;
	uint32_t slots_off, n_slots; /* a power of two; one is free */
	uint32_t fallback[CERT_IMAGE_KINDS];
};

/* One step of the hash of names, from the last byte to the first, so that
 * one pass yields the hash of the wildcard, too. */
#define CERT_FORM_HASH 0xcbf29ce484222325
static inline uint64_t
cert_form_hash(uint64_t hash, char c)
{
	return (hash ^ (unsigned char)c) * 0x100000001b3;
}

/* The first place where a name of this hash may stand. */
static inline uint32_t
cert_form_place(uint64_t hash, uint32_t n_slots)
{
	return (uint32_t)(hash >> 20) & (n_slots - 1);
}

#endif
