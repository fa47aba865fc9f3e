/* test_frame.c: frames and the byte queue. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "common/net/frame.h"
#include "common/net/proto.h"

static void
lengths_are_judged_by_the_head_alone(void **state)
{
	uint8_t bytes[8] = { 0, 4, 1, 2, 3, 4, 5 };
	struct err e;
	size_t n = 99;

	(void)state;
	for (size_t have = 0; have < 6; have++)
		assert_int_equal(frame_peek(bytes, have, 4, &n, &e), 0);
	assert_int_equal(n, 99);
	assert_int_equal(frame_peek(bytes, 6, 4, &n, &e), 1);
	assert_int_equal(n, 4);
	assert_int_equal(frame_peek(bytes, 8, 4, &n, &e), 1);
	assert_int_equal(frame_peek(bytes, 2, 3, &n, &e), -1);
	assert_int_equal(e.code, ERR_PROTOCOL);
	bytes[1] = 0;
	assert_int_equal(frame_peek(bytes, 2, 3, &n, &e), -1);
	frame_put_head(bytes, PROTO_FRAME_MAX);
	assert_int_equal(frame_peek(bytes, 2, PROTO_FRAME_MAX, &n, &e), 0);
	assert_int_equal(frame_peek(bytes, 2, PROTO_FRAME_MAX - 1, &n, &e), -1);
}

/* Against a plain array: what goes in comes out, in order. */
static void
the_queue_keeps_order(void **state)
{
	struct queue q = { .buf = NULL };
	uint8_t next_in = 0, next_out = 0;
	uint32_t seed = 1;

	(void)state;
	for (int i = 0; i < 20000; i++) {
		size_t n;
		uint8_t *p;

		seed = seed * 1103515245 + 12345;
		n = seed >> 16 & 1023;
		if (seed & 0x8000) {
			assert_non_null(p = queue_reserve(&q, n + 1));
			for (size_t j = 0; j < n; j++)
				p[j] = next_in++;
			queue_commit(&q, n);
		} else if (queue_size(&q) > 0) {
			n %= queue_size(&q) + 1;
			for (size_t j = 0; j < n; j++)
				assert_int_equal(queue_bytes(&q)[j],
				    next_out++);
			queue_drop(&q, n);
		}
	}
	queue_drop(&q, queue_size(&q));
	assert_null(q.buf);
	assert_int_equal(q.capacity, 0);
}

/* A full queue that moves on does not grow for ever. */
static void
the_queue_s_memory_follows_its_content(void **state)
{
	struct queue q = { .buf = NULL };

	(void)state;
	for (int i = 0; i < 1000; i++) {
		assert_non_null(queue_reserve(&q, 1000));
		queue_commit(&q, 1000);
		if (i >= 10)
			queue_drop(&q, 1000);
		assert_true(q.capacity <= 32768);
	}
	queue_drop(&q, queue_size(&q));
	assert_null(q.buf);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lengths_are_judged_by_the_head_alone),
		cmocka_unit_test(the_queue_keeps_order),
		cmocka_unit_test(the_queue_s_memory_follows_its_content),
	};

	return cmocka_run_group_tests_name("frame", tests, NULL, NULL);
}
