/*
 * test_flow_store.c: flows with a store: readers that take nothing, and bodies
 * that are held before there is anybody to read them.
 */
#include "tests/unit/proxyd/flow_ends.h"

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
	     *got = malloc(4 * SIZE), scratch[1000];
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
	char *bytes = malloc(SIZE), *got = malloc(SIZE + 100000);

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
	char *bytes = calloc(1, 2000000), *got = malloc(2100000);
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

/* --- held before there is a destination */

/* Collects what the source says in bites; how that ended. */
static enum flow_result
collect(struct flow *f, struct ends *s, const char *bytes, size_t size,
    size_t bite, size_t *sent)
{
	enum flow_result r = FLOW_WAITS_SRC;
	enum why why = WHY_NONE;

	*sent = 0;
	while (r == FLOW_WAITS_SRC || r == FLOW_WAITS_TURN) {
		size_t most = size - *sent < bite ? size - *sent : bite;
		ssize_t n = send(s->writer, bytes + *sent, most, MSG_NOSIGNAL);

		*sent += n > 0 ? (size_t)n : 0;
		if (most == 0)
			shutdown(s->writer, SHUT_WR);
		event_base_loop(base, EVLOOP_NONBLOCK);
		r = flow_collect(f, &tools, &s->src, &why);
	}
	return r;
}

static void
fill(char *bytes, size_t size)
{
	for (size_t i = 0; i < size; i++)
		bytes[i] = (char)(i * 37 + i / 257);
}

/* Bodies of all sizes are held, sent, and sent again from the start, also
 * when the first time broke off in the middle. */
static void
what_is_held_can_be_sent_again(void **state)
{
	static const size_t sizes[] = { 1, 2000, 2049, 16384, 65535, 65536,
		65537, 131072, 200000, 900000 };
	char *body = malloc(900000), *in = malloc(1800000),
	     *got = malloc(1000000);

	(void)state;
	fill(body, 900000);
	for (size_t i = 0; i < nitems(sizes) * 4; i++) {
		size_t size = sizes[i / 4], n_in = size, n, sent;
		bool chunked = i & 1;
		struct ends s;
		struct flow f;
		enum why why;

		open_spool(4 << 20);
		open_ends(&s);
		memcpy(in, body, size);
		if (chunked)
			n_in = chunk(in, body, size);
		flow_init(&f,
		    (struct body_framing){
			chunked ? FRAMING_CHUNKED : FRAMING_LENGTH, size },
		    FLOW_RAW);
		f.store_max = 4 << 20;
		f.splice = true;
		assert_int_equal(collect(&f, &s, in, n_in, i & 2 ? 999 : 70000,
				     &sent),
		    FLOW_FINISHED);
		assert_int_equal(f.bytes, size);
		assert_true(f.size <= FLOW_MEMORY + 65536);
		flow_hold(&f);
		f.store_max = 0;
		for (int again = 0; again < 3; again++) {
			flow_rewind(&f, &tools);
			if (again == 2)
				flow_send_once(&f, &tools);
			if (again == 0) {
				flow_run(&f, &tools, NULL, &s.dst, &why);
				while (recv(s.reader, got, 900000, 0) > 0)
					;
				continue;
			}
			event_base_loop(base, EVLOOP_NONBLOCK);
			assert_int_equal(pump(&f, &s, NULL, 0, 65536, got, &n),
			    FLOW_FINISHED);
			assert_int_equal(n, size);
			assert_memory_equal(got, body, size);
		}
		assert_int_equal(spool_used(tools.spool), 0);
		flow_fini(&f, &tools);
		close_ends(&s);
		close_spool();
	}
	free(body);
	free(in);
	free(got);
}

/* What does not fit goes through: what is held first, then the rest; of
 * chunks the first one is what was held. */
static void
what_does_not_fit_goes_through(void **state)
{
	enum { SIZE = 900000 };
	char *body = malloc(SIZE), *in = malloc(2 * SIZE),
	     *got = malloc(2 * SIZE);

	(void)state;
	fill(body, SIZE);
	for (int i = 0; i < 8; i++) {
		size_t n_in = SIZE, n, sent, head;
		uint64_t first = 0;
		struct ends s;
		struct flow f;
		char line[32];

		open_spool(i & 2 ? 3 * SPOOL_BLOCK : 0);
		open_ends(&s);
		memcpy(in, body, SIZE);
		if (i & 1)
			n_in = chunk(in, body, SIZE);
		flow_init(&f,
		    (struct body_framing){
			i & 1 ? FRAMING_CHUNKED : FRAMING_LENGTH, SIZE },
		    FLOW_RAW);
		f.store_max = i & 4 ? 2 * SPOOL_BLOCK : UINT64_MAX;
		assert_int_equal(collect(&f, &s, in, n_in, 5000, &sent),
		    FLOW_WAITS_DST);
		assert_int_equal(f.state, FLOW_OPEN);
		if (i & 1)
			assert_int_equal(flow_open_chunk(&f, &tools, &first),
			    0);
		flow_hold(&f);
		f.store_max = 0;
		flow_rewind(&f, &tools);
		flow_send_once(&f, &tools);
		head = first == 0 ? 0 :
				    (size_t)snprintf(line, sizeof(line),
					"%zx\r\n", (size_t)first);
		flow_head(&f, line, head, sizeof(line));
		assert_int_equal(pump(&f, &s, in + sent, n_in - sent, 60000,
				     got, &n),
		    FLOW_FINISHED);
		if (i & 1)
			n = unchunk(got, n);
		assert_int_equal(n, SIZE);
		assert_memory_equal(got, body, SIZE);
		flow_fini(&f, &tools);
		close_ends(&s);
		close_spool();
	}
	free(body);
	free(in);
	free(got);
}

static void
bad_bodies_are_told(void **state)
{
	static const struct {
		enum framing kind;
		const char *bytes;
		enum flow_result result;
	} cases[] = {
		{ FRAMING_LENGTH, "hell", FLOW_CUT },
		{ FRAMING_CHUNKED, "5\r\nhel", FLOW_CUT },
		{ FRAMING_CHUNKED, "5\r\nhello\r\nx\r\n", FLOW_BAD },
		{ FRAMING_CHUNKED, "6\r\nhello!\r\n", FLOW_TOO_LARGE },
	};

	(void)state;
	for (size_t i = 0; i < nitems(cases); i++) {
		struct ends s;
		struct flow f;
		size_t sent;

		open_ends(&s);
		flow_init(&f, (struct body_framing){ cases[i].kind, 5 },
		    FLOW_RAW);
		f.limit = 5;
		assert_int_equal(collect(&f, &s, cases[i].bytes,
				     strlen(cases[i].bytes), 1, &sent),
		    cases[i].result);
		flow_fini(&f, &tools);
		close_ends(&s);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_slow_reader_slows_nobody),
		cmocka_unit_test(a_store_is_bounded),
		cmocka_unit_test(a_quick_reader_needs_no_store),
		cmocka_unit_test(what_is_held_can_be_sent_again),
		cmocka_unit_test(what_does_not_fit_goes_through),
		cmocka_unit_test(bad_bodies_are_told),
	};

	return cmocka_run_group_tests_name("flow_store", tests, open_base,
	    free_pools);
}
