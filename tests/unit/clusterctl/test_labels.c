/* test_labels.c: live lines of several nodes. */
#include "tests/unit/clusterctl/capture.h"

#include <stdio.h>

#include "clusterctl/labels.h"

static void
put(struct label *l, const char *text)
{
	struct err e;

	assert_int_equal(label_put(l, text, strlen(text), &e), 0);
}

static void
end(struct label *l)
{
	struct err e;

	assert_int_equal(label_end(l, &e), 0);
}

/* E1, E7 */
static void
labels_each_line(void **state)
{
	struct sink s;
	struct label l;

	(void)state;
	capture_init(&s);
	label_init(&l, &s, "cs01");
	put(&l, "ok\n\nsecond ");
	put(&l, "line\nlast");
	end(&l);
	capture_expect(&s, "cs01: ok\ncs01: \ncs01: second line\ncs01: last\n");
}

static void
bytes_are_exact_without_label(void **state)
{
	struct sink s;
	struct label l;

	(void)state;
	capture_init(&s);
	label_init(&l, &s, NULL);
	put(&l, "a\nb");
	put(&l, "c\xff\033\n\nlast");
	end(&l);
	capture_expect(&s, "a\nbc\xff\033\n\nlast");
}

/* E22: whatever way the bytes of two nodes come in. */
static void
lines_never_mix(void **state)
{
	struct sink s;
	struct label a, b;

	(void)state;
	capture_init(&s);
	label_init(&a, &s, "a");
	label_init(&b, &s, "b");
	for (int i = 0; i < 3; i++) {
		put(&a, "x");
		put(&b, "1");
		put(&a, "y\nz");
		put(&b, "2\n");
	}
	end(&a);
	end(&b);
	capture_expect(&s,
	    "a: xy\nb: 12\na: zxy\nb: 12\na: zxy\nb: 12\na: z\n");
}

static void
no_output_no_line(void **state)
{
	struct sink s;
	struct label l;

	(void)state;
	capture_init(&s);
	label_init(&l, &s, "a");
	put(&l, "");
	end(&l);
	capture_expect(&s, "");
}

/* Memory is bounded: a line of 1 MiB leaves in labelled pieces. */
static void
long_lines_go_in_pieces(void **state)
{
	static char part[10000];
	size_t size, n_lines = 0, n_bytes = 0;
	struct sink s;
	struct label l;
	struct err e;
	char *text;

	(void)state;
	memset(part, 'x', sizeof(part));
	capture_init(&s);
	label_init(&l, &s, "n");
	for (int i = 0; i < 100; i++) {
		assert_int_equal(label_put(&l, part, sizeof(part), &e), 0);
		assert_true(l.len < LABEL_PIECE);
	}
	put(&l, "\n");
	assert_null(l.held);
	end(&l);
	text = capture_text(&s, &size);
	for (char *p = text, *nl; *p != '\0'; p = nl + 1) {
		nl = strchr(p, '\n');
		assert_non_null(nl);
		assert_memory_equal(p, "n: ", 3);
		assert_true((size_t)(nl - p) <= 3 + LABEL_PIECE);
		n_bytes += (size_t)(nl - p) - 3;
		n_lines++;
	}
	assert_int_equal(n_bytes, 100 * sizeof(part));
	assert_int_equal(n_lines, 100 * sizeof(part) / LABEL_PIECE + 1);
	free(text);
	capture_fini(&s);
}

static void
long_lines_are_exact_without_label(void **state)
{
	static char part[200000];
	struct sink s;
	struct label l;
	struct err e;
	size_t size;
	char *text;

	(void)state;
	memset(part, 'y', sizeof(part));
	capture_init(&s);
	label_init(&l, &s, NULL);
	assert_int_equal(label_put(&l, part, sizeof(part), &e), 0);
	put(&l, "\n");
	end(&l);
	text = capture_text(&s, &size);
	assert_int_equal(size, sizeof(part) + 1);
	assert_memory_equal(text, part, sizeof(part));
	free(text);
	capture_fini(&s);
}

static void
pieces_keep_characters_whole(void **state)
{
	static char line[LABEL_PIECE + 2];
	struct sink s;
	struct label l;
	struct err e;
	char *text;

	(void)state;
	memset(line, 'x', sizeof(line));
	memcpy(line + LABEL_PIECE - 1, "\xe2\x82\xac", 3);
	capture_init(&s);
	label_init(&l, &s, "n");
	assert_int_equal(label_put(&l, line, sizeof(line), &e), 0);
	end(&l);
	text = capture_text(&s, NULL);
	assert_non_null(strstr(text, "x\nn: \xe2\x82\xac\n"));
	free(text);
	capture_fini(&s);
}

static void
harmless_on_a_terminal(void **state)
{
	struct sink s;
	struct label l;

	(void)state;
	capture_init(&s);
	s.terminal = true;
	label_init(&l, &s, "a");
	put(&l, "\033[2Jok\rb: lie\n\xff\n");
	end(&l);
	capture_expect(&s, "a: ^[[2Jok^Mb: lie\na: \xef\xbf\xbd\n");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(labels_each_line),
		cmocka_unit_test(bytes_are_exact_without_label),
		cmocka_unit_test(lines_never_mix),
		cmocka_unit_test(no_output_no_line),
		cmocka_unit_test(long_lines_go_in_pieces),
		cmocka_unit_test(long_lines_are_exact_without_label),
		cmocka_unit_test(pieces_keep_characters_whole),
		cmocka_unit_test(harmless_on_a_terminal),
	};

	return cmocka_run_group_tests_name("labels", tests, NULL, NULL);
}
