/* test_check.c: what checks say, and what counts as an answer. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>
#include <unistd.h>

#include "common/base/io.h"
#include "proxyd/http/proxy_header.h"
#include "proxyd/process/check.h"
#include "proxyd/process/check_mysql.h"
#include "proxyd/process/snapshot_plan.h"

#define GREETING                                                     \
	"\x4a\0\0\0\x0a"                                             \
	"8.0.36\0\x05\0\0\0abcdefgh\0\xff\xff\x21\x02\0\xff\xdf\x15" \
	"\0\0\0\0\0\0\0\0\0\0ijklmnopqrst\0caching_sha2_password"
#define OK	   "\x07\0\0\x02\0\0\0\x02\0\0\0"
#define DENIED	   "\x12\0\0\x02\xff\x15\x04#28000Access de"
#define BYTES(s)   (s), sizeof(s) - 1
#define LITERAL(s) (s), sizeof(s)

/* A snapshot of one role with one node. */
static struct snapshot *
world(uint32_t kind, const char *text, uint32_t proxy)
{
	struct plan_role role = { .name = "r",
		.check_text = text,
		.r = { .check = kind,
		    .check_low = 200,
		    .check_high = 299,
		    .proxy = proxy } };
	struct plan_node node = { .name = "n1" };
	struct snapshot *s;
	struct snapshot_plan *p;
	struct err e;
	uint32_t index;
	int fd;

	assert_non_null(p = plan_new(1, &e));
	assert_int_equal(plan_role(p, &role, &index, &e), 0);
	assert_int_equal(plan_node(p, index, &node, &e), 0);
	assert_int_equal(plan_write(p, &fd, &e), 0);
	plan_free(p);
	assert_non_null(s = snapshot_map(fd, &e));
	close(fd);
	return s;
}

static struct check
check_of(const struct snapshot *s)
{
	return (struct check){ .snap = s,
		.role = snapshot_role(s, 0),
		.node = snapshot_node(s, 0) };
}

/* Byte by byte, and what is said on the way. */
static enum why
hear(struct check *c, const char *bytes, size_t n, struct check_say *say)
{
	enum why why = WHY_NONE;

	say->size = 0;
	for (size_t i = 0; i < n && why == WHY_NONE; i++) {
		c->heard[c->heard_size++] = bytes[i];
		why = check_goes_on(c, say);
		if (say->size > 0)
			assert_int_equal(i, n - 1);
	}
	return why;
}

static void
only_http_is_an_answer(void **state)
{
	static const struct {
		const char *bytes;
		int status;
	} cases[] = {
		{ "HTTP/1.1 200", 200 },
		{ "HTTP/1.0 404", 404 },
		{ "HTTP/1.1 503 x", 503 },
		{ "", 0 },
		{ "HTT", 0 },
		{ "HTTP/1.1 20", 0 },
		{ "SSH-2.0", -1 },
		{ "HTTP/2.0 200", -1 },
		{ "HTTP/1.1\t200", -1 },
		{ "HTTP/1.1 2x0", -1 },
		{ "HTTP/1.1 999", -1 },
		{ "HTTP/1.1 000", -1 },
	};

	(void)state;
	for (size_t i = 0; i < nitems(cases); i++)
		assert_int_equal(check_status(cases[i].bytes,
				     strlen(cases[i].bytes)),
		    cases[i].status);
}

/* --- what is said first */

static void
each_begins_in_its_way(void **state)
{
	static const struct {
		uint32_t kind, proxy;
		const char *said;
		enum why why;
	} cases[] = {
		{ SNAP_CHECK_TCP, SNAP_PROXY_OFF, "", WHY_CHECK_OK },
		{ SNAP_CHECK_TCP, SNAP_PROXY_V1,
		    "PROXY TCP4 10.0.0.1 10.0.0.2 5 80\r\n", WHY_CHECK_OK },
		{ SNAP_CHECK_HTTP, SNAP_PROXY_OFF, "GET /up HTTP/1.1\r\n",
		    WHY_NONE },
		{ SNAP_CHECK_HTTP, SNAP_PROXY_V1,
		    "PROXY TCP4 10.0.0.1 10.0.0.2 5 80\r\nGET /up HTTP/1.1\r\n"
		    "Host: n1\r\n",
		    WHY_NONE },
		{ SNAP_CHECK_MYSQL, SNAP_PROXY_OFF, "", WHY_NONE },
	};
	struct proxy_header ends = { .secure = false };
	struct check_say say;
	struct err e;

	(void)state;
	assert_int_equal(addr_parse("10.0.0.1:5", 0, &ends.from, &e), 0);
	assert_int_equal(addr_parse("10.0.0.2:80", 0, &ends.to, &e), 0);
	for (size_t i = 0; i < nitems(cases); i++) {
		struct snapshot *s =
		    world(cases[i].kind, "/up", cases[i].proxy);
		struct check c = check_of(s);

		assert_int_equal(check_begin(&c, &ends, &say), cases[i].why);
		assert_true(say.size >= strlen(cases[i].said));
		assert_memory_equal(say.bytes, cases[i].said,
		    strlen(cases[i].said));
		if (*cases[i].said == '\0')
			assert_int_equal(say.size, 0);
		snapshot_release(s);
	}
}

static void
version_2_says_that_nobody_is_passed_on(void **state)
{
	struct snapshot *s = world(SNAP_CHECK_MYSQL, "", SNAP_PROXY_V2);
	struct proxy_header ends = { .secure = false }, read;
	struct check c = check_of(s);
	struct check_say say;
	size_t size;

	(void)state;
	assert_int_equal(check_begin(&c, &ends, &say), WHY_NONE);
	assert_int_equal(proxy_header_read(say.bytes, say.size, &read, &size),
	    PROXY_READ_DONE);
	assert_int_equal(say.bytes[12], 0x20);
	snapshot_release(s);
}

static void
a_status_out_of_range_is_told(void **state)
{
	struct snapshot *s = world(SNAP_CHECK_HTTP, "/", SNAP_PROXY_OFF);
	struct proxy_header ends = { .secure = false };
	struct check c = check_of(s);
	struct check_say say;

	(void)state;
	check_begin(&c, &ends, &say);
	assert_int_equal(hear(&c, BYTES("HTTP/1.1 204"), &say), WHY_CHECK_OK);
	check_begin(&c, &ends, &say);
	assert_int_equal(hear(&c, BYTES("HTTP/1.1 503"), &say),
	    WHY_CHECK_STATUS);
	assert_string_equal(c.detail, "503");
	check_begin(&c, &ends, &say);
	assert_string_equal(c.detail, "");
	snapshot_release(s);
}

/* --- MySQL */

static void
a_greeting_is_enough_without_a_user(void **state)
{
	static const struct {
		const char *bytes;
		size_t n;
		enum why why;
		const char *detail;
	} cases[] = {
		{ LITERAL(GREETING), WHY_CHECK_OK, "" },
		{ BYTES("\x17\0\0\0\xff\x10\x04Too many connections"),
		    WHY_CHECK_ERROR, "1040 Too many connections" },
		{ BYTES("\x0c\0\0\0\xff\x69\x04#HY000\x1b[m"), WHY_CHECK_ERROR,
		    "1129 ?[m" },
		{ BYTES("\x03\0\0\0\xff\x69\x04"), WHY_CHECK_ERROR, "1129 " },
		{ BYTES("\x02\0\0\0\xff\x69"), WHY_CHECK_GARBAGE, "" },
		{ BYTES("HTTP/1.1 400 Bad Request\r\n\r\n"), WHY_CHECK_GARBAGE,
		    "" },
		{ BYTES("SSH-2.0-x\r\n"), WHY_CHECK_GARBAGE, "" },
		{ BYTES("\0\0\0\0"), WHY_CHECK_GARBAGE, "" },
		{ BYTES("\x4a\0\0\x01"), WHY_CHECK_GARBAGE, "" },
		{ BYTES("\0\x02\0\0"), WHY_CHECK_GARBAGE, "" },
		{ BYTES("\x07\0\0\0\0\0\0\x02\0\0\0"), WHY_CHECK_GARBAGE, "" },
		{ BYTES("\x08\0\0\0\x0a"
			"8.0.36\0"),
		    WHY_CHECK_GARBAGE, "" },
		{ BYTES("\x08\0\0\0\x0a"
			"8.0.369"),
		    WHY_CHECK_GARBAGE, "" },
		{ BYTES("\x4a\0\0"), WHY_NONE, "" },
	};
	struct snapshot *s = world(SNAP_CHECK_MYSQL, NULL, SNAP_PROXY_OFF);
	struct proxy_header ends = { .secure = false };
	struct check_say say;

	(void)state;
	for (size_t i = 0; i < nitems(cases); i++) {
		struct check c = check_of(s);

		check_begin(&c, &ends, &say);
		assert_int_equal(hear(&c, cases[i].bytes, cases[i].n, &say),
		    cases[i].why);
		assert_int_equal(say.size, 0);
		assert_string_equal(c.detail, cases[i].detail);
	}
	snapshot_release(s);
}

static void
a_user_logs_in_and_says_good_bye(void **state)
{
	static const char quit[] = { 1, 0, 0, 0, 1 };
	static const char empty[] = { 0, 0, 0, 3 };
	struct snapshot *s = world(SNAP_CHECK_MYSQL, "muster", SNAP_PROXY_OFF);
	struct proxy_header ends = { .secure = false };
	struct check c = check_of(s);
	struct check_say say;

	(void)state;
	check_begin(&c, &ends, &say);
	assert_int_equal(hear(&c, LITERAL(GREETING), &say), WHY_NONE);
	assert_int_equal(say.bytes[0], (int)say.size - 4);
	assert_int_equal(say.bytes[3], 1);
	assert_string_equal(say.bytes + 4 + 32, "muster");
	assert_int_equal(say.bytes[4 + 32 + 7], 0);
	assert_string_equal(say.bytes + 4 + 32 + 8, "mysql_native_password");
	assert_int_equal(hear(&c, BYTES(OK), &say), WHY_CHECK_OK);
	assert_int_equal(say.size, sizeof(quit));
	assert_memory_equal(say.bytes, quit, sizeof(quit));
	/* Refused. */
	check_begin(&c, &ends, &say);
	hear(&c, LITERAL(GREETING), &say);
	assert_int_equal(hear(&c, BYTES(DENIED), &say), WHY_CHECK_ERROR);
	assert_string_equal(c.detail, "1045 Access de");
	/* Another way to log in, which without a password is as empty. */
	check_begin(&c, &ends, &say);
	hear(&c, LITERAL(GREETING), &say);
	assert_int_equal(hear(&c,
			     BYTES("\x03\0\0\x02\xfe"
				   "x\0"),
			     &say),
	    WHY_NONE);
	assert_int_equal(say.size, sizeof(empty));
	assert_memory_equal(say.bytes, empty, sizeof(empty));
	assert_int_equal(hear(&c, BYTES("\x07\0\0\x04\0\0\0\x02\0\0\0"), &say),
	    WHY_CHECK_OK);
	/* Again and again. */
	check_begin(&c, &ends, &say);
	hear(&c, LITERAL(GREETING), &say);
	hear(&c,
	    BYTES("\x03\0\0\x02\xfe"
		  "x\0"),
	    &say);
	hear(&c,
	    BYTES("\x03\0\0\x04\xfe"
		  "x\0"),
	    &say);
	assert_int_equal(hear(&c,
			     BYTES("\x03\0\0\x06\xfe"
				   "x\0"),
			     &say),
	    WHY_CHECK_GARBAGE);
	snapshot_release(s);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_http_is_an_answer),
		cmocka_unit_test(each_begins_in_its_way),
		cmocka_unit_test(version_2_says_that_nobody_is_passed_on),
		cmocka_unit_test(a_status_out_of_range_is_told),
		cmocka_unit_test(a_greeting_is_enough_without_a_user),
		cmocka_unit_test(a_user_logs_in_and_says_good_bye),
	};

	return cmocka_run_group_tests_name("check", tests, NULL, NULL);
}
