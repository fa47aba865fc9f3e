/*
 * spool.h: bytes whose reader does not take them yet, in a worker's own
 * unlinked file: first in, first out, in blocks of 64 KiB.
 *
 * Everything goes through the page cache.  A write waits for the disk only
 * where the kernel makes every writer wait (too many dirty pages).  A read
 * does not wait: pages that were pushed out of memory meanwhile are asked
 * for, and looked for again later.  Bytes are copied out, never sent from the file's
 * own pages: the kernel would go on sending from them (a lost packet) when
 * they are already somebody else's.
 *
 * When the file cannot grow (its bound, a full disk, an error), nothing more
 * is taken and what is there stays: whoever wrote slows its source down.
 */
#ifndef MUSTER_SPOOL_H
#define MUSTER_SPOOL_H

#include <sys/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proxyd/http/pipe.h"

#define SPOOL_BLOCK (64U << 10)

struct spool;

/* Some bytes in it.  All zero: none. */
struct store {
	uint32_t head;	   /* the first block held; 0: none */
	uint32_t read;	   /* the one that is read; 0: nothing to read */
	uint32_t last;	   /* the one that is written */
	uint32_t read_at;  /* in `read` */
	uint32_t write_at; /* in `last` */
	bool keep;	   /* what was read stays: see store_rewind() */
	uint8_t misses;	   /* in a row: its pages were not in memory */
	uint64_t size;	   /* bytes to be read */
	uint64_t total;	   /* and those already read */
};

/* fd is taken.  NULL: no memory. */
struct spool *spool_new(int fd);
void spool_free(struct spool *);

/* All stores together may hold so many bytes.  What is there stays. */
void spool_limit(struct spool *, uint64_t bytes);

/* How many are held, and may still come, in whole blocks. */
uint64_t spool_used(const struct spool *);
uint64_t spool_room(const struct spool *);

/* How often it could not be written; how often somebody found it full, who
 * says so by spool_refused(). */
uint64_t spool_errors(const struct spool *);
uint64_t spool_fulls(const struct spool *);
void spool_refused(struct spool *);

/* Every now and then: gives disk and memory of free blocks back. */
void spool_tidy(struct spool *, int64_t now_ms);

/* Takes bytes behind those that are there.  Returns how many: less than all
 * when there is no room. */
size_t store_put(struct spool *, struct store *, const char *, size_t);
size_t store_put_pipe(struct spool *, struct store *, struct pipe *);

/* Copies the next bytes, at most one block of them, and leaves them there.
 * Returns how many, or -1: EAGAIN, they are on their way from the disk; else
 * they are lost. */
ssize_t store_peek(struct spool *, struct store *, char *, size_t);

/* Takes out what store_peek() showed. */
void store_eat(struct spool *, struct store *, size_t);

/* Back to the first byte, where `keep` was set from the start. */
void store_rewind(struct store *);

/* From now on what is read goes; what was read is gone. */
void store_unkeep(struct spool *, struct store *);

void store_free(struct spool *, struct store *);

#endif
