/* test_gather.c: equal output under one header. */
#include "tests/unit/clusterctl/capture.h"

#include <stdio.h>

#include "clusterctl/gather.h"

#define N_MANY 10000

static const char *const foo[] = { "foo1", "foo2", "foo3", "foo10" };

static struct gather *
start(const char *const *names, size_t n, size_t memory_max)
{
	struct err e;
	struct gather *g = gather_new(names, n, memory_max, &e);

	assert_non_null(g);
	return g;
}

static void
put(struct gather *g, size_t node, const char *text)
{
	struct err e;

	assert_int_equal(gather_put(g, node, text, strlen(text), &e), 0);
}

static void
expect_print(struct gather *g, enum gather_style style, const char *want)
{
	struct sink s;
	struct err e;

	capture_init(&s);
	assert_int_equal(gather_print(g, style, &s, &e), 0);
	capture_expect(&s, want);
}

/* E6 */
static void
folds_under_a_header(void **state)
{
	struct gather *g = start(foo, 4, GATHER_MEMORY);

	(void)state;
	put(g, 1, "other");
	put(g, 2, "o");
	put(g, 0, "ok\n");
	put(g, 2, "k\n");
	put(g, 3, "ok\n");
	expect_print(g, GATHER_HEADER,
	    "---------------\nfoo[1,3,10] (3)\n---------------\nok\n"
	    "---------------\nfoo2\n---------------\nother\n");
	gather_free(g);
}

/* E4, E5 */
static void
other_styles(void **state)
{
	struct gather *g = start(foo, 2, GATHER_MEMORY);

	(void)state;
	put(g, 0, "test\nx");
	put(g, 1, "test\nx");
	expect_print(g, GATHER_PREFIX, "foo[1-2]: test\nfoo[1-2]: x\n");
	expect_print(g, GATHER_BARE, "test\nx");
	put(g, 1, "y");
	expect_print(g, GATHER_BARE, "test\nx\ntest\nxy");
	gather_free(g);
}

static void
largest_first_then_lowest(void **state)
{
	static const char *const text[] = { "b", "c", "a", "c", "a" };
	static const char *const names[] = { "n1", "n2", "n3", "n4", "n5" };
	struct gather *g = start(names, 5, GATHER_MEMORY);
	const struct gather_group *group;
	struct err e;
	size_t n;

	(void)state;
	for (size_t i = 0; i < 5; i++)
		put(g, i, text[i]);
	assert_int_equal(gather_groups(g, &group, &n, &e), 0);
	assert_int_equal(n, 3);
	assert_string_equal(group[0].label, "n[2,4] (2)");
	assert_string_equal(group[1].set, "n[3,5]");
	assert_string_equal(group[2].label, "n1");
	assert_int_equal(group[0].nodes[1], 3);
	gather_free(g);
}

/* E11 and E18; also: who said nothing has no header, but a group. */
static void
what_is_equal(void **state)
{
	struct gather *g = start(foo, 4, GATHER_MEMORY);
	const struct gather_group *group;
	struct err e;
	size_t n;

	(void)state;
	expect_print(g, GATHER_HEADER, "");
	put(g, 0, "a\nb\n");
	put(g, 1, "b\na\n");
	put(g, 2, "");
	assert_int_equal(gather_groups(g, &group, &n, &e), 0);
	assert_int_equal(n, 3);
	assert_int_equal(group[2].size, 0);
	expect_print(g, GATHER_PREFIX, "foo1: a\nfoo1: b\nfoo2: b\nfoo2: a\n");
	gather_free(g);
}

static const char *const *
many_names(void)
{
	static char name[N_MANY][16];
	static const char *names[N_MANY];

	for (int i = 0; i < N_MANY; i++) {
		snprintf(name[i], sizeof(name[i]), "n%d", i + 1);
		names[i] = name[i];
	}
	return names;
}

/* E12: 10,000 nodes of a line each; one node of 10,000 lines. */
static void
many_groups(void **state)
{
	struct gather *g = start(many_names(), N_MANY, GATHER_MEMORY);
	const struct gather_group *group;
	struct err e;
	size_t n;
	char line[32];

	(void)state;
	for (size_t i = 0; i < N_MANY; i++) {
		snprintf(line, sizeof(line), "I am %zu\n", i);
		put(g, i, line);
	}
	assert_int_equal(gather_groups(g, &group, &n, &e), 0);
	assert_int_equal(n, N_MANY);
	assert_string_equal(group[N_MANY - 1].label, "n10000");
	gather_free(g);
}

static void
many_lines(void **state)
{
	struct gather *g = start(foo, 1, 4096);
	char line[32], *text, *want;
	struct sink s;
	struct err e;
	size_t size, want_size;
	FILE *f = open_memstream(&want, &want_size);

	(void)state;
	for (int i = 0; i < 10000; i++) {
		snprintf(line, sizeof(line), "line %d \xe2\x82\xac\n", i);
		put(g, 0, line);
		fputs(line, f);
	}
	fclose(f);
	capture_init(&s);
	assert_int_equal(gather_print(g, GATHER_BARE, &s, &e), 0);
	text = capture_text(&s, &size);
	assert_int_equal(size, want_size);
	assert_memory_equal(text, want, size);
	free(text);
	free(want);
	capture_fini(&s);
	gather_free(g);
}

/* Above the bound all lies in one file; what comes in turns stays apart. */
static void
spills_to_a_file(void **state)
{
	struct gather *g = start(foo, 3, 1000);
	const struct gather_group *group;
	char part[97], *buf;
	struct err e;
	size_t n;
	ssize_t got;
	uint64_t at = 0;

	(void)state;
	for (int i = 0; i < 500; i++) {
		memset(part, 'a' + i % 26, sizeof(part));
		for (size_t node = 0; node < 3; node++)
			assert_int_equal(gather_put(g, node, part,
					     node == 1 ? 50 : sizeof(part), &e),
			    0);
	}
	assert_int_equal(gather_groups(g, &group, &n, &e), 0);
	assert_int_equal(n, 2);
	assert_string_equal(group[0].label, "foo[1,3] (2)");
	assert_int_equal(group[0].size, 500 * sizeof(part));
	buf = malloc(500 * sizeof(part));
	while ((got = gather_read(g, &group[0], at, buf + at,
		    500 * sizeof(part) - at, &e)) > 0)
		at += (uint64_t)got;
	assert_int_equal(at, 500 * sizeof(part));
	for (size_t i = 0; i < at; i++)
		assert_int_equal(buf[i], 'a' + (int)(i / sizeof(part)) % 26);
	free(buf);
	gather_free(g);
}

static void
no_room_for_the_file(void **state)
{
	struct gather *g = start(foo, 1, 10);
	struct err e;

	(void)state;
	setenv("TMPDIR", "/nonexistent", 1);
	assert_int_equal(gather_put(g, 0, "0123456789", 10, &e), -1);
	assert_int_equal(e.code, ERR_LOCAL);
	assert_string_equal(e.text,
	    "cannot make a temporary file in /nonexistent: "
	    "No such file or directory");
	unsetenv("TMPDIR");
	gather_free(g);
}

static void
harmless_on_a_terminal(void **state)
{
	struct gather *g = start(foo, 1, GATHER_MEMORY);
	struct sink s;
	struct err e;

	(void)state;
	put(g, 0, "\033]0;title\a\n");
	capture_init(&s);
	s.terminal = true;
	assert_int_equal(gather_print(g, GATHER_BARE, &s, &e), 0);
	capture_expect(&s, "^[]0;title^G\n");
	gather_free(g);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(folds_under_a_header),
		cmocka_unit_test(other_styles),
		cmocka_unit_test(largest_first_then_lowest),
		cmocka_unit_test(what_is_equal),
		cmocka_unit_test(many_groups),
		cmocka_unit_test(many_lines),
		cmocka_unit_test(spills_to_a_file),
		cmocka_unit_test(no_room_for_the_file),
		cmocka_unit_test(harmless_on_a_terminal),
	};

	return cmocka_run_group_tests_name("gather", tests, NULL, NULL);
}
