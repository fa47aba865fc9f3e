/*
 * manifest.h: what a push takes along: every file, directory and symbolic
 * link below its sources, in an order in which they can be made.
 */
#ifndef CLUSTERCTL_MANIFEST_H
#define CLUSTERCTL_MANIFEST_H

#include <sys/types.h>
#include <stdint.h>

#include "clusterctl/digest.h"

enum entry_type { ENTRY_FILE, ENTRY_DIR, ENTRY_LINK };

struct entry {
	enum entry_type type;
	char *source; /* where it is here */
	char *name;   /* of its source: what it is called below a directory */
	char *below;  /* its path below that; "" for the source itself */
	mode_t mode;  /* 0 to 07777 */
	int64_t mtime_s;
	uint64_t size;
	char hash[DIGEST_HEX + 1]; /* of files */
	char *target;		   /* of links */
};

struct manifest {
	struct entry *entries;
	size_t n, room;
	size_t n_sources;
	uint64_t size; /* bytes of all files */
};

/* "file", "dir", "link". */
const char *entry_type_word(enum entry_type);

void manifest_init(struct manifest *);
void manifest_fini(struct manifest *);

/* Adds a file or a tree, and hashes it.  A source that is a symbolic link is
 * followed, one inside a tree is kept.  What is none of the three is left
 * out, with a remark. */
int manifest_add(struct manifest *, const char *source, struct err *);

#endif
