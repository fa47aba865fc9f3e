/* frame.c: see frame.h. */
#include "common/net/frame.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/net/proto.h"

#define QUEUE_MIN 512

int
frame_peek(const uint8_t *bytes, size_t size, size_t max, size_t *message_size,
    struct err *e)
{
	size_t n;

	if (size < FRAME_HEAD_SIZE)
		return 0;
	n = (size_t)bytes[0] << 8 | bytes[1];
	if (n == 0 || n > max)
		return err_set(e, ERR_PROTOCOL,
		    "the peer announces a message of %zu bytes where 1 to %zu "
		    "are allowed",
		    n, max);
	if (size - FRAME_HEAD_SIZE < n)
		return 0;
	*message_size = n;
	return 1;
}

void
frame_put_head(uint8_t head[FRAME_HEAD_SIZE], size_t message_size)
{
	assert(message_size > 0 && message_size <= PROTO_FRAME_MAX);
	head[0] = (uint8_t)(message_size >> 8);
	head[1] = (uint8_t)message_size;
}

uint8_t *
queue_reserve(struct queue *q, size_t n)
{
	size_t size = queue_size(q), capacity = QUEUE_MIN;
	uint8_t *buf;

	if (q->capacity - q->tail >= n)
		return q->buf + q->tail;
	/* Moving pays only when it frees at least as much as it moves. */
	if (q->head >= size && q->capacity - size >= n) {
		memmove(q->buf, q->buf + q->head, size);
		q->head = 0;
		q->tail = size;
		return q->buf + size;
	}
	while (capacity < size + n)
		capacity *= 2;
	if ((buf = malloc(capacity)) == NULL)
		return NULL;
	if (size > 0)
		memcpy(buf, q->buf + q->head, size);
	free(q->buf);
	*q = (struct queue){ buf, 0, size, capacity };
	return buf + size;
}

void
queue_commit(struct queue *q, size_t n)
{
	assert(q->capacity - q->tail >= n);
	q->tail += n;
}

void
queue_drop(struct queue *q, size_t n)
{
	assert(queue_size(q) >= n);
	q->head += n;
	if (q->head < q->tail)
		return;
	free(q->buf);
	memset(q, 0, sizeof(*q));
}
