/* test_access_log.c: lines in three formats, and what may stand in them. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/io.h"
#include "common/base/json.h"
#include "proxyd/http/access_log.h"
#include "proxyd/process/log_ring.h"

#define T(s)                     \
	{                        \
		s, sizeof(s) - 1 \
	}

static struct access_log_entry
plain(void)
{
	return (struct access_log_entry){
		.client = T("192.0.2.1"),
		.host = T("a.example"),
		.site = T("example"),
		.method = T("GET"),
		.target = T("/x?y"),
		.version = T("HTTP/1.1"),
		.referer = T("http://b/"),
		.agent = T("curl/8"),
		.request_id = T("id"),
		.node = T("n1"),
		.status = 200,
		.bytes_out = 5,
		.wall_ms = 1796034030042,
		.total_us = 1500,
		.queue_us = -1,
		.connect_us = -1,
		.node_us = 900,
		.attempts = 1,
	};
}

static void
formats(void **state)
{
	static const struct {
		enum snap_log_format format;
		const char *want;
	} cases[] = {
		{ SNAP_LOG_COMMON,
		    "192.0.2.1 - - [30/Nov/2026:10:20:30 +0000] "
		    "\"GET /x?y HTTP/1.1\" 200 5\n" },
		{ SNAP_LOG_COMBINED,
		    "192.0.2.1 - - [30/Nov/2026:10:20:30 +0000] "
		    "\"GET /x?y HTTP/1.1\" 200 5 \"http://b/\" \"curl/8\"\n" },
		{ SNAP_LOG_OFF, "" },
	};
	struct access_log_entry entry = plain();
	char line[1000];

	(void)state;
	for (size_t i = 0; i < nitems(cases); i++) {
		size_t n = access_log_format(line, sizeof(line),
		    cases[i].format, &entry);

		line[n] = '\0';
		assert_string_equal(line, cases[i].want);
	}
}

static void
what_is_missing(void **state)
{
	static const struct log_text none = { NULL, 0 };
	struct access_log_entry entry = plain();
	char line[1000];
	size_t n;

	(void)state;
	entry.method = entry.target = entry.version = none;
	entry.referer = entry.agent = none;
	n = access_log_format(line, sizeof(line), SNAP_LOG_COMBINED, &entry);
	line[n] = '\0';
	assert_string_equal(line,
	    "192.0.2.1 - - [30/Nov/2026:10:20:30 +0000] "
	    "\"-\" 200 5 \"-\" \"-\"\n");
}

static void
json(void **state)
{
	struct access_log_entry entry = plain();
	const char *text;
	char line[2000];
	struct err e;
	int64_t number;
	json_t *o;
	size_t n;

	(void)state;
	entry.agent = (struct log_text){ "\"\\\n\x01\xff{}", 7 };
	entry.why = WHY_NODE_FULL;
	entry.attempts = 2;
	n = access_log_format(line, sizeof(line), SNAP_LOG_JSON, &entry);
	assert_int_equal(line[n - 1], '\n');
	o = json_parse_object(line, n - 1, sizeof(line), &e);
	assert_non_null(o);
	assert_int_equal(json_get_string(o, "agent", 99, &text, &e), 0);
	assert_string_equal(text, "\"\\\n\x01\xc3\xbf{}");
	assert_int_equal(json_get_string(o, "time", 99, &text, &e), 0);
	assert_string_equal(text, "2026-11-30T10:20:30.042Z");
	assert_int_equal(json_get_string(o, "why", 99, &text, &e), 0);
	assert_string_equal(text, "node_full");
	assert_int_equal(json_get_int(o, "node_us", 0, 9999, &number, &e), 0);
	assert_int_equal(number, 900);
	assert_null(json_object_get(o, "queue_us"));
	json_decref(o);
}

/* Whatever the values, one line, of printable ASCII, with quotes only where
 * the format has them, and never lost for its length. */
static void
nothing_can_be_forged(void **state)
{
	static char wild[70000], line[LOG_LINE_MAX];
	struct access_log_entry entry = plain();
	struct log_text *texts[] = { &entry.client, &entry.host, &entry.site,
		&entry.method, &entry.target, &entry.version, &entry.referer,
		&entry.agent, &entry.request_id, &entry.node };

	(void)state;
	for (size_t i = 0; i < sizeof(wild); i++)
		wild[i] = (char)((i * 7 + i / 256) % 255 + 1);
	for (size_t i = 0; i < nitems(texts); i++)
		*texts[i] = (struct log_text){ wild, sizeof(wild) };
	for (int format = SNAP_LOG_COMMON; format <= SNAP_LOG_JSON; format++) {
		size_t n = access_log_format(line, sizeof(line),
		    (enum snap_log_format)format, &entry);

		assert_in_range(n, 1000, LOG_LINE_MAX);
		for (size_t i = 0; i < n - 1; i++)
			assert_true(line[i] >= 0x20 && line[i] < 0x7f);
		assert_int_equal(line[n - 1], '\n');
		if (format == SNAP_LOG_JSON) {
			struct err e;
			json_t *o =
			    json_parse_object(line, n - 1, sizeof(line), &e);

			assert_non_null(o);
			json_decref(o);
		}
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(formats),
		cmocka_unit_test(what_is_missing),
		cmocka_unit_test(json),
		cmocka_unit_test(nothing_can_be_forged),
	};

	return cmocka_run_group_tests_name("access_log", tests, NULL, NULL);
}
