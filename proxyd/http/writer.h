/*
 * writer.h: text put together in memory of a fixed size.  Too much is noted,
 * not written; the caller looks once, at the end.
 */
#ifndef MUSTER_WRITER_H
#define MUSTER_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct writer {
	char *start, *at, *end;
	bool full; /* something did not fit */
};

static inline void
writer_init(struct writer *w, char *buf, size_t size)
{
	w->start = w->at = buf;
	w->end = buf + size;
	w->full = false;
}

static inline void
put(struct writer *w, const char *bytes, size_t n)
{
	if ((size_t)(w->end - w->at) < n) {
		w->full = true;
		return;
	}
	if (n > 0)
		memcpy(w->at, bytes, n);
	w->at += n;
}

/* A string literal. */
#define PUT(w, literal) put(w, literal, sizeof(literal) - 1)

static inline void
put_text(struct writer *w, const char *s)
{
	put(w, s, strlen(s));
}

static inline void
put_number(struct writer *w, uint64_t n)
{
	char digits[20];
	size_t i = sizeof(digits);

	do
		digits[--i] = (char)('0' + n % 10);
	while ((n /= 10) != 0);
	put(w, digits + i, sizeof(digits) - i);
}

/* How much was written; 0 when it did not fit. */
static inline size_t
writer_size(const struct writer *w)
{
	return w->full ? 0 : (size_t)(w->at - w->start);
}

#endif
