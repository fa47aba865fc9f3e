/* test_site_intake.c: lines that become sites, and those that do not. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>

#include "clusterctl/site_intake.h"
#include "common/base/io.h"

static const struct field_values nothing;

/* The value of a row of site_options that was not typed is NULL. */
static struct field_values
given(const char *option, const char *value)
{
	struct field_values v = { { NULL } };

	for (size_t i = 0; i < site_options.n; i++)
		if (strcmp(site_options.rows[i].name, option) == 0)
			v.v[i] = value;
	return v;
}

static void
a_plain_name(void **state)
{
	struct field_values owner = given("owner", "anna");
	struct site s;
	struct err e;

	(void)state;
	assert_int_equal(site_intake_line("a.example", &owner, &s, &e), 0);
	assert_string_equal(s.name, "a.example");
	assert_string_equal(s.owner, "anna");
	assert_true(s.enabled);
	site_fini(&s);
}

static void
an_object(void **state)
{
	static const char line[] =
	    "{\"name\":\"a.example\",\"aliases\":[\"b.example\","
	    "\"*.c.example\"],\"enabled\":false,\"max_body\":1048576,"
	    "\"owner\":\"bert\"}";
	struct field_values owner = given("owner", "anna");
	struct site s;
	struct err e;

	(void)state;
	assert_int_equal(site_intake_line(line, &owner, &s, &e), 0);
	assert_string_equal(s.owner, "bert");
	assert_string_equal(s.aliases, "b.example *.c.example");
	assert_int_equal(s.max_body, 1048576);
	assert_false(s.enabled);
	site_fini(&s);
}

/* clang-format off */
static const struct {
	const char *line, *text;
} bad[] = {
	{ "A.example",                            "host name 'A.example'"   },
	{ "*.example",                            "host name '*.example'"   },
	{ "a.example b.example",                  "host name"               },
	{ "{",                                    "JSON"                    },
	{ "{}",                                   "\"name\""                },
	{ "{\"name\":1}",                         "\"name\""                },
	{ "{\"name\":\"a..b\"}",                  "host name 'a..b'"        },
	{ "{\"name\":\"a\",\"name\":\"b\"}",      "duplicate"               },
	{ "{\"name\":\"a\",\"ownr\":\"b\"}",      "did you mean 'owner'?"   },
	{ "{\"name\":\"a\",\"owner\":null}",      "field 'owner' is neither" },
	{ "{\"name\":\"a\",\"enabled\":\"yes\"}", "enabled"                 },
	{ "{\"name\":\"a\",\"aliases\":[\"B\"]}", "host name 'B'"           },
	{ "{\"name\":\"a\",\"max_body\":-1}",     "max_body '-1'"           },
};
/* clang-format on */

static void
bad_lines(void **state)
{
	(void)state;
	for (size_t i = 0; i < nitems(bad); i++) {
		struct site s;
		struct err e;

		if (site_intake_line(bad[i].line, &nothing, &s, &e) != -1)
			fail_msg("%s is taken", bad[i].line);
		if (strstr(e.text, bad[i].text) == NULL)
			fail_msg("%s: %s", bad[i].line, e.text);
		assert_int_equal(e.code, ERR_USAGE);
		site_fini(&s);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_plain_name),
		cmocka_unit_test(an_object),
		cmocka_unit_test(bad_lines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
