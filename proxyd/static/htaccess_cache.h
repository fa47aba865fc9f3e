/*
 * htaccess_cache.h: verdicts on .htaccess files that were read before.
 *
 * One is known by its place on disk, size and time of change, so that a
 * change is seen by the next stat, and nothing ever has to be told.  One
 * thread's; fixed memory; a file pushed out is only read again.
 */
#ifndef MUSTER_STATIC_HTACCESS_CACHE_H
#define MUSTER_STATIC_HTACCESS_CACHE_H

#include <sys/stat.h>
#include <stdbool.h>
#include <stdint.h>

#include "proxyd/static/htaccess.h"

#define HTACCESS_SLOTS 1024 /* a power of two */

struct htaccess_cache {
	struct htaccess_slot {
		uint64_t dev, ino; /* ino 0: free */
		int64_t size, change_s, change_ns;
		uint8_t verdict; /* enum htaccess */
	} slots[HTACCESS_SLOTS];
};

bool htaccess_cache_find(const struct htaccess_cache *, const struct stat *,
    enum htaccess *);

/* now_s: wall time.  A file that changed just now is not kept: it may change
 * again within the same tick of the file system's clock. */
void htaccess_cache_put(struct htaccess_cache *, const struct stat *,
    enum htaccess, int64_t now_s);

#endif
