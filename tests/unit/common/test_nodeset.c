/* test_nodeset.c: node sets as text: folding, expanding, refusing, algebra.
 * The letters are those of the list of cases that other tools' tests and bug
 * reports gave us. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/io.h"
#include "common/nodeset/nodeset.h"

static struct nodeset *
parse(const char *text)
{
	struct nodeset *s;
	struct err e;

	if (nodeset_parse(text, NULL, &s, &e) == -1)
		fail_msg("'%s': %s", text, e.text);
	return s;
}

static char *
fold(const struct nodeset *s)
{
	struct err e;
	char *text;

	assert_int_equal(nodeset_fold(s, ",", &text, &e), 0);
	return text;
}

static void
expect_fold(const char *text, const char *want)
{
	struct nodeset *s = parse(text);
	char *got = fold(s);

	if (strcmp(got, want) != 0)
		fail_msg("'%s' folds to '%s', not '%s'", text, got, want);
	free(got);
	nodeset_free(s);
}

/* The names, parted by spaces. */
static char *
expand(const char *text)
{
	struct nodeset *s = parse(text);
	struct nodeset_iter it;
	const char *name;
	size_t size;
	char *buf;
	FILE *f = open_memstream(&buf, &size);

	nodeset_iter_init(&it, s);
	while ((name = nodeset_iter_next(&it)) != NULL)
		fprintf(f, "%s%s", ftell(f) > 0 ? " " : "", name);
	fclose(f);
	nodeset_free(s);
	return buf;
}

static void
folds(void **state)
{
	static const char *const rows[][2] = {
		/* A6, A7, A8, A9, A10 */
		{ "foo[19]", "foo19" },
		{ "cluster[115-117],cluster130,cluster[166-169],cluster170",
		    "cluster[115-117,130,166-170]" },
		{ "cluster0,cluster1,cluster,wool,cluster3",
		    "cluster,cluster[0-1,3],wool" },
		{ "foo2,foo1,foo4", "foo[1-2,4]" },
		{ "cluster[115]", "cluster115" },
		{ "[0]cluster", "0cluster" },
		/* A13: two dimensions */
		{ "da[2-3]c1,da[2-3]c2", "da[2-3]c[1-2]" },
		{ "a1b1,a2b2", "a1b1,a2b2" },
		{ "a[1-3]b[1-2],a[2-4]b[1-2]", "a[1-4]b[1-2]" },
		{ "a[1-3]b[1-3],a4b1", "a[1-3]b[1-3],a4b1" },
		{ "r[1-2]n[1-2],r3n[1-2],r3n3", "r[1-2]n[1-2],r3n[1-3]" },
		{ "10.0.0.1,10.0.0.2,10.0.1.1", "10.0.0.[1-2],10.0.1.1" },
		/* A17, A18 */
		{ " tigrou2 , tigrou7 , tigrou[5,9-11] ",
		    "tigrou[2,5,7,9-11]" },
		{ "a[ 1 - 3 , 5 ]", "a[1-3,5]" },
		{ "", "" },
		{ " \t\n", "" },
		/* A19: steps */
		{ "n[0-4/2]", "n[0,2,4]" },
		{ "n[1-4/3]", "n[1,4]" },
		{ "n[1-4/4]", "n1" },
		{ "n[08-12/2]", "n[08,10,12]" },
		/* A22, A24: zeros */
		{ "node001,node1,node01", "node[1,01,001]" },
		{ "foo0,foo03,foo01,foo2", "foo[0,01,2,03]" },
		{ "n[1-10],n[01-10]", "n[1-9,01-10]" },
		{ "n[09-99],n[100-101]", "n[09-99,100-101]" },
		{ "n[9,10,99,100]", "n[9-10,99-100]" },
		{ "n[00-02],n[0-2]", "n[0-2,00-02]" },
		/* A26, A27 */
		{ "foo1,foo2,foo5,bar0,bar1", "bar[0-1],foo[1-2,5]" },
		{ "0,1,2", "[0-2]" },
		{ "nova3,nova4,5,nova6", "5,nova[3-4,6]" },
		/* A28, C28: addresses */
		{ "fe80::5054:ff:feff:6944%eth0",
		    "fe80::5054:ff:feff:6944%eth0" },
		{ "2a03:5640::9299,2a03::9a32", "2a03:5640::9299,2a03::9a32" },
		{ "[2a03::1],2a03::1", "2a03::1" },
		{ "[2a03::1]:7443", "[2a03::1]:7443" },
		{ "[fe80::1%eth0]", "fe80::1%eth0" },
		{ "::ffff:10.0.0.1", "::ffff:10.0.0.1" },
		{ "a1:b1:c,a1:b2:c", "a1:b1:c,a1:b2:c" },
		/* A30: digits that touch brackets stay as written */
		{ "x[22-23]0", "x[22-23]0" },
		{ "prod-02[10-20]", "prod-02[10-20]" },
		{ "x22[0-1]0", "x22[0-1]0" },
		{ "x[22-23]0,x240", "x[220,230,240]" },
		{ "x[22-23]0,x[24-25]0", "x[22-25]0" },
		{ "x[22-23]0!x220", "x230" },
		{ "x[220,230]&x[22-24]0", "x[220,230]" },
		{ "x2[8-11]", "x2[8-11]" },
		{ "x2[8-11]^x29", "x[28,210-211]" },
		{ "x2[1]0", "x210" },
		{ "a1[1-2]b[3-4]0,a11b30", "a[11-12]b[30,40]" },
		/* A31 */
		{ "foo[1,3]-bar", "foo[1,3]-bar" },
		/* What else may stand in a name. */
		{ "web[1-3]:80", "web[1-3]:80" },
		{ "a%b[1-2]", "a%b[1-2]" },
		{ "foo*,foo?[1-2]", "foo*,foo?[1-2]" },
		{ "n123456789012345678901,n1", "n1,n123456789012345678901" },
		{ "a1b1c1d1e1f1g1h1i1j1k1l1m1n1o1p1q1,"
		  "a1b1c1d1e1f1g1h1i1j1k1l1m1n1o1p2q1",
		    "a1b1c1d1e1f1g1h1i1j1k1l1m1n1o1p[1-2]q1" },
	};

	(void)state;
	for (size_t i = 0; i < nitems(rows); i++)
		expect_fold(rows[i][0], rows[i][1]);
}

static void
expands(void **state)
{
	static const char *const rows[][2] = {
		/* A1 to A4 */
		{ "foo[0-3]", "foo0 foo1 foo2 foo3" },
		{ "foo[00-02]", "foo00 foo01 foo02" },
		{ "foo[9-11]", "foo9 foo10 foo11" },
		{ "foo[0-2,4]", "foo0 foo1 foo2 foo4" },
		{ "a[1-2]b[3-4]", "a1b3 a1b4 a2b3 a2b4" },
		{ "r10n2,r9n1,r9n10,r9n2", "r9n1 r9n2 r9n10 r10n2" },
		{ "b,a,a1", "a a1 b" },
		{ "x[8-10]0", "x80 x90 x100" },
		{ "n[098-102]", "n098 n099 n100 n101 n102" },
		{ "", "" },
	};

	(void)state;
	for (size_t i = 0; i < nitems(rows); i++) {
		char *got = expand(rows[i][0]);

		assert_string_equal(got, rows[i][1]);
		free(got);
	}
}

static void
counts(void **state)
{
	static const struct {
		const char *text;
		size_t n;
	} rows[] = {
		/* A16, A34 */
		{ "da[1-1000]c[1-2]p[0-1]", 4000 },
		{ "tronic[0036-1630]c[3-400]", 634810 },
		{ "bigcluster[1-1000000]", 1000000 },
		{ "a[1-1000000]!a[2-1000000],b[1-999999]", 1000000 },
		{ "", 0 },
		{ "a,a,a", 1 },
	};

	(void)state;
	for (size_t i = 0; i < nitems(rows); i++) {
		struct nodeset *s = parse(rows[i].text);

		assert_int_equal(nodeset_count(s), rows[i].n);
		nodeset_free(s);
	}
}

static void
a_million_in_order(void **state)
{
	struct nodeset *s = parse("bigcluster[1-1000000]");
	struct nodeset_iter it;
	char want[32];

	(void)state;
	nodeset_iter_init(&it, s);
	for (int i = 1; i <= 1000000; i++) {
		const char *name = nodeset_iter_next(&it);

		assert_non_null(name);
		snprintf(want, sizeof(want), "bigcluster%d", i);
		if (strcmp(name, want) != 0)
			fail_msg("'%s' where '%s' belongs", name, want);
	}
	assert_null(nodeset_iter_next(&it));
	nodeset_free(s);
}

static void
refuses(void **state)
{
	static const char *const rows[] = {
		/* A33, A35 */
		"[00-3]p",
		"foo[0-1048576]",
		"a[1-1000000],b1",
		"a[1-1001]b[1-1000]",
		"a[0-999999999999999999]b[0-999999999999999999]",
		/* B1, B2 */
		"nova[]",
		"nova[-]",
		"nova[A]",
		"nova[2-5/a]",
		"nova[3/2]",
		"nova[3-/2]",
		"nova[4-a/2]",
		"nova[4-3/2]",
		"nova[004-002]",
		"nova[4-5/-2]",
		"nova[4-5/0]",
		"nova[1,]",
		"nova[,1]",
		"nova[1,,2]",
		"nova[+1]",
		"nova[1_0]",
		"nova[0x1]",
		/* B4 */
		"nova[3-59/2,102",
		"nova6[",
		"nova6]",
		"n6[1-4]]",
		/* B6 */
		"a[1-044]",
		"a[01-044]",
		"a[001-44]",
		"0[7-10]",
		"prod-0[10-345]",
		/* B8 */
		"[]",
		"foo[",
		"foo[1,3",
		"foo[[1,3]",
		"foo]",
		"foo[x-y]",
		"foo[0-1,2--5]",
		/* Operands that lack. */
		"a,,b",
		"a,",
		"a, ",
		",a",
		"!a",
		"a!",
		"a!&b",
		"^",
		/* Brackets that meet, numbers that are too long. */
		"a[1][2]",
		"a[1-2]3[4-5]",
		"a[1234567890123456789]",
		"a1234567890123456[0-1]00",
		"a1b1c1d1e1f1g1h1i1j1k1l1m1n1o1p1q[1-2]",
		/* Roles need a cluster; addresses have no ranges. */
		"@web",
		"@",
		"fe80::[1-3]",
		"[fe80::1]x",
		"a\001b",
		"a\nb",
	};
	struct nodeset *s;
	struct err e;

	(void)state;
	for (size_t i = 0; i < nitems(rows); i++) {
		if (nodeset_parse(rows[i], NULL, &s, &e) == 0)
			fail_msg("'%s' was taken", rows[i]);
		assert_int_equal(e.code, ERR_USAGE);
	}
}

static void
says_why(void **state)
{
	static const char *const rows[][2] = {
		{ "nova[4-3]",
		    "'nova[4-3]': bad range '4-3': its first number is above "
		    "its last" },
		{ "web6[", "bad node set 'web6[': a '[' has no ']'" },
		{ "a,", "bad node set 'a,': a name is missing at its end" },
		{ "foo[0-1048576]",
		    "'foo[0-1048576]': more than 1000000 names, the most "
		    "that one set holds" },
	};
	struct nodeset *s;
	struct err e;

	(void)state;
	for (size_t i = 0; i < nitems(rows); i++) {
		assert_int_equal(nodeset_parse(rows[i][0], NULL, &s, &e), -1);
		assert_string_equal(e.text, rows[i][1]);
	}
}

static void
long_names(void **state)
{
	char name[300];
	struct nodeset *s;
	struct err e;

	(void)state;
	memset(name, 'a', sizeof(name));
	name[NODESET_NAME_MAX] = '\0';
	s = parse(name);
	nodeset_free(s);
	name[NODESET_NAME_MAX] = 'a';
	name[NODESET_NAME_MAX + 1] = '\0';
	assert_int_equal(nodeset_parse(name, NULL, &s, &e), -1);
	/* It is the longest name of a range that counts. */
	memcpy(name + NODESET_NAME_MAX - 2, "[9-1000]", 9);
	assert_int_equal(nodeset_parse(name, NULL, &s, &e), -1);
	memcpy(name + NODESET_NAME_MAX - 2, "[10-20]", 8);
	s = parse(name);
	assert_int_equal(nodeset_count(s), 11);
	nodeset_free(s);
}

static void
algebra(void **state)
{
	static const char *const rows[][2] = {
		/* C1, C2, C4, C5 */
		{ "node[0-7],node[8-10]", "node[0-10]" },
		{ "node[0-10]!node[8-10]", "node[0-7]" },
		{ "node[0-10]^node[5-13]", "node[0-4,11-13]" },
		{ "node[0-10]&node[5-13]", "node[5-10]" },
		{ "tigrou [1-5] & tigrou [0,2,4] ! tigrou [2-3] ^ "
		  "tigrou [3-5], tigrou 1",
		    "tigrou [1,3,5]" },
		/* C7 */
		{ "red[34-55,76-249,300-341],blue,green&"
		  "blue,red[34-55,76-249,300-341]",
		    "blue,red[34-55,76-249,300-341]" },
		/* C8, C9, C17 */
		{ "a[1-3]!b7!a9", "a[1-3]" },
		{ "host[1-3]^host[2-5]^host[3-10]", "host[1,3,6-10]" },
		{ "foo[9-11]!foo10", "foo[9,11]" },
		{ "foo[0-5]!foo[1-3]", "foo[0,4-5]" },
		/* Names are told apart by their zeros. */
		{ "n[1-3]!n[01-03]", "n[1-3]" },
		{ "n[08-12]!n10", "n[08-09,11-12]" },
		/* Several dimensions. */
		{ "a[1-3]b[1-3]!a2b2", "a[1,3]b[1-3],a2b[1,3]" },
		{ "a[1-3]b[1-3]&a[2-5]b[0-2]", "a[2-3]b[1-2]" },
		{ "a[1-2]b[1-2]^a[2-3]b[2-3]", "a1b[1-2],a2b[1,3],a3b[2-3]" },
		{ "a[1-3]!a[1-3]", "" },
		{ "a&b", "" },
		{ "a^a", "" },
		{ "a^b", "a,b" },
		{ "a,b,c!b&a,c", "a,c" },
	};

	(void)state;
	for (size_t i = 0; i < nitems(rows); i++)
		expect_fold(rows[i][0], rows[i][1]);
}

/* An operand that fails leaves the set as it was. */
static void
failed_operation_changes_nothing(void **state)
{
	struct nodeset *a = parse("a[1-600000]"), *b = parse("b[1-600000]");
	struct err e;
	char *text;

	(void)state;
	assert_int_equal(nodeset_combine(a, NODESET_XOR, b, &e), -1);
	assert_int_equal(e.code, ERR_USAGE);
	text = fold(a);
	assert_string_equal(text, "a[1-600000]");
	free(text);
	nodeset_free(a);
	nodeset_free(b);
}

static void
names_are_data(void **state)
{
	static const char *const bad[] = { "", "@web", "a,b", "a!b", "a[1-2]",
		"a[", " a", "a ", "a\n" };
	struct nodeset *s = nodeset_new();
	struct err e;
	char *text;

	(void)state;
	for (size_t i = 0; i < nitems(bad); i++)
		assert_int_equal(nodeset_add(s, bad[i], &e), -1);
	assert_int_equal(nodeset_add(s, "web2", &e), 0);
	assert_int_equal(nodeset_add(s, "foo*", &e), 0);
	assert_int_equal(nodeset_add(s, "web1", &e), 0);
	assert_int_equal(nodeset_add(s, "web2", &e), 0);
	assert_int_equal(nodeset_count(s), 3);
	text = fold(s);
	assert_string_equal(text, "foo*,web[1-2]");
	free(text);
	nodeset_free(s);
}

static void
has(void **state)
{
	struct nodeset *s = parse("a[1-9]b[0-3],x[22-23]0,db,n[08-12],::1");
	static const char *const in[] = { "a1b0", "a9b3", "x220", "x230", "db",
		"n08", "n10", "::1" };
	static const char *const out[] = { "a1", "a0b0", "a1b4", "a01b0",
		"x240", "x22", "d", "db1", "n8", "n010", "::2", "", "a[" };

	(void)state;
	for (size_t i = 0; i < nitems(in); i++)
		assert_true(nodeset_has(s, in[i]));
	for (size_t i = 0; i < nitems(out); i++)
		assert_false(nodeset_has(s, out[i]));
	nodeset_free(s);
}

/* Many additions in any order: what waits is merged when asked for. */
static void
many_additions(void **state)
{
	struct nodeset *s = nodeset_new();
	struct err e;
	char name[32], *text;

	(void)state;
	for (unsigned i = 0; i < 20000; i++) {
		unsigned k = i * 7919 % 20011;

		snprintf(name, sizeof(name), "n%u", k);
		assert_int_equal(nodeset_add(s, name, &e), 0);
		if (i % 5000 == 0)
			assert_int_equal(nodeset_count(s), i + 1);
	}
	assert_int_equal(nodeset_count(s), 20000);
	for (unsigned i = 20000; i < 20011; i++) {
		snprintf(name, sizeof(name), "n%u", i * 7919 % 20011);
		assert_int_equal(nodeset_add(s, name, &e), 0);
	}
	text = fold(s);
	assert_string_equal(text, "n[0-20010]");
	free(text);
	nodeset_free(s);
}

static void
lists_and_separators(void **state)
{
	static const char *const words[] = { "web1", "web[2-3]!web2", "db1",
		"" };
	struct nodeset *s;
	struct err e;
	char *text;

	(void)state;
	assert_int_equal(nodeset_parse_list(words, nitems(words), NULL, &s, &e),
	    0);
	assert_int_equal(nodeset_fold(s, "\n", &text, &e), 0);
	assert_string_equal(text, "db1\nweb[1,3]");
	free(text);
	nodeset_free(s);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(folds),
		cmocka_unit_test(expands),
		cmocka_unit_test(counts),
		cmocka_unit_test(a_million_in_order),
		cmocka_unit_test(refuses),
		cmocka_unit_test(says_why),
		cmocka_unit_test(long_names),
		cmocka_unit_test(algebra),
		cmocka_unit_test(failed_operation_changes_nothing),
		cmocka_unit_test(names_are_data),
		cmocka_unit_test(has),
		cmocka_unit_test(many_additions),
		cmocka_unit_test(lists_and_separators),
	};

	return cmocka_run_group_tests_name("nodeset", tests, NULL, NULL);
}
