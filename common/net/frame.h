/*
 * frame.h: messages in a byte stream (a 2-byte big-endian length, then as
 * many bytes), and the byte queue that holds what is not yet sent or not yet
 * whole.  An empty queue holds no memory.
 */
#ifndef MUSTER_FRAME_H
#define MUSTER_FRAME_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

#define FRAME_HEAD_SIZE 2

/*
 * Looks at the frame that starts at `bytes`.  1: it is whole, and
 * *message_size bytes follow the head; 0: more is needed; -1: its length is 0
 * or above `max` (told from the head alone).
 */
int frame_peek(const uint8_t *bytes, size_t size, size_t max,
    size_t *message_size, struct err *);

/* Writes the head of a message of at most PROTO_FRAME_MAX bytes. */
void frame_put_head(uint8_t head[FRAME_HEAD_SIZE], size_t message_size);

struct queue {
	uint8_t *buf;
	size_t head, tail, capacity; /* the bytes are [head, tail) */
};

static inline size_t
queue_size(const struct queue *q)
{
	return q->tail - q->head;
}

static inline uint8_t *
queue_bytes(const struct queue *q)
{
	return q->buf + q->head;
}

/* Room for n more bytes behind the last one; NULL when out of memory.  It
 * becomes part of the queue with queue_commit(). */
uint8_t *queue_reserve(struct queue *, size_t n);
void queue_commit(struct queue *, size_t n);

/* Takes n bytes off the front; the last one frees the memory. */
void queue_drop(struct queue *, size_t n);

#endif
