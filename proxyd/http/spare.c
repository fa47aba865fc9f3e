/* spare.c: see spare.h. */
#include "proxyd/http/spare.h"

#include <stdlib.h>

#define KEPT	64  /* are never too many */
#define AT_ONCE 512 /* given back, so that nobody waits for it */
#define SHARE	2   /* of what is too much, or all if it is little */

/* What a block is meanwhile. */
struct spare_block {
	struct spare_block *next;
};

static void free_first(struct spare *);

void *
spare_take(struct spare *s, size_t size)
{
	struct spare_block *b = s->first;

	if (b == NULL)
		return malloc(size);
	s->first = b->next;
	if (--s->n < s->least)
		s->least = s->n;
	return b;
}

void
spare_put(struct spare *s, void *block)
{
	struct spare_block *b = block;

	b->next = s->first;
	s->first = b;
	s->n++;
}

/* By and by: who has left may be back in a second. */
uint32_t
spare_tidy(struct spare *s)
{
	uint32_t much = s->least > KEPT ? s->least - KEPT : 0;
	uint32_t n = much > KEPT ? much / SHARE : much;

	if (n > AT_ONCE)
		n = AT_ONCE;
	for (uint32_t i = 0; i < n; i++)
		free_first(s);
	s->least = s->n;
	return n;
}

void
spare_fini(struct spare *s)
{
	while (s->first != NULL)
		free_first(s);
	s->least = 0;
}

static void
free_first(struct spare *s)
{
	struct spare_block *b = s->first;

	s->first = b->next;
	s->n--;
	free(b);
}
