/* test_name.c: names of nodes, roles and sites, and "did you mean". */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>

#include "common/base/io.h"
#include "common/base/name.h"

#define A63 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

static void
node_names(void **state)
{
	static const struct {
		const char *name;
		bool ok;
	} cases[] = {
		{ "a", true },
		{ "web01", true },
		{ "0cluster", true },
		{ "a.b_c-d", true },
		{ A63, true },
		{ A63 "a", false },
		{ "", false },
		{ "-a", false },
		{ "a-", false },
		{ ".a", false },
		{ "a.", false },
		{ "Web", false },
		{ "a b", false },
		{ "a/b", false },
		{ "a\n", false },
		{ "w\xc3\xa9", false },
		{ "a[1]", false },
		{ "@a", false },
	};
	struct err e;

	(void)state;
	for (size_t i = 0; i < nitems(cases); i++) {
		assert_int_equal(name_valid(cases[i].name), cases[i].ok);
		assert_int_equal(name_check("node name", cases[i].name, &e),
		    cases[i].ok ? 0 : -1);
		if (!cases[i].ok)
			assert_int_equal(e.code, ERR_USAGE);
	}
}

static void
host_names(void **state)
{
	static const struct {
		const char *host;
		bool wildcard, ok;
	} cases[] = {
		{ "example.com", false, true },
		{ "xn--bcher-kva.example", false, true },
		{ "_dmarc.example.com", false, true },
		{ "*.example.com", true, true },
		{ "*.example.com", false, false },
		{ "*", true, false },
		{ "a.*.com", true, false },
		{ "a..b", false, false },
		{ ".a", false, false },
		{ "a.", false, false },
		{ "-a.b", false, false },
		{ "a-.b", false, false },
		{ A63 ".com", false, true },
		{ A63 "a.com", false, false },
		{ A63 "." A63 "." A63 "." A63, false, false },
		{ "A.com", false, false },
		{ "", false, false },
		{ "a.com:80", false, false },
	};
	struct err e;

	(void)state;
	for (size_t i = 0; i < nitems(cases); i++)
		assert_int_equal(name_check_host(cases[i].host,
				     cases[i].wildcard, &e),
		    cases[i].ok ? 0 : -1);
}

static void
suggestions(void **state)
{
	static const char *const names[] = { "web01", "web05", "db1",
		"storage" };

	(void)state;
	assert_string_equal(name_suggest("web5", names, 4), "web05");
	assert_string_equal(name_suggest("storgae", names, 4), "storage");
	assert_null(name_suggest("zzzzzz", names, 4));
	assert_null(name_suggest(A63 A63, names, 4));
	assert_null(name_suggest("web1", names, 0));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(node_names),
		cmocka_unit_test(host_names),
		cmocka_unit_test(suggestions),
	};

	return cmocka_run_group_tests_name("name", tests, NULL, NULL);
}
