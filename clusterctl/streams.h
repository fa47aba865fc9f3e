/*
 * streams.h: the bytes of many streams, kept in bounded memory: what is above
 * the bound lies in one unlinked temporary file ($TMPDIR, else /tmp).
 */
#ifndef MUSTER_STREAMS_H
#define MUSTER_STREAMS_H

#include <sys/types.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

struct streams;

struct streams *streams_new(size_t n_streams, size_t memory_max, struct err *);
void streams_free(struct streams *);

/* Appends to a stream. */
int streams_put(struct streams *, size_t stream, const void *bytes, size_t n,
    struct err *);

uint64_t streams_size(const struct streams *, size_t stream);

/* Up to n bytes at an offset: how many, 0 at the end, -1 on error. */
ssize_t streams_read(const struct streams *, size_t stream, uint64_t offset,
    void *buf, size_t n, struct err *);

#endif
