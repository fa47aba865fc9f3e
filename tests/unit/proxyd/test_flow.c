/*
 * test_flow.c: bytes from one socket to another, over socket pairs: every
 * framing into every other, readers that take little, sources that end badly.
 */
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

static void
noted(int fd, short what, void *arg)
{
	(void)fd;
	sock_event(arg, what);
}

static void
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

static void
close_ends(struct ends *s)
{
	io_close(&s->writer);
	sock_close(&s->src);
	sock_close(&s->dst);
	io_close(&s->reader);
}

/* Runs the flow when its events come, with a reader that takes `bite` bytes
 * at a time, and a source of `bytes`.  Returns how it ended. */
static enum flow_result
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
static size_t
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
static size_t
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

static void
every_framing_into_every_other(void **state)
{
	static const size_t sizes[] = { 0, 1, 5, 100, 4096, 16384, 16385, 70000,
		200000 };
	static const enum framing ins[] = { FRAMING_LENGTH, FRAMING_CHUNKED,
		FRAMING_CLOSE };
	char *payload = malloc(200000), *in = malloc(400000),
	     *got = malloc(400000);

	(void)state;
	for (size_t i = 0; i < 200000; i++)
		payload[i] = (char)(i * 31 + i / 251);
	for (size_t i = 0; i < nitems(sizes) * nitems(ins) * 2 * 2; i++) {
		size_t size = sizes[i / 4 / nitems(ins)], n_in = size, n;
		enum framing kind = ins[i / 4 % nitems(ins)];
		enum flow_out out = i & 1 ? FLOW_CHUNKS : FLOW_RAW;
		struct ends s;
		struct flow f;

		open_ends(&s);
		memcpy(in, payload, size);
		if (kind == FRAMING_CHUNKED)
			n_in = chunk(in, payload, size);
		flow_init(&f, (struct body_framing){ kind, size }, out);
		f.splice = true;
		assert_int_equal(pump(&f, &s, in, n_in, i & 2 ? 700 : 60000,
				     got, &n),
		    FLOW_FINISHED);
		assert_int_equal(f.bytes, size);
		if (out == FLOW_CHUNKS && (size > 0 || kind != FRAMING_LENGTH))
			n = unchunk(got, n);
		assert_int_equal(n, size);
		assert_memory_equal(got, payload, size);
		flow_fini(&f, &tools);
		close_ends(&s);
	}
	free(payload);
	free(in);
	free(got);
}

/* A head, and a body part of which came with it; a reader so slow that both
 * must be kept. */
static void
heads_go_first(void **state)
{
	static const char body[] = "0123456789";
	char scratch[20000], first[64 + 2 * BUF_MARGIN], got[30000];

	(void)state;
	for (size_t with = 0; with <= 10; with++) {
		struct ends s;
		struct flow f;
		enum why why;
		size_t n;

		open_ends(&s);
		memset(scratch, 'h', sizeof(scratch));
		memcpy(first + BUF_MARGIN, body, with);
		flow_init(&f, (struct body_framing){ FRAMING_LENGTH, 10 },
		    FLOW_RAW);
		assert_int_equal(flow_feed(&f, first + BUF_MARGIN, with, &why),
		    FLOW_WAITS_SRC);
		flow_head(&f, scratch, 15000, sizeof(scratch));
		event_base_loop(base, EVLOOP_NONBLOCK);
		s.dst.writable = with % 2;
		assert_int_equal(flow_run(&f, &tools, &s.src, &s.dst, &why),
		    FLOW_WAITS_DST);
		memset(scratch, 'x', sizeof(scratch)); /* others use it */
		s.dst.writable = true;
		assert_int_equal(pump(&f, &s, body + with, 10 - with, 500, got,
				     &n),
		    FLOW_FINISHED);
		assert_int_equal(n, 15010);
		for (size_t i = 0; i < 15000; i++)
			assert_int_equal(got[i], 'h');
		assert_memory_equal(got + 15000, body, 10);
		flow_fini(&f, &tools);
		close_ends(&s);
	}
}

static void
bad_ends(void **state)
{
	static const struct {
		enum framing kind;
		uint64_t length;
		const char *bytes;
		enum flow_result result;
		enum flow_out out;
	} cases[] = {
		{ FRAMING_LENGTH, 5, "hel", FLOW_CUT, FLOW_RAW },
		{ FRAMING_LENGTH, 5, "hel", FLOW_CUT, FLOW_CHUNKS },
		{ FRAMING_CHUNKED, 0, "5\r\nhel", FLOW_CUT, FLOW_CHUNKS },
		{ FRAMING_CHUNKED, 0, "5\r\nhello\r\n", FLOW_CUT, FLOW_CHUNKS },
		{ FRAMING_CHUNKED, 0, "5\r\nhello\r\n0\r\n", FLOW_CUT,
		    FLOW_RAW },
		{ FRAMING_CHUNKED, 0, "5\r\nhello\r\nx\r\n", FLOW_BAD,
		    FLOW_CHUNKS },
	};
	char got[100];

	(void)state;
	for (size_t i = 0; i < nitems(cases); i++) {
		struct ends s;
		struct flow f;
		size_t n;

		open_ends(&s);
		flow_init(&f,
		    (struct body_framing){ cases[i].kind, cases[i].length },
		    cases[i].out);
		assert_int_equal(pump(&f, &s, cases[i].bytes,
				     strlen(cases[i].bytes), 50, got, &n),
		    cases[i].result);
		/* Whatever went out does not look whole. */
		assert_false(n >= 5 && memcmp(got + n - 5, CHUNK_END, 5) == 0);
		flow_fini(&f, &tools);
		close_ends(&s);
	}
}

static void
limits_and_rests(void **state)
{
	char data[64 + 2 * BUF_MARGIN], *at = data + BUF_MARGIN;
	struct flow f;
	enum why why;

	(void)state;
	flow_init(&f, (struct body_framing){ FRAMING_CLOSE, 0 }, FLOW_RAW);
	f.limit = 4;
	assert_int_equal(flow_feed(&f, at, 5, &why), FLOW_TOO_LARGE);

	memcpy(at, "helloGET /", 10);
	flow_init(&f, (struct body_framing){ FRAMING_LENGTH, 5 }, FLOW_RAW);
	assert_int_equal(flow_feed(&f, at, 10, &why), FLOW_WAITS_SRC);
	assert_int_equal(f.state, FLOW_ENDED);
	assert_int_equal(f.rest_size, 5);
	assert_memory_equal(f.rest, "GET /", 5);

	memcpy(at, "1\r\na\r\n0\r\n\r\nGET /", 16);
	flow_init(&f, (struct body_framing){ FRAMING_CHUNKED, 0 }, FLOW_CHUNKS);
	assert_int_equal(flow_feed(&f, at, 16, &why), FLOW_WAITS_SRC);
	assert_int_equal(f.rest_size, 5);
	assert_memory_equal(f.rest, "GET /", 5);
	assert_int_equal(f.size, 11);
	assert_memory_equal(f.data, "1\r\na\r\n0\r\n\r\n", 11);
}

/* A source that may not be read is not listened to, and heard again. */
static void
a_blocked_flow_mutes_its_source(void **state)
{
	char bytes[30000], got[sizeof(bytes)];
	struct ends s;
	struct flow f;
	enum why why;
	size_t n;

	(void)state;
	open_ends(&s);
	memset(bytes, 'x', sizeof(bytes));
	flow_init(&f, (struct body_framing){ FRAMING_CLOSE, 0 }, FLOW_RAW);
	assert_int_equal(send(s.writer, bytes, 20000, 0), 20000);
	event_base_loop(base, EVLOOP_NONBLOCK);
	assert_int_equal(flow_run(&f, &tools, &s.src, &s.dst, &why),
	    FLOW_WAITS_DST);
	assert_false(s.src.muted);
	assert_int_equal(send(s.writer, bytes, 100, 0), 100);
	event_base_loop(base, EVLOOP_NONBLOCK);
	assert_int_equal(flow_run(&f, &tools, &s.src, &s.dst, &why),
	    FLOW_WAITS_DST);
	assert_true(s.src.muted);
	assert_int_equal(pump(&f, &s, bytes + 20100, sizeof(bytes) - 20100, 700,
			     got, &n),
	    FLOW_FINISHED);
	assert_false(s.src.muted);
	assert_int_equal(n, sizeof(bytes));
	flow_fini(&f, &tools);
	close_ends(&s);
}

/* A filter that says every byte twice, holds half of what it gets until it is
 * flushed, and gives no more than a few bytes a turn. */
struct echo {
	struct flow_filter filter;
	char held[1400000];
	size_t from, to;
};

static ssize_t
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

static void
a_filter_turns_the_payload(void **state)
{
	static const size_t sizes[] = { 1, 100, 16384, 70000, 150000 };
	static const enum framing ins[] = { FRAMING_LENGTH, FRAMING_CHUNKED,
		FRAMING_CLOSE };
	char *payload = malloc(150000), *in = malloc(400000),
	     *got = malloc(400000);
	struct echo *e = malloc(sizeof(*e));

	(void)state;
	for (size_t i = 0; i < 150000; i++)
		payload[i] = (char)(i * 17 + i / 300);
	for (size_t i = 0; i < nitems(sizes) * nitems(ins) * 2 * 2; i++) {
		size_t size = sizes[i / 4 / nitems(ins)], n_in = size, n;
		enum framing kind = ins[i / 4 % nitems(ins)];
		struct ends s;
		struct flow f;

		open_ends(&s);
		memcpy(in, payload, size);
		if (kind == FRAMING_CHUNKED)
			n_in = chunk(in, payload, size);
		flow_init(&f, (struct body_framing){ kind, size },
		    i & 1 ? FLOW_CHUNKS : FLOW_RAW);
		f.splice = true;
		*e = (struct echo){ .filter.turn = echo_turn };
		flow_filter(&f, &e->filter);
		assert_int_equal(pump(&f, &s, in, n_in, i & 2 ? 700 : 60000,
				     got, &n),
		    FLOW_FINISHED);
		assert_int_equal(f.bytes, size);
		assert_int_equal(f.written, n);
		if (i & 1)
			n = unchunk(got, n);
		assert_int_equal(n, 2 * size);
		for (size_t k = 0; k < n; k++)
			assert_int_equal(got[k], payload[k / 2]);
		flow_fini(&f, &tools);
		close_ends(&s);
	}
	free(payload);
	free(in);
	free(got);
	free(e);
}

/* What came goes out though the body goes on: nothing waits in a filter. */
static void
a_filter_is_flushed(void **state)
{
	struct echo *e = calloc(1, sizeof(*e));
	char got[100];
	struct ends s;
	struct flow f;
	enum why why;

	(void)state;
	open_ends(&s);
	e->filter.turn = echo_turn;
	flow_init(&f, (struct body_framing){ FRAMING_CLOSE, 0 }, FLOW_CHUNKS);
	flow_filter(&f, &e->filter);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(send(s.writer, "ab", 2, 0), 2);
		event_base_loop(base, EVLOOP_NONBLOCK);
		assert_int_equal(flow_run(&f, &tools, &s.src, &s.dst, &why),
		    FLOW_WAITS_SRC);
		assert_null(f.buf);
		assert_null(f.raw_buf);
		assert_in_range(recv(s.reader, got, sizeof(got), 0), 9, 99);
	}
	flow_fini(&f, &tools);
	close_ends(&s);
	free(e);
}

/* No byte beyond what may be read, and written. */
static void
a_flow_keeps_within_its_leave(void **state)
{
	char *bytes = malloc(200000), *got = malloc(200000);

	(void)state;
	memset(bytes, 'x', 200000);
	for (int i = 0; i < 8; i++) {
		size_t n = 0, sent = 0, leave = 0;
		enum flow_result r = FLOW_WAITS_SRC;
		struct ends s;
		struct flow f;
		enum why why;

		open_ends(&s);
		flow_init(&f, (struct body_framing){ FRAMING_LENGTH, 190000 },
		    i & 1 ? FLOW_CHUNKS : FLOW_RAW);
		f.splice = i & 2;
		f.may_read = f.may_write = 0;
		if (i & 4)
			f.may_read = UINT64_MAX;
		flow_head(&f, got, 100, 200000);
		for (int rounds = 0; r != FLOW_FINISHED; rounds++) {
			ssize_t k =
			    send(s.writer, bytes, 190000 - sent, MSG_NOSIGNAL);

			sent += k > 0 ? (size_t)k : 0;
			event_base_loop(base, EVLOOP_NONBLOCK);
			r = flow_run(&f, &tools, &s.src, &s.dst, &why);
			assert_in_range(r, FLOW_WAITS_SRC, FLOW_FINISHED);
			assert_true(f.written <= leave);
			assert_true(i & 4 || f.bytes <= leave);
			k = recv(s.reader, got + n, 200000 - n, 0);
			n += k > 0 ? (size_t)k : 0;
			f.may_write += 777;
			if (f.may_read != UINT64_MAX)
				f.may_read += 777;
			leave += 777;
			assert_in_range(rounds, 0, 10000);
		}
		assert_int_equal(f.bytes, 190000);
		flow_fini(&f, &tools);
		close_ends(&s);
	}
	free(bytes);
	free(got);
}

static struct spool *
open_spool(uint64_t limit)
{
	struct err e;
	int fd = io_unnamed("/tmp", &e);

	assert_int_not_equal(fd, -1);
	tools.spool = spool_new(fd);
	assert_non_null(tools.spool);
	spool_limit(tools.spool, limit);
	tools.now_ms = 1;
	return tools.spool;
}

static void
close_spool(void)
{
	assert_int_equal(spool_used(tools.spool), 0);
	spool_free(tools.spool);
	tools.spool = NULL;
}

/* Gives the flow all of the source while its destination takes nothing. */
static size_t
fill_up(struct flow *f, struct ends *s, const char *bytes, size_t size)
{
	enum flow_result r = FLOW_WAITS_DST;
	enum why why;
	size_t sent = 0;

	for (int idle = 0; idle < 20 && f->state == FLOW_OPEN; idle++) {
		ssize_t n = sent < size ?
		    send(s->writer, bytes + sent, size - sent, MSG_NOSIGNAL) :
		    0;

		if (sent == size)
			shutdown(s->writer, SHUT_WR);
		if (n > 0)
			idle = 0;
		sent += n > 0 ? (size_t)n : 0;
		event_base_loop(base, EVLOOP_NONBLOCK);
		tools.now_ms += 30;
		r = flow_run(f, &tools, &s->src, &s->dst, &why);
		assert_true(r == FLOW_WAITS_DST || r == FLOW_WAITS_SRC ||
		    r == FLOW_WAITS_TURN);
	}
	return sent;
}

/* A source is done with though nobody reads, holds no memory then, and every
 * byte arrives all the same. */
static void
a_slow_reader_slows_nobody(void **state)
{
	static const enum framing ins[] = { FRAMING_LENGTH, FRAMING_CHUNKED,
		FRAMING_CLOSE };
	enum { SIZE = 700000 };
	char *payload = malloc(SIZE), *in = malloc(2 * SIZE),
	     *got = malloc(3 * SIZE), scratch[1000];
	struct echo *e = malloc(sizeof(*e));

	(void)state;
	for (size_t i = 0; i < SIZE; i++)
		payload[i] = (char)(i * 31 + i / 251);
	for (size_t i = 0; i < nitems(ins) * 2 * 2; i++) {
		enum framing kind = ins[i / 4];
		size_t n_in = SIZE, n;
		struct ends s;
		struct flow f;

		open_spool(4 << 20);
		open_ends(&s);
		memcpy(in, payload, SIZE);
		if (kind == FRAMING_CHUNKED)
			n_in = chunk(in, payload, SIZE);
		flow_init(&f, (struct body_framing){ kind, SIZE },
		    i & 1 ? FLOW_CHUNKS : FLOW_RAW);
		f.splice = true;
		f.store_max = 4 << 20;
		*e = (struct echo){ .filter.turn = echo_turn };
		if (i & 2)
			flow_filter(&f, &e->filter);
		memset(scratch, 'h', sizeof(scratch));
		flow_head(&f, scratch, 500, sizeof(scratch));
		assert_int_equal(fill_up(&f, &s, in, n_in), n_in);
		assert_int_equal(f.state, FLOW_ENDED);
		assert_null(f.buf);
		assert_null(f.raw_buf);
		assert_null(f.pipe);
		assert_true(f.store.size > SIZE / 2);
		sock_close(&s.src); /* nobody asks for it any more */
		assert_int_equal(pump(&f, &s, NULL, 0, 50000, got, &n),
		    FLOW_FINISHED);
		assert_int_equal(f.bytes, SIZE);
		for (size_t k = 0; k < 500; k++)
			assert_int_equal(got[k], 'h');
		memmove(got, got + 500, n -= 500);
		if (i & 1)
			n = unchunk(got, n);
		assert_int_equal(n, i & 2 ? 2 * SIZE : SIZE);
		assert_int_equal(flow_delivered(&f), n);
		for (size_t k = 0; k < n; k++)
			assert_int_equal(got[k], payload[i & 2 ? k / 2 : k]);
		flow_fini(&f, &tools);
		close_ends(&s);
		close_spool();
	}
	free(payload);
	free(in);
	free(got);
	free(e);
}

/* Within its bound, and the spool's: then the source waits as ever. */
static void
a_store_is_bounded(void **state)
{
	enum { SIZE = 3 << 20 };
	char *bytes = malloc(SIZE), *got = malloc(SIZE);

	(void)state;
	for (size_t i = 0; i < SIZE; i++)
		bytes[i] = (char)(i * 7 + i / 1000);
	for (int i = 0; i < 8; i++) {
		uint64_t limit = i & 1 ? 10 * SPOOL_BLOCK : 100 * SPOOL_BLOCK;
		size_t n, sent;
		struct ends s;
		struct flow f;

		open_spool(limit);
		open_ends(&s);
		flow_init(&f, (struct body_framing){ FRAMING_LENGTH, SIZE },
		    FLOW_RAW);
		f.splice = i & 2;
		f.store_max = i & 4 ? 300000 : UINT64_MAX;
		sent = fill_up(&f, &s, bytes, SIZE);
		assert_int_equal(f.refused, (i & 1) && !(i & 4));
		assert_int_equal(spool_fulls(tools.spool), f.refused);
		assert_true(spool_used(tools.spool) <= limit);
		assert_int_equal(f.state, i & 5 ? FLOW_OPEN : FLOW_ENDED);
		if (i & 4)
			assert_in_range(f.store.size, 300000, 1500000);
		tools.now_ms++;
		assert_int_equal(pump(&f, &s, bytes + sent, SIZE - sent, 100000,
				     got, &n),
		    FLOW_FINISHED);
		assert_int_equal(n, SIZE);
		assert_memory_equal(got, bytes, SIZE);
		flow_fini(&f, &tools);
		close_ends(&s);
		close_spool();
	}
	free(bytes);
	free(got);
}

/* Whoever takes what comes, if in bites, has nothing put away. */
static void
a_quick_reader_needs_no_store(void **state)
{
	char *bytes = calloc(1, 2000000), *got = malloc(2000000);
	struct ends s;
	struct flow f;
	size_t n;

	(void)state;
	open_spool(4 << 20);
	open_ends(&s);
	flow_init(&f, (struct body_framing){ FRAMING_CLOSE, 0 }, FLOW_RAW);
	f.store_max = UINT64_MAX;
	assert_int_equal(pump(&f, &s, bytes, 2000000, 10000, got, &n),
	    FLOW_FINISHED);
	assert_int_equal(n, 2000000);
	assert_int_equal(f.store.total, 0);
	flow_fini(&f, &tools);
	close_ends(&s);
	close_spool();
	free(bytes);
	free(got);
}

static int
open_base(void **state)
{
	struct err e;

	(void)state;
	base = engine_event_base(&e);
	return base == NULL || sock_loop_init(&loop, base) == -1;
}

static int
free_pools(void **state)
{
	(void)state;
	buf_pool_free(&bufs);
	pipe_pool_free(&pipes);
	sock_loop_fini(&loop);
	event_base_free(base);
	return 0;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_framing_into_every_other),
		cmocka_unit_test(heads_go_first),
		cmocka_unit_test(bad_ends),
		cmocka_unit_test(limits_and_rests),
		cmocka_unit_test(a_blocked_flow_mutes_its_source),
		cmocka_unit_test(a_filter_turns_the_payload),
		cmocka_unit_test(a_filter_is_flushed),
		cmocka_unit_test(a_flow_keeps_within_its_leave),
		cmocka_unit_test(a_slow_reader_slows_nobody),
		cmocka_unit_test(a_store_is_bounded),
		cmocka_unit_test(a_quick_reader_needs_no_store),
	};

	return cmocka_run_group_tests_name("flow", tests, open_base,
	    free_pools);
}
