/*
 * test_flow.c: bytes from one socket to another, over socket pairs: every
 * framing into every other, readers that take little, sources that end badly.
 */
#include "tests/unit/proxyd/flow_ends.h"

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
	};

	return cmocka_run_group_tests_name("flow", tests, open_base,
	    free_pools);
}
