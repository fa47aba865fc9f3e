/* test_diff.c: how the output of nodes differs. */
#include "tests/unit/clusterctl/capture.h"

#include <stdio.h>

#include "clusterctl/diff.h"
#include "clusterctl/lines.h"
#include "common/base/io.h"

static void
expect_diff(const char *old, const char *new, const char *want)
{
	struct sink s;
	struct err e;

	capture_init(&s);
	assert_int_equal(diff_texts("old", old, strlen(old), "new", new,
			     strlen(new), &s, &e),
	    0);
	capture_expect(&s, want);
}

#define HEAD "--- old\n+++ new\n"

static void
unified(void **state)
{
	static const char *const rows[][3] = {
		/* E14 */
		{ "a\nb\n", "a\nb\n", "" },
		{ "", "", "" },
		{ "bar\nend\n", "BAR\nend\n",
		    HEAD "@@ -1,2 +1,2 @@\n-bar\n+BAR\n end\n" },
		{ "a\n", "", HEAD "@@ -1 +0,0 @@\n-a\n" },
		{ "", "a\nb\n", HEAD "@@ -0,0 +1,2 @@\n+a\n+b\n" },
		{ "a", "a\n",
		    HEAD "@@ -1 +1 @@\n-a\n\\ No newline at end of output\n"
			 "+a\n" },
		{ "1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nx\n6\n7\n8\n9\n",
		    HEAD "@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+x\n 6\n 7\n 8\n" },
		/* Six lines between two changes join, seven part them. */
		{ "a\n1\n2\n3\n4\n5\n6\nb\n", "A\n1\n2\n3\n4\n5\n6\nB\n",
		    HEAD "@@ -1,8 +1,8 @@\n-a\n+A\n 1\n 2\n 3\n 4\n 5\n 6\n"
			 "-b\n+B\n" },
		{ "a\n1\n2\n3\n4\n5\n6\n7\nb\n", "A\n1\n2\n3\n4\n5\n6\n7\nB\n",
		    HEAD "@@ -1,4 +1,4 @@\n-a\n+A\n 1\n 2\n 3\n"
			 "@@ -6,4 +6,4 @@\n 5\n 6\n 7\n-b\n+B\n" },
		{ "a\nb\nc\na\nb\nb\na\n", "c\nb\na\nb\na\nc\n",
		    HEAD "@@ -1,7 +1,6 @@\n-a\n-b\n c\n+b\n a\n b\n-b\n a\n"
			 "+c\n" },
	};

	(void)state;
	for (size_t i = 0; i < nitems(rows); i++)
		expect_diff(rows[i][0], rows[i][1], rows[i][2]);
}

/* E13: the reference is the largest set. */
static void
against_the_largest_group(void **state)
{
	static const char *const names[] = { "foo1", "foo2", "foo3", "foo4" };
	static const char *const text[] = { " bar\n end\n", " BAR\n end\n",
		" bar\n end\n", "" };
	struct gather *g;
	struct sink s;
	struct err e;

	(void)state;
	g = gather_new(names, 4, GATHER_MEMORY, &e);
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(gather_put(g, i, text[i], strlen(text[i]), &e),
		    0);
	capture_init(&s);
	assert_int_equal(diff_print(g, &s, &e), 0);
	capture_expect(&s,
	    "--- foo[1,3] (2)\n+++ foo2\n@@ -1,2 +1,2 @@\n- bar\n+ BAR\n"
	    "  end\n"
	    "--- foo[1,3] (2)\n+++ foo4\n@@ -1,2 +0,0 @@\n- bar\n- end\n");
	gather_free(g);
}

static void
nothing_to_compare(void **state)
{
	static const char *const names[] = { "a", "b" };
	struct gather *g;
	struct sink s;
	struct err e;

	(void)state;
	g = gather_new(names, 2, GATHER_MEMORY, &e);
	capture_init(&s);
	assert_int_equal(diff_print(g, &s, &e), 0);
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(gather_put(g, i, "same\n", 5, &e), 0);
	assert_int_equal(diff_print(g, &s, &e), 0);
	capture_expect(&s, "");
	gather_free(g);
}

/* n lines "x i", each `every`-th of them changed. */
static char *
numbered(int n, int every)
{
	char *text;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	for (int i = 0; i < n; i++)
		fprintf(f, "%s %d\n", every > 0 && i % every == 0 ? "y" : "x",
		    i);
	fclose(f);
	return text;
}

static size_t
n_changed(const struct lines *l)
{
	size_t n = 0;

	for (size_t i = 0; i < l->n; i++)
		n += l->v[i].changed;
	return n;
}

static void
expect_changed(const char *old, const char *new, size_t n_old, size_t n_new)
{
	struct lines a, b;

	assert_int_equal(lines_split(&a, old, strlen(old)), 0);
	assert_int_equal(lines_split(&b, new, strlen(new)), 0);
	assert_int_equal(lines_compare(&a, &b), 0);
	assert_int_equal(n_changed(&a), n_old);
	assert_int_equal(n_changed(&b), n_new);
	lines_fini(&a);
	lines_fini(&b);
}

/* 400 edits are found one by one; with 2,000 the middle differs all through,
 * but not the ends that are equal. */
static void
bounded_cost(void **state)
{
	char *old = numbered(100000, 0), *few = numbered(100000, 500);
	char *many = numbered(100000, 100), *cut = strdup(old);

	(void)state;
	expect_changed(old, few, 200, 200);
	expect_changed(old, many, 99901, 99901);
	cut[strlen(cut) - strlen("x 99999\n")] = '\0';
	expect_changed(old, cut, 1, 0);
	expect_changed(cut, old, 0, 1);
	free(old);
	free(few);
	free(many);
	free(cut);
}

static void
too_large(void **state)
{
	static const char *const names[] = { "a", "b" };
	static char part[1 << 20];
	struct gather *g;
	struct sink s;
	struct err e;

	(void)state;
	g = gather_new(names, 2, GATHER_MEMORY, &e);
	for (int i = 0; i < 17; i++)
		assert_int_equal(gather_put(g, 0, part, sizeof(part), &e), 0);
	assert_int_equal(gather_put(g, 1, "x", 1, &e), 0);
	capture_init(&s);
	assert_int_equal(diff_print(g, &s, &e), 0);
	capture_expect(&s,
	    "--- a\n+++ b\nOutput differs (17825792 and 1 bytes), too large "
	    "to compare; --outdir keeps it\n");
	gather_free(g);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(unified),
		cmocka_unit_test(against_the_largest_group),
		cmocka_unit_test(nothing_to_compare),
		cmocka_unit_test(bounded_cost),
		cmocka_unit_test(too_large),
	};

	return cmocka_run_group_tests_name("diff", tests, NULL, NULL);
}
