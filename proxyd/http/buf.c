/* buf.c: see buf.h. */
#include "proxyd/http/buf.h"

#include <stdlib.h>
#include <string.h>

static const struct {
	uint32_t room;
	uint32_t keep; /* free ones that are not given back to the system */
} sizes[BUF_SIZES] = {
	[BUF_SMALL] = { 2 << 10, 256 },
	[BUF_MEDIUM] = { 16 << 10, 64 },
	[BUF_LARGE] = { 128 << 10, 8 },
};

struct buf *
buf_take(struct buf_pool *pool, enum buf_size kind)
{
	struct buf *b = pool->free[kind];

	if (b != NULL) {
		pool->free[kind] = b->next;
		pool->n_free[kind]--;
	} else {
		b = malloc(sizeof(*b) + sizes[kind].room + 2UL * BUF_MARGIN);
		if (b == NULL)
			return NULL;
		b->room = sizes[kind].room;
		b->kind = kind;
		b->data = (char *)(b + 1) + BUF_MARGIN;
	}
	b->start = b->end = 0;
	return b;
}

void
buf_give(struct buf_pool *pool, struct buf **bp)
{
	struct buf *b = *bp;

	if (b == NULL)
		return;
	*bp = NULL;
	if (pool->n_free[b->kind] >= sizes[b->kind].keep) {
		free(b);
		return;
	}
	b->next = pool->free[b->kind];
	pool->free[b->kind] = b;
	pool->n_free[b->kind]++;
}

int
buf_resize(struct buf_pool *pool, struct buf **bp, enum buf_size kind)
{
	struct buf *b;

	if (buf_len(*bp) > sizes[kind].room ||
	    (b = buf_take(pool, kind)) == NULL)
		return -1;
	b->end = (uint32_t)buf_len(*bp);
	memcpy(b->data, (*bp)->data + (*bp)->start, b->end);
	buf_give(pool, bp);
	*bp = b;
	return 0;
}

void
buf_pack(struct buf *b)
{
	if (b->start == 0)
		return;
	memmove(b->data, b->data + b->start, buf_len(b));
	b->end -= b->start;
	b->start = 0;
}

enum buf_size
buf_size_for(size_t n)
{
	enum buf_size kind = BUF_SMALL;

	while (kind < BUF_SIZES && sizes[kind].room < n)
		kind++;
	return kind;
}

void
buf_pool_free(struct buf_pool *pool)
{
	for (int kind = 0; kind < BUF_SIZES; kind++)
		while (pool->free[kind] != NULL) {
			struct buf *b = pool->free[kind];

			pool->free[kind] = b->next;
			free(b);
		}
}
