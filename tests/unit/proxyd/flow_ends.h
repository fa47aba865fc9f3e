/*
 * flow_ends.h: what tests of flows share: a source and a destination made of
 * socket pairs, a loop that drives a flow between them, a filter.
 */
#ifndef TEST_FLOW_ENDS_H
#define TEST_FLOW_ENDS_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <sys/socket.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/io.h"
#include "proxyd/http/engine.h"
#include "proxyd/http/flow.h"

struct ends {
	struct sock src, dst;
	int writer, reader;
};

static struct event_base *base;
static struct sock_loop loop;
static struct buf_pool bufs;
static struct pipe_pool pipes;
static struct flow_tools tools = { .bufs = &bufs,
	.pipes = &pipes,
	.slow_rate = FLOW_SLOW };

static inline void
noted(int fd, short what, void *arg)
{
	(void)fd;
	sock_event(arg, what);
}

static inline void
open_ends(struct ends *s)
{
	const int type = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC;
	int in[2], out[2], small = 4096;

	assert_int_equal(socketpair(AF_UNIX, type, 0, in), 0);
	assert_int_equal(socketpair(AF_UNIX, type, 0, out), 0);
	setsockopt(out[1], SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
	s->writer = in[0];
	s->reader = out[0];
	assert_int_equal(sock_open(&s->src, in[1], &loop, noted, &s->src), 0);
	assert_int_equal(sock_open(&s->dst, out[1], &loop, noted, &s->dst), 0);
}

static inline void
close_ends(struct ends *s)
{
	io_close(&s->writer);
	sock_close(&s->src);
	sock_close(&s->dst);
	io_close(&s->reader);
}

/* Runs the flow when its events come, with a reader that takes `bite` bytes
 * at a time, and a source of `bytes`.  Returns how it ended. */
static inline enum flow_result
pump(struct flow *f, struct ends *s, const char *bytes, size_t size,
    size_t bite, char *got, size_t *n_got)
{
	enum flow_result r = FLOW_WAITS_SRC;
	enum why why = WHY_NONE;
	bool eof = false;

	*n_got = 0;
	for (int rounds = 0;
	     r == FLOW_WAITS_SRC || r == FLOW_WAITS_DST || r == FLOW_WAITS_TURN;
	     rounds++) {
		ssize_t n;

		if (size > 0) {
			n = send(s->writer, bytes, size, MSG_NOSIGNAL);
			bytes += n > 0 ? n : 0;
			size -= n > 0 ? (size_t)n : 0;
		} else if (!eof) {
			shutdown(s->writer, SHUT_WR);
			eof = true;
		}
		event_base_loop(base, EVLOOP_NONBLOCK);
		r = flow_run(f, &tools, f->state == FLOW_OPEN ? &s->src : NULL,
		    &s->dst, &why);
		n = recv(s->reader, got + *n_got, bite, 0);
		*n_got += n > 0 ? (size_t)n : 0;
		assert_in_range(rounds, 0, 100000); /* else it hangs */
	}
	for (;;) {
		ssize_t n = recv(s->reader, got + *n_got, 65536, 0);

		if (n <= 0)
			break;
		*n_got += (size_t)n;
	}
	return r;
}

/* Payload of chunks, which must end right. */
static inline size_t
unchunk(char *bytes, size_t size)
{
	struct chunked c;
	struct chunk_piece piece;
	size_t taken;

	chunked_init(&c);
	assert_int_equal(chunked_decode(&c, bytes, size, &piece, &taken),
	    CHUNK_DONE);
	assert_int_equal(taken, size);
	memmove(bytes, bytes + piece.start, piece.len);
	return piece.len;
}

/* In chunks of uneven sizes. */
static inline size_t
chunk(char *out, const char *payload, size_t size)
{
	size_t n = 0, step = 1;

	while (size > 0) {
		size_t len = step < size ? step : size;

		n += (size_t)snprintf(out + n, 32, "%zX\r\n", len);
		memcpy(out + n, payload, len);
		memcpy(out + n + len, CHUNK_TAIL, 2);
		n += len + 2;
		payload += len;
		size -= len;
		step = step * 3 + 1;
	}
	memcpy(out + n, CHUNK_END, 5);
	return n + 5;
}

/* A filter that says every byte twice, holds half of what it gets until it is
 * flushed, and gives no more than a few bytes a turn. */
struct echo {
	struct flow_filter filter;
	char held[1400000];
	size_t from, to;
};

static inline ssize_t
echo_turn(struct flow_filter *f, const char **in, size_t *size, char *out,
    size_t room, enum filter_push push)
{
	struct echo *e = (struct echo *)(void *)f;
	size_t n = 0, most = push == FILTER_MORE ? (e->to - e->from) / 2 : room;

	for (; *size > 0 && e->to + 2 <= sizeof(e->held); ++*in, --*size) {
		e->held[e->to++] = **in;
		e->held[e->to++] = **in;
	}
	while (n < room && n < most && e->from < e->to)
		out[n++] = e->held[e->from++];
	return (ssize_t)n;
}

static inline int
open_base(void **state)
{
	struct err e;

	(void)state;
	base = engine_event_base(&e);
	return base == NULL || sock_loop_init(&loop, base) == -1;
}

static inline int
free_pools(void **state)
{
	(void)state;
	buf_pool_free(&bufs);
	pipe_pool_free(&pipes);
	sock_loop_fini(&loop);
	event_base_free(base);
	return 0;
}

#endif
