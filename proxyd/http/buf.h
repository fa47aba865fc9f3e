/*
 * buf.h: the buffers of one worker, in three sizes, kept for reuse.
 *
 * A connection borrows one while it has bytes to hold and gives it back when
 * they are gone; an idle connection holds none.
 */
#ifndef MUSTER_BUF_H
#define MUSTER_BUF_H

#include <stddef.h>
#include <stdint.h>

enum buf_size {
	BUF_SMALL,  /* 2 KiB: what slow clients leave */
	BUF_MEDIUM, /* 16 KiB: nearly all heads */
	BUF_LARGE,  /* 128 KiB: any head; bodies */
	BUF_SIZES
};

/* Room before and behind the data, for what the chunk encoder puts there. */
#define BUF_MARGIN 32U

struct buf {
	struct buf *next;
	uint32_t room;	     /* bytes that data holds */
	uint32_t kind;	     /* enum buf_size */
	uint32_t start, end; /* what is in it: data[start, end) */
	char *data;
};

struct buf_pool {
	struct buf *free[BUF_SIZES];
	uint32_t n_free[BUF_SIZES];
};

/* An empty one; NULL: no memory. */
struct buf *buf_take(struct buf_pool *, enum buf_size);

/* Gives *b back, if there is one, and sets it to NULL. */
void buf_give(struct buf_pool *, struct buf **b);

/* Moves the contents, to the front, to a buffer of another size.  0, or -1
 * when they do not fit or memory is short: nothing has changed then. */
int buf_resize(struct buf_pool *, struct buf **b, enum buf_size);

/* Moves the contents to the front. */
void buf_pack(struct buf *);

/* The smallest size that holds so much, or BUF_SIZES. */
enum buf_size buf_size_for(size_t);

void buf_pool_free(struct buf_pool *);

static inline size_t
buf_len(const struct buf *b)
{
	return b->end - b->start;
}

#endif
