/*
 * custody.h: the directory tls/ of the state directory, where this machine
 * keeps what the certificates of sites are made of: private keys, chains,
 * OCSP staples.
 *
 * Each file is named by a SHA-256: a key by that of its public key
 * (SubjectPublicKeyInfo), the others by that of their own bytes; that is
 * checked whenever one is read or written.  So a file never changes its
 * meaning, and the registry and the roster say by a hash which one they
 * mean.  All of it is DER.
 *
 * The directory is 0700, each file 0600 from its first instant.  What others
 * could read is refused.
 */
#ifndef MUSTER_CUSTODY_H
#define MUSTER_CUSTODY_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "common/base/err.h"
#include "common/base/state.h"

#define CUSTODY_HASH	 32 /* SHA-256 */
#define CUSTODY_SIZE_MAX 65536
#define CUSTODY_NAME_MAX (2 * CUSTODY_HASH + 8)

enum custody_kind {
	CUSTODY_KEY,	/* PKCS #8, not encrypted */
	CUSTODY_CHAIN,	/* certificates one after another, the leaf first */
	CUSTODY_STAPLE, /* an OCSPResponse */
	CUSTODY_KINDS
};

struct custody {
	int dir; /* a descriptor */
	char path[PATH_MAX];
};

/* A file's content, the caller's: custody_wipe() it. */
struct custody_bytes {
	uint8_t *at;
	size_t size;
};

/* Opens the directory, and makes it where it is missing.  ERR_LOCAL: it is
 * open to others, or not ours. */
int custody_open(struct custody *, const struct state *, struct err *);
void custody_close(struct custody *);

/* Waits until no other process that wants to write or sweep does; until
 * custody_close(). */
int custody_lock(struct custody *, struct err *);

/* ERR_NO_TARGET: there is no such file.  ERR_CORRUPT: it is not what its name
 * says.  ERR_LOCAL: a key that others could read, anything else. */
int custody_read(const struct custody *, enum custody_kind,
    const uint8_t hash[CUSTODY_HASH], struct custody_bytes *, struct err *);
/* Overwrites and frees; NULL bytes are fine. */
void custody_wipe(struct custody_bytes *);

/* In the place of what is there, atomically.  ERR_CORRUPT: not what the hash
 * says.  Durable: waits for the disk; else a power cut may leave it empty,
 * which custody_has() sees. */
int custody_write(const struct custody *, enum custody_kind,
    const uint8_t hash[CUSTODY_HASH], const void *bytes, size_t size,
    bool durable, struct err *);

bool custody_has(const struct custody *, enum custody_kind,
    const uint8_t hash[CUSTODY_HASH]);

/* Removes each file that `keep` does not want. */
typedef bool custody_keep_fn(enum custody_kind,
    const uint8_t hash[CUSTODY_HASH], void *arg);
int custody_sweep(const struct custody *, custody_keep_fn *keep, void *arg,
    struct err *);

/* When a file came or went last. */
struct timespec custody_changed(const struct custody *);

/* A file's name, and back; false: not such a name. */
void custody_name(enum custody_kind, const uint8_t hash[CUSTODY_HASH],
    char name[CUSTODY_NAME_MAX]);
bool custody_parse(const char *name, enum custody_kind *,
    uint8_t hash[CUSTODY_HASH]);

#endif
