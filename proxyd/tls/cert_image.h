/*
 * cert_image.h: all certificates of sites with their private keys, and which
 * of them a server name gets, as one immutable image.
 *
 * The follower makes it (cert_plan.h) in a sealed memfd; the master hands the
 * descriptor to each worker, which maps it read-only.  No worker ever sees a
 * key file.  The image holds offsets, no pointers.  It is checked once, when
 * it is mapped: everything below holds for an image that was mapped.
 *
 * Which certificates a name gets, first match:
 *   1. those of the site that has the name as its host, as far as they cover
 *      it;
 *   2. those of any site that have the name among theirs;
 *   3. those that cover it by a wildcard, the ones of the site that has the
 *      wildcard as its alias first.  "*.b" covers a.b, not x.a.b, not b
 *      (RFC 9525, section 6.3);
 *   4. those of the site that has the name as its host, though they do not
 *      cover it;
 *   5. the default.
 * Within a rule that matches there is at most one of each kind: of several,
 * the one that lasts longest.
 */
#ifndef MUSTER_CERT_IMAGE_H
#define MUSTER_CERT_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

#define CERT_IMAGE_ID	 32
#define CERT_IMAGE_CHAIN 10 /* certificates in a chain, at most */

enum cert_image_kind { CERT_IMAGE_RSA, CERT_IMAGE_ECDSA, CERT_IMAGE_KINDS };

/* Bytes in the image: size 0: none. */
struct cert_image_bytes {
	uint32_t off, size;
};

/* One certificate, its chain and its key. */
struct cert_image_entry {
	/* Of chain, key and staple: the same id, the same bytes, in whatever
	 * image.  What was made of an entry can be kept under it. */
	uint8_t id[CERT_IMAGE_ID];
	int64_t not_before_s, not_after_s; /* of the leaf */
	uint32_t kind;			   /* enum cert_image_kind */
	uint32_t n_chain;		   /* >= 1 */
	/* DER; the leaf first, then what a client needs to find a root. */
	struct cert_image_bytes chain[CERT_IMAGE_CHAIN];
	struct cert_image_bytes key;  /* DER: PKCS #8, not encrypted */
	struct cert_image_bytes ocsp; /* DER: an OCSPResponse; or none */
	int64_t ocsp_until_s;	      /* not to be stapled after that */
	struct cert_image_bytes site; /* its name, for reports; no NUL */
};

/* What a name gets: one or both. */
struct cert_image_found {
	const struct cert_image_entry *by_kind[CERT_IMAGE_KINDS];
};

struct cert_image_head;

/* One process's handle.  References are that process's, without a lock. */
struct cert_image {
	const struct cert_image_head *head;
	unsigned refs;
};

/*
 * Maps an image, out of core dumps.  The descriptor stays the caller's and
 * may be closed.  ERR_CORRUPT: not an image, or something in it points
 * outside.  One reference is the caller's.
 */
struct cert_image *cert_image_map(int fd, struct err *);
struct cert_image *cert_image_hold(struct cert_image *);
/* Unmaps with the last reference.  NULL is fine. */
void cert_image_release(struct cert_image *);

/*
 * For a server name as the client sent it: letters of either case, perhaps a
 * dot at the end; len 0: it sent none, which gets the default.  Returns
 * whether anything was found; without a default nothing may be, and the
 * handshake is to be refused with unrecognized_name.  Takes any bytes.
 * O(len), takes no lock and no memory.
 */
bool cert_image_find(const struct cert_image *, const char *name, size_t len,
    struct cert_image_found *);

/* How many, and each: for reports.  No order. */
uint32_t cert_image_count(const struct cert_image *);
const struct cert_image_entry *cert_image_entry(const struct cert_image *,
    uint32_t);

/* Borrowed until the image is released. */
const uint8_t *cert_image_at(const struct cert_image *,
    struct cert_image_bytes);

#endif
