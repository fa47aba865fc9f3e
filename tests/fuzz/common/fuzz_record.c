/*
 * fuzz_record.c: records of a client with a good certificate that keeps to
 * nothing else.  The input is a list of plaintexts: size (2 bytes), bytes.
 * What reaches the agent keeps to the table of records.
 */
#include <sys/socket.h>
#include <unistd.h>

#include <event2/event.h>

#include "common/base/clock.h"
#include "common/net/stream.h"
#include "identities.h"

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size);

static bool is_closed;

static void
on_record(struct channel *c, enum record_type type, const uint8_t *body,
    size_t size, void *arg)
{
	const struct record_spec *spec = record_spec(type);

	(void)body;
	(void)arg;
	if (spec == NULL || !(spec->from & FROM_CLIENT) || size < spec->min ||
	    size > spec->max || type == REC_PING || type == REC_PONG ||
	    channel_peer(c) == NULL)
		abort();
}

static void
on_closed(struct channel *c, const struct err *why, void *arg)
{
	(void)c;
	(void)why;
	(void)arg;
	is_closed = true;
}

static const struct channel_policy policy = { .admit = admit };
static const struct channel_handlers handlers = {
	.record = on_record,
	.closed = on_closed,
};

static void
send_frame(int fd, uint8_t *frame, size_t message_size)
{
	size_t size = FRAME_HEAD_SIZE + message_size;

	frame_put_head(frame, message_size);
	if (send(fd, frame, size, MSG_NOSIGNAL) == -1)
		is_closed = true;
}

/* The client's half of the handshake, by hand. */
static void
shake_hands(struct event_base *base, int fd, struct noise_cipher *out)
{
	uint8_t frame[FRAME_HEAD_SIZE + PROTO_HANDSHAKE_MAX];
	int64_t now_ms = clock_wall_ms();
	struct noise_cipher in;
	struct handshake h;
	struct peer peer;
	struct err e;
	size_t n;
	ssize_t got;

	handshake_client(&h, &client, server.public);
	if (handshake_offer(&h, now_ms, frame + FRAME_HEAD_SIZE, &n, &e) == -1)
		abort();
	send_frame(fd, frame, n);
	event_base_loop(base, EVLOOP_NONBLOCK);
	got = recv(fd, frame, sizeof(frame), 0);
	if (got < FRAME_HEAD_SIZE ||
	    handshake_conclude(&h, frame + FRAME_HEAD_SIZE,
		(size_t)got - FRAME_HEAD_SIZE, now_ms, &peer, &e) == -1)
		abort();
	handshake_split(&h, out, &in);
}

int
LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	static uint8_t frame[FRAME_HEAD_SIZE + PROTO_FRAME_MAX];
	static struct event_base *base;
	struct noise_cipher cipher;
	struct addr from;
	struct err e;
	int sv[2];

	make_identities();
	if (base == NULL)
		base = event_base_new();
	if (size > 16384 ||
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0,
		sv) == -1 ||
	    addr_parse("10.0.0.1:1", 1, &from, &e) == -1)
		return 0;
	is_closed = false;
	if (channel_accept(base, sv[1], &from, &server, &policy, &handlers,
		NULL, &e) == NULL)
		abort();
	shake_hands(base, sv[0], &cipher);
	while (size >= 2 && !is_closed) {
		size_t n = (size_t)input[0] << 8 | input[1];

		input += 2;
		size -= 2;
		n = n < size ? n : size;
		memcpy(frame + FRAME_HEAD_SIZE, input, n);
		input += n;
		size -= n;
		if (noise_seal(&cipher, frame + FRAME_HEAD_SIZE, n, &e) == -1)
			abort();
		send_frame(sv[0], frame, n + NOISE_TAG_SIZE);
		event_base_loop(base, EVLOOP_NONBLOCK);
	}
	close(sv[0]);
	while (!is_closed)
		event_base_loop(base, EVLOOP_ONCE);
	return 0;
}
