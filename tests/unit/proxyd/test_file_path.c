/* test_file_path.c: paths of requests, and what their names say. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>

#include "common/base/io.h"
#include "proxyd/static/names.h"
#include "proxyd/static/path.h"

static void
paths(void **state)
{
	static const struct {
		const char *raw, *text; /* NULL: refused */
		int directory, normal;
	} cases[] = {
		{ "/", "", 1, 1 },
		{ "/a", "a", 0, 1 },
		{ "/a/", "a", 1, 1 },
		{ "/a/b.css", "a/b.css", 0, 1 },
		{ "/a%20b", "a b", 0, 1 },
		{ "/%61", "a", 0, 1 },
		{ "//a", "a", 0, 0 },
		{ "/a//b", "a/b", 0, 0 },
		{ "/a/./b", "a/b", 0, 0 },
		{ "/a/.", "a", 1, 0 },
		{ "/a/..", "", 1, 0 },
		{ "/a/b/..", "a", 1, 0 },
		{ "/a/b/../c", "a/c", 0, 0 },
		{ "/a/%2e%2E/c", "c", 0, 0 },
		{ "/a/b/../../c", "c", 0, 0 },
		{ "/a/..b", "a/..b", 0, 1 },
		{ "/..;/m", "..;/m", 0, 1 },
		{ "/.../m", ".../m", 0, 1 },
		{ "/\\\\evil", "\\\\evil", 0, 0 },
		{ "/a%5Cb", "a\\b", 0, 0 },
		{ "/\xc3\xa9", "\xc3\xa9", 0, 1 },
		{ "/..", NULL, 0, 0 },
		{ "/a/../..", NULL, 0, 0 },
		{ "/%2e%2e/%2e%2e/etc/passwd", NULL, 0, 0 },
		{ "/a%00.css", NULL, 0, 0 },
		{ "/a%2fb", NULL, 0, 0 },
		{ "/a%2", NULL, 0, 0 },
		{ "/a%", NULL, 0, 0 },
		{ "/a%zz", NULL, 0, 0 },
		{ "/a%0d%0ab", NULL, 0, 0 },
		{ "/a%7f", NULL, 0, 0 },
		{ "a", NULL, 0, 0 },
		{ "", NULL, 0, 0 },
	};

	(void)state;
	for (size_t i = 0; i < nitems(cases); i++) {
		struct file_path p;
		size_t len = strlen(cases[i].raw);

		assert_int_equal(file_path_decode(&p, cases[i].raw, len),
		    cases[i].text != NULL);
		if (cases[i].text == NULL)
			continue;
		assert_string_equal(p.text, cases[i].text);
		assert_int_equal(p.len, strlen(p.text));
		assert_int_equal(p.directory, cases[i].directory);
		assert_int_equal(p.normal, cases[i].normal);
	}
}

static void
long_paths(void **state)
{
	char raw[4000];
	struct file_path p;

	(void)state;
	memset(raw, 'a', sizeof(raw));
	raw[0] = '/';
	assert_true(file_path_decode(&p, raw, 1 + 255));
	assert_false(file_path_decode(&p, raw, 1 + 256)); /* no such name */
	for (size_t i = 0; i < sizeof(raw); i += 100)
		raw[i] = '/';
	assert_true(file_path_decode(&p, raw, 1000));
	assert_false(file_path_decode(&p, raw, 1100));
	assert_false(file_path_decode(&p, raw, sizeof(raw)));
}

static void
kinds(void **state)
{
	static const struct {
		const char *path;
		enum name_kind kind;
	} cases[] = {
		{ "a.css", NAME_PLAIN },
		{ "A.CSS", NAME_PLAIN },
		{ "jquery-1.2.min.js", NAME_PLAIN },
		{ "a.b/c.png", NAME_PLAIN },
		{ "a.php/c.png", NAME_PLAIN },
		{ "x", NAME_NODE },
		{ "x.", NAME_NODE },
		{ "a.css/x", NAME_NODE },
		{ "x.unknown", NAME_NODE },
		{ "x.php", NAME_NODE },
		{ "x.PHP", NAME_NODE },
		{ "x.php.jpg", NAME_NODE },
		{ "x.cgi.txt", NAME_NODE },
		{ "x.phtml.png", NAME_NODE },
		{ "x.css.php", NAME_NODE },
		{ ".htaccess", NAME_HIDDEN },
		{ ".git/config", NAME_HIDDEN },
		{ "a/.env", NAME_HIDDEN },
		{ "a/.b/c.css", NAME_HIDDEN },
		{ "x.php~", NAME_HIDDEN },
		{ "x.css.bak", NAME_HIDDEN },
		{ "x.BAK", NAME_HIDDEN },
		{ ".x.css.swp", NAME_HIDDEN },
		{ "x.css.DPKG-Dist", NAME_HIDDEN },
		{ "x.css.dpkg-old", NAME_HIDDEN },
		{ "x.orig", NAME_HIDDEN },
		{ "x.save", NAME_HIDDEN },
		{ "bak", NAME_NODE },
		{ "p", NAME_NODE },
		{ "#x#", NAME_HIDDEN },
		{ ".well-known/a.txt", NAME_PLAIN },
		{ ".well-known/acme-challenge/abc", NAME_NODE },
		{ ".well-known/.x.txt", NAME_HIDDEN },
		{ "a/.well-known/a.txt", NAME_HIDDEN },
		{ ".well-knownx/a.txt", NAME_HIDDEN },
	};

	(void)state;
	for (size_t i = 0; i < nitems(cases); i++)
		assert_int_equal(name_judge(cases[i].path,
				     strlen(cases[i].path), ""),
		    cases[i].kind);
}

static void
extensions_of_a_site(void **state)
{
	(void)state;
	assert_int_equal(name_judge("a.foo", 5, "foo bar"), NAME_PLAIN);
	assert_int_equal(name_judge("a.bar", 5, "foo bar"), NAME_PLAIN);
	assert_int_equal(name_judge("a.ba", 4, "foo bar"), NAME_NODE);
	assert_int_equal(name_judge("a.css", 5, "foo bar"), NAME_NODE);
	/* A program's source is not shown, whatever a site says. */
	assert_int_equal(name_judge("a.php", 5, "php"), NAME_NODE);
	assert_string_equal(name_extension("a.b/c", 5), "");
	assert_string_equal(name_extension("a.b/c.d.e", 9), "e");
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(paths),
		cmocka_unit_test(long_paths),
		cmocka_unit_test(kinds),
		cmocka_unit_test(extensions_of_a_site),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
