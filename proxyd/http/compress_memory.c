/* compress_memory.c: see compress_memory.h. */
#include "proxyd/http/compress_memory.h"

#include <stdint.h>
#include <stdlib.h>

/* Stands before what is lent. */
struct compress_block {
	size_t size;
	struct compress_block *next; /* among the spare */
};

_Static_assert(sizeof(struct compress_block) % _Alignof(max_align_t) == 0,
    "what stands behind it is aligned");

/* A spare one that fits without much waste; NULL: none. */
static struct compress_block *
take_spare(struct compress_memory *m, size_t size)
{
	struct compress_block **at, *b;

	for (at = &m->free; (b = *at) != NULL; at = &b->next)
		if (b->size >= size && b->size - size <= size / 8) {
			*at = b->next;
			m->n_spare--;
			m->spare -= b->size;
			return b;
		}
	return NULL;
}

void *
compress_lend(void *memory, size_t size)
{
	struct compress_memory *m = memory;
	struct compress_block *b = take_spare(m, size);

	if (b == NULL) {
		if (size > SIZE_MAX - sizeof(*b) ||
		    (b = malloc(sizeof(*b) + size)) == NULL)
			return NULL;
		b->size = size;
	}
	m->used += b->size;
	return b + 1;
}

void
compress_give(void *memory, void *p)
{
	struct compress_memory *m = memory;
	struct compress_block *b;

	if (p == NULL)
		return;
	b = (struct compress_block *)p - 1;
	m->used -= b->size;
	if (m->n_spare >= COMPRESS_KEPT_MAX ||
	    m->spare + b->size > COMPRESS_KEPT_SIZE) {
		free(b);
		return;
	}
	b->next = m->free;
	m->free = b;
	m->n_spare++;
	m->spare += b->size;
}

void
compress_memory_fini(struct compress_memory *m)
{
	struct compress_block *b;

	while ((b = m->free) != NULL) {
		m->free = b->next;
		free(b);
	}
	m->n_spare = 0;
	m->spare = 0;
}
