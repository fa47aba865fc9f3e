/*
 * spool.c: see spool.h.
 *
 * One table says for each block which one follows it: in a store, or in the
 * list of free ones.  Free blocks are of two kinds: warm ones, whose pages
 * are still in memory, are taken first; holes take neither memory nor disk.
 */
#include "proxyd/http/spool.h"

#include <sys/uio.h>
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/io.h"
#include "common/base/log.h"

#define PUNCH_A_TURN 16	   /* holes; neighbours are one */
#define RETRY_MS     1000  /* after an error nothing is written so long */
#define MISSES_MAX   20	   /* then a read waits for the disk after all */
#define SILENT_MS    60000 /* and the next one is not told so long */

struct spool {
	int fd;
	uint32_t limit; /* blocks that may be used */
	uint32_t used;	/* that are */
	uint32_t ever;	/* that ever were: blocks 1 to this one */
	uint32_t room;	/* of next */
	uint32_t *next; /* by block; 0: none */
	uint32_t warm;	/* free blocks, newest first */
	uint32_t hole;	/* free blocks with nothing behind them */
	bool waits;	/* this file system knows no reads that do not */
	int64_t now_ms;
	int64_t retry_ms;  /* nothing is written before */
	int64_t silent_ms; /* no error is told before */
	uint64_t errors, fulls;
};

static uint32_t take_block(struct spool *);
static bool begin_block(struct spool *, struct store *);
static void failed(struct spool *, int error);

static off_t
place(uint32_t block, uint32_t at)
{
	return (off_t)(block - 1) * SPOOL_BLOCK + at;
}

struct spool *
spool_new(int fd)
{
	struct spool *sp = calloc(1, sizeof(*sp));

	if (sp == NULL) {
		close(fd);
		return NULL;
	}
	sp->fd = fd;
	return sp;
}

void
spool_free(struct spool *sp)
{
	if (sp == NULL)
		return;
	close(sp->fd);
	free(sp->next);
	free(sp);
}

void
spool_limit(struct spool *sp, uint64_t bytes)
{
	uint64_t blocks = bytes / SPOOL_BLOCK;

	sp->limit = blocks < UINT32_MAX ? (uint32_t)blocks : UINT32_MAX - 1;
}

uint64_t
spool_used(const struct spool *sp)
{
	return (uint64_t)sp->used * SPOOL_BLOCK;
}

uint64_t
spool_room(const struct spool *sp)
{
	if (sp->used >= sp->limit || sp->now_ms < sp->retry_ms)
		return 0;
	return (uint64_t)(sp->limit - sp->used) * SPOOL_BLOCK;
}

uint64_t
spool_errors(const struct spool *sp)
{
	return sp->errors;
}

uint64_t
spool_fulls(const struct spool *sp)
{
	return sp->fulls;
}

void
spool_refused(struct spool *sp)
{
	sp->fulls++;
}

/* Takes the newest warm block and its neighbours before it, which were freed
 * before it.  Returns how many. */
static uint32_t
warm_neighbours(struct spool *sp, uint32_t *first)
{
	uint32_t n = 0;

	do {
		uint32_t block = sp->warm;

		sp->warm = sp->next[block];
		sp->next[block] = sp->hole;
		sp->hole = *first = block;
		n++;
	} while (sp->warm != 0 && sp->warm == *first - 1);
	return n;
}

void
spool_tidy(struct spool *sp, int64_t now_ms)
{
	sp->now_ms = now_ms;
	for (int i = 0; i < PUNCH_A_TURN && sp->warm != 0; i++) {
		uint32_t first, n = warm_neighbours(sp, &first);

		if (fallocate(sp->fd,
			FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			place(first, 0), (off_t)n * SPOOL_BLOCK) == -1)
			break; /* this file system cannot: it keeps them */
	}
}

/* --- blocks */

/* One more row in the table, for a block never used so far. */
static bool
grow(struct spool *sp)
{
	uint32_t room = sp->room < 64 ? 64 : sp->room * 2;
	uint32_t *next;

	if (sp->ever + 1 < sp->room)
		return true;
	if (sp->room > UINT32_MAX / 2 ||
	    (next = reallocarray(sp->next, room, sizeof(*next))) == NULL)
		return false;
	sp->next = next;
	sp->room = room;
	return true;
}

/* 0: there is none. */
static uint32_t
take_block(struct spool *sp)
{
	uint32_t block;

	if (spool_room(sp) == 0)
		return 0;
	if ((block = sp->warm) != 0)
		sp->warm = sp->next[block];
	else if ((block = sp->hole) != 0)
		sp->hole = sp->next[block];
	else if (grow(sp))
		block = ++sp->ever;
	else
		return 0;
	sp->next[block] = 0;
	sp->used++;
	return block;
}

static void
give_block(struct spool *sp, uint32_t block)
{
	assert(sp->used > 0);
	sp->used--;
	sp->next[block] = sp->warm;
	sp->warm = block;
}

/* --- writing */

/* Whether `last` has room, perhaps because it is a new one. */
static bool
begin_block(struct spool *sp, struct store *st)
{
	uint32_t block;

	if (st->last != 0 && st->write_at < SPOOL_BLOCK)
		return sp->now_ms >= sp->retry_ms;
	if ((block = take_block(sp)) == 0)
		return false;
	if (st->last == 0)
		st->head = block;
	else
		sp->next[st->last] = block;
	st->last = block;
	st->write_at = 0;
	return true;
}

static void
wrote(struct store *st, size_t n)
{
	if (st->read == 0) {
		st->read = st->last;
		st->read_at = st->write_at;
	}
	st->write_at += (uint32_t)n;
	st->size += n;
	st->total += n;
}

/* Told once in a while: slow clients may bring thousands a second. */
static void
failed(struct spool *sp, int error)
{
	sp->errors++;
	sp->retry_ms = sp->now_ms + RETRY_MS;
	if (sp->now_ms < sp->silent_ms)
		return;
	sp->silent_ms = sp->now_ms + SILENT_MS;
	log_error("the spool file cannot be written: %s; until it can, slow "
		  "clients slow their nodes down",
	    strerror(error));
}

size_t
store_put(struct spool *sp, struct store *st, const char *data, size_t size)
{
	size_t done = 0;

	while (done < size && begin_block(sp, st)) {
		size_t room = SPOOL_BLOCK - st->write_at;
		size_t most = size - done < room ? size - done : room;
		ssize_t n = pwrite(sp->fd, data + done, most,
		    place(st->last, st->write_at));

		if (n > 0) {
			wrote(st, (size_t)n);
			done += (size_t)n;
		} else if (n == 0 || errno != EINTR) {
			failed(sp, n == 0 ? ENOSPC : errno);
			break;
		}
	}
	return done;
}

size_t
store_put_pipe(struct spool *sp, struct store *st, struct pipe *p)
{
	size_t done = 0;

	while (p->held > 0 && begin_block(sp, st)) {
		size_t room = SPOOL_BLOCK - st->write_at;
		off_t at = place(st->last, st->write_at);
		ssize_t n = splice(p->out, NULL, sp->fd, &at,
		    p->held < room ? p->held : room, SPLICE_F_MOVE);

		if (n > 0) {
			p->held -= (size_t)n;
			wrote(st, (size_t)n);
			done += (size_t)n;
		} else if (n == 0 || errno != EINTR) {
			failed(sp, n == 0 ? EIO : errno);
			break;
		}
	}
	return done;
}

/* --- reading */

/* Asks for the rest of the block, and the next one. */
static void
fetch(struct spool *sp, const struct store *st)
{
	uint32_t next = sp->next[st->read];

	posix_fadvise(sp->fd, place(st->read, st->read_at),
	    SPOOL_BLOCK - st->read_at, POSIX_FADV_WILLNEED);
	if (next != 0)
		posix_fadvise(sp->fd, place(next, 0), SPOOL_BLOCK,
		    POSIX_FADV_WILLNEED);
}

/* As pread(2), but from memory alone, unless that fails too often; all or
 * nothing, for TLS must be offered again what it was offered. */
static ssize_t
read_cached(struct spool *sp, struct store *st, char *buf, size_t size)
{
	struct iovec iov = { buf, size };
	off_t at = place(st->read, st->read_at);
	bool wait = sp->waits || st->misses >= MISSES_MAX;
	ssize_t n = preadv2(sp->fd, &iov, 1, at, wait ? 0 : RWF_NOWAIT);

	if (n == -1 && errno == EOPNOTSUPP) {
		sp->waits = true;
		n = preadv2(sp->fd, &iov, 1, at, 0);
	}
	if (wait || (n == -1 ? errno != EAGAIN : n == (ssize_t)size)) {
		st->misses = 0;
		return n;
	}
	st->misses++;
	fetch(sp, st);
	errno = EAGAIN;
	return -1;
}

ssize_t
store_peek(struct spool *sp, struct store *st, char *buf, size_t size)
{
	size_t there = SPOOL_BLOCK - st->read_at;
	ssize_t n;

	if (there > st->size)
		there = (size_t)st->size;
	if (there > size)
		there = size;
	if (there == 0)
		return 0;
	do
		n = read_cached(sp, st, buf, there);
	while (n == -1 && errno == EINTR);
	if (n == 0)
		errno = EIO; /* somebody has cut the file */
	return n > 0 ? n : -1;
}

/* What comes behind the block that has been read. */
static void
next_block(struct spool *sp, struct store *st)
{
	uint32_t done = st->read;

	st->read = sp->next[done];
	st->read_at = 0;
	if (st->keep)
		return;
	st->head = st->read;
	if (st->last == done)
		st->last = 0;
	give_block(sp, done);
}

void
store_eat(struct spool *sp, struct store *st, size_t n)
{
	assert(n <= st->size);
	st->size -= n;
	st->read_at += (uint32_t)n;
	assert(st->read_at <= SPOOL_BLOCK);
	if (n > 0 &&
	    (st->read_at == SPOOL_BLOCK || (st->size == 0 && !st->keep)))
		next_block(sp, st);
}

void
store_rewind(struct store *st)
{
	assert(st->keep || st->head == st->read);
	st->read = st->total > 0 ? st->head : 0;
	st->read_at = 0;
	st->size = st->total;
}

void
store_unkeep(struct spool *sp, struct store *st)
{
	st->keep = false;
	while (st->head != st->read) {
		uint32_t block = st->head;

		st->head = sp->next[block];
		if (st->last == block)
			st->last = 0;
		give_block(sp, block);
	}
	if (st->size == 0 && st->head != 0)
		store_free(sp, st);
}

void
store_free(struct spool *sp, struct store *st)
{
	while (st->head != 0) {
		uint32_t block = st->head;

		st->head = sp->next[block];
		give_block(sp, block);
	}
	*st = (struct store){ 0 };
}
