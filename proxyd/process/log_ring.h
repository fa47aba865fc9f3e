/*
 * log_ring.h: log lines from one worker to whoever writes them, in shared
 * memory.  One writer, one reader, no locks, no waiting: a full ring drops
 * the line and counts it (sb_worker.log_dropped).  Lines in the ring survive
 * the worker.
 */
#ifndef MUSTER_LOG_RING_H
#define MUSTER_LOG_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

#define LOG_RING_SIZE (4U << 20) /* bytes, a power of two */
#define LOG_LINE_MAX  (32U << 10)

struct log_ring_head {
	_Alignas(64) _Atomic uint64_t head; /* bytes ever written */
	_Alignas(64) _Atomic uint64_t tail; /* bytes ever taken */
};

struct log_ring {
	struct log_ring_head *shared;
	char *data; /* mapped twice in a row: no line is ever split */
	int fd;	    /* the memfd */
	int wake;   /* eventfd: the ring is a quarter full; -1: none */
};

/* A new ring.  In another process: map the same descriptor (taken). */
int log_ring_create(struct log_ring *, int wake, struct err *);
int log_ring_map(struct log_ring *, int fd, int wake, struct err *);
void log_ring_unmap(struct log_ring *);

/* --- the writer: room for one line (at most LOG_LINE_MAX), or NULL when the
 * ring is too full; then what was written there, whole lines. */
char *log_ring_room(struct log_ring *, size_t size);
void log_ring_put(struct log_ring *, size_t size);

/* --- the reader: all there is, in one piece; then how much was taken. */
const char *log_ring_get(struct log_ring *, size_t *size);
void log_ring_taken(struct log_ring *, size_t size);

#endif
