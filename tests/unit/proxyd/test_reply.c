/* test_reply.c: our own answers; cookies; the WebSocket handshake; buffers. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/io.h"
#include "proxyd/http/buf.h"
#include "proxyd/http/cookie.h"
#include "proxyd/http/parse_response.h"
#include "proxyd/http/reply.h"
#include "proxyd/http/websocket.h"
#include "proxyd/process/snapshot_plan.h"
#include "proxyd/process/why.h"

static const struct head_limits limits = { 8192, 64 << 10, 100 };

static void
every_refusal_has_an_answer(void **state)
{
	char out[2000];

	(void)state;
	for (int w = 0; w < WHY_N; w++) {
		struct reply r = {
			.status = why_status((enum why)w),
			.date = "now",
			.extra = "",
		};
		struct response res;
		size_t n;

		assert_non_null(why_word((enum why)w));
		if (r.status == 0)
			continue;
		n = reply_write(out, sizeof(out), &r);
		response_init(&res);
		assert_int_equal(parse_response(&res, out, n, &limits, false),
		    PARSE_DONE);
		assert_int_equal(res.status, r.status);
		assert_false(res.keep_alive);
		assert_int_equal(res.body.kind, FRAMING_LENGTH);
		assert_int_equal(res.head_len + res.body.length, n);
		/* The row is there, not the one for what is unknown. */
		if (r.status != 400)
			assert_string_not_equal(reply_reason(r.status),
			    reply_reason(400));
	}
}

static void
pages_and_heads(void **state)
{
	struct reply r = {
		.status = 503,
		.page = "<p>Mine</p>",
		.date = "now",
		.extra = "X: y\r\n",
		.retry_after_s = 5,
		.keep_alive = true,
	};
	char out[2000];
	size_t n = reply_write(out, sizeof(out), &r), head;

	(void)state;
	out[n] = '\0';
	assert_non_null(strstr(out, "\r\nRetry-After: 5\r\n"));
	assert_non_null(strstr(out, "\r\nX: y\r\n"));
	assert_non_null(strstr(out, "\r\nContent-Length: 11\r\n"));
	assert_null(strstr(out, "Connection:"));
	assert_string_equal(out + n - 11, r.page);
	r.head = true;
	head = reply_write(out, sizeof(out), &r);
	assert_int_equal(head, n - 11);
	assert_int_equal(reply_write(out, 50, &r), 0);
}

static void
accept_keys(void **state)
{
	static const char key[] = "dGhlIHNhbXBsZSBub25jZQ=="; /* RFC 6455 */
	static const char accept[] = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";

	(void)state;
	assert_true(websocket_accepts(key, 24, accept, 28));
	assert_false(websocket_accepts(key, 24, accept, 27));
	assert_false(websocket_accepts(key, 23, accept, 28));
	assert_false(websocket_accepts("", 0, "", 0));
	assert_false(websocket_accepts(accept, 100, accept, 28));
}

static void
cookies(void **state)
{
	static const char line[] = "Cookie: a=1; bb=22;b=3;  c=; d=4=5;e";
	static const struct {
		const char *name, *value;
	} cases[] = {
		{ "a", "1" },
		{ "bb", "22" },
		{ "b", "3" },
		{ "c", "" },
		{ "d", "4=5" },
		{ "e", NULL },
		{ "A", NULL },
		{ "", NULL },
	};
	struct fields fs;
	struct field f;

	(void)state;
	fields_clear(&fs);
	assert_true(
	    field_parse(&f, line, 0, sizeof(line) - 1, FIELD_SPACE_REFUSED));
	fields_add(&fs, &f, 1);
	for (size_t i = 0; i < nitems(cases); i++) {
		const char *value;
		size_t len;
		bool found =
		    cookie_find(&fs, line, cases[i].name, &value, &len);

		assert_int_equal(found, cases[i].value != NULL);
		if (!found)
			continue;
		assert_int_equal(len, strlen(cases[i].value));
		assert_memory_equal(value, cases[i].value, len);
	}
}

static void
sticky_cookies(void **state)
{
	struct plan_role role = { .name = "r", .cookie = "SRV" };
	struct err e;
	struct snapshot_plan *p = plan_new(1, &e);
	struct snapshot *snap;
	uint32_t r;
	int fd;

	(void)state;
	plan_role(p, &role, &r, &e);
	for (int64_t id = 1; id <= 3; id++) {
		struct plan_node n = { .name = "n", .n.id = id };

		plan_node(p, r, &n, &e);
	}
	assert_int_equal(plan_write(p, &fd, &e), 0);
	plan_free(p);
	snap = snapshot_map(fd, &e);
	close(fd);
	for (uint32_t i = 0; i < 3; i++) {
		char set[COOKIE_NODE_FIELD], *value;
		struct fields fs;
		struct field f;

		cookie_set_node(set, snap, snapshot_role(snap, 0),
		    snapshot_node(snap, i));
		value = strchr(set, ';');
		assert_non_null(value);
		memcpy(set, "    Cookie", 10); /* what a client says later */
		fields_clear(&fs);
		assert_true(field_parse(&f, set, 4, (uint32_t)(value - set),
		    FIELD_SPACE_REFUSED));
		fields_add(&fs, &f, 1);
		assert_int_equal(cookie_node(&fs, set, snap,
				     snapshot_role(snap, 0)),
		    i);
		value[-1] ^= 1;
		assert_int_equal(cookie_node(&fs, set, snap,
				     snapshot_role(snap, 0)),
		    SNAP_NONE);
	}
	snapshot_release(snap);
}

static void
buffers(void **state)
{
	struct buf_pool pool = { 0 };
	struct buf *b = buf_take(&pool, BUF_MEDIUM), *again = b;

	(void)state;
	memcpy(b->data + 10, "hello", 5);
	b->start = 10;
	b->end = 15;
	assert_int_equal(buf_resize(&pool, &b, BUF_SMALL), 0);
	assert_int_equal(buf_len(b), 5);
	assert_memory_equal(b->data, "hello", 5);
	assert_ptr_equal(buf_take(&pool, BUF_MEDIUM), again);
	b->end = b->room;
	assert_int_equal(buf_resize(&pool, &b, BUF_LARGE), 0);
	b->end = b->room;
	assert_int_equal(buf_resize(&pool, &b, BUF_MEDIUM), -1);
	b->start = b->end - 3;
	buf_pack(b);
	assert_int_equal(b->start, 0);
	assert_int_equal(b->end, 3);
	assert_int_equal(buf_size_for(0), BUF_SMALL);
	assert_int_equal(buf_size_for(2049), BUF_MEDIUM);
	assert_int_equal(buf_size_for(1 << 20), BUF_SIZES);
	buf_give(&pool, &again);
	buf_give(&pool, &b);
	assert_null(b);
	buf_give(&pool, &b);
	buf_pool_free(&pool);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_refusal_has_an_answer),
		cmocka_unit_test(pages_and_heads),
		cmocka_unit_test(accept_keys),
		cmocka_unit_test(cookies),
		cmocka_unit_test(sticky_cookies),
		cmocka_unit_test(buffers),
	};

	return cmocka_run_group_tests_name("reply", tests, NULL, NULL);
}
