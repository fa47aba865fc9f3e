/*
 * spool.h: bytes kept until they are needed: in memory up to a bound, then
 * in an unlinked temporary file of $TMPDIR, so that neither a large output
 * nor a large input costs memory.
 */
#ifndef CLUSTERCTL_SPOOL_H
#define CLUSTERCTL_SPOOL_H

#include <sys/types.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

#define SPOOL_MEMORY 16384 /* of each, before the file */

struct spool {
	char *memory;
	size_t room;
	uint64_t size;
	int fd; /* -1: still in memory */
	void *map;
	size_t map_size;
};

void spool_init(struct spool *);
void spool_fini(struct spool *);

/* Appends.  Not after spool_view(). */
int spool_put(struct spool *, const void *bytes, size_t n, struct err *);

/* Up to n bytes at an offset: how many, 0 at the end, -1 on error. */
ssize_t spool_read(const struct spool *, uint64_t offset, void *buf, size_t n,
    struct err *);

/* All of it, contiguous; valid until spool_fini(). */
int spool_view(struct spool *, const char **bytes, size_t *size, struct err *);

#endif
