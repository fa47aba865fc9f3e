/*
 * fuzz_frame.c: what an unproven peer may write on a connection: frames of
 * any length, in any pieces.  The first byte of the input says how many bytes
 * come at a time.
 */
#include <sys/socket.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <event2/event.h>
#include <sodium.h>

#include "common/net/stream.h"

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size);

#define MAX_MESSAGE 2048

static size_t n_bytes;

static void
on_message(uint8_t *message, size_t size, void *arg)
{
	struct stream *s = arg;

	if (size == 0 || size > MAX_MESSAGE)
		abort();
	n_bytes += size + FRAME_HEAD_SIZE;
	/* Every byte is ours to change; a mode change acts at once. */
	memset(message, 0, size);
	if (size == 7)
		stream_set_mode(s, STREAM_HELD);
}

static void
on_ended(const struct err *why, void *arg)
{
	(void)why;
	stream_close(arg);
}

static void
on_nothing(void *arg)
{
	(void)arg;
}

static const struct stream_handlers handlers = {
	.connected = on_nothing,
	.message = on_message,
	.ended = on_ended,
	.flushed = on_nothing,
};

int
LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	static struct event_base *base;
	struct stream s;
	size_t piece, put = 0;
	int sv[2];

	if (base == NULL)
		base = event_base_new();
	if (size < 2 || size > 8192 ||
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0,
		sv) == -1)
		return 0;
	piece = (size_t)input[0] * 16 + 1;
	n_bytes = 0;
	stream_init(&s, base, sv[1], &handlers, &s);
	s.max = MAX_MESSAGE;
	for (input++, size--; put < size && s.mode != STREAM_CLOSED;) {
		size_t n = size - put < piece ? size - put : piece;

		put += (size_t)write(sv[0], input + put, n);
		event_base_loop(base, EVLOOP_NONBLOCK);
		stream_set_mode(&s, STREAM_READING);
	}
	close(sv[0]);
	while (s.mode != STREAM_CLOSED) {
		stream_set_mode(&s, STREAM_READING);
		event_base_loop(base, EVLOOP_NONBLOCK);
	}
	if (n_bytes > size)
		abort();
	stream_fini(&s);
	return 0;
}
