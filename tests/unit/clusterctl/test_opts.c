/* test_opts.c: command lines against a table of options. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "clusterctl/opts.h"
#include "common/base/io.h"

#define LINE_MAX_LEN 200
#define WORDS_MAX    12

struct values {
	bool gather, quiet, hook_used;
	unsigned verbose;
	const char *user, *keep;
	struct opt_list roles;
	uint64_t fanout;
	int64_t timeout_ms;
	int hook_args;
	int leading;
};

static int hook(void *, struct opt_word *, struct err *);
static int n_leading(const void *);

static const struct opt rows[] = {
	{ .name = "gather",
	    .letter = 'g',
	    .type = OPT_FLAG,
	    .offset = offsetof(struct values, gather) },
	{ .name = "quiet",
	    .letter = 'q',
	    .type = OPT_FLAG,
	    .offset = offsetof(struct values, quiet) },
	{ .name = "verbose",
	    .letter = 'v',
	    .type = OPT_COUNT,
	    .offset = offsetof(struct values, verbose) },
	{ .name = "user",
	    .letter = 'l',
	    .type = OPT_TEXT,
	    .arg = "NAME",
	    .offset = offsetof(struct values, user) },
	{ .name = "role",
	    .letter = 'r',
	    .type = OPT_LIST,
	    .arg = "ROLE",
	    .offset = offsetof(struct values, roles) },
	{ .name = "fanout",
	    .letter = 'f',
	    .type = OPT_NUMBER,
	    .arg = "N",
	    .min = 1,
	    .max = 100,
	    .initial = "64",
	    .offset = offsetof(struct values, fanout) },
	{ .name = "timeout",
	    .type = OPT_DURATION,
	    .arg = "TIME",
	    .max = 3600000,
	    .offset = offsetof(struct values, timeout_ms) },
	{ .name = "on-disconnect",
	    .type = OPT_CHOICE,
	    .arg = "kill|keep",
	    .choices = "kill|keep",
	    .offset = offsetof(struct values, keep) },
	{ .letter = 'n', .type = OPT_HOOK, .arg = "SET", .hook = hook },
};

static const struct opt_set set = { .title = "Test",
	.rows = rows,
	.n = nitems(rows) };

/* Parses a line whose words are split by blanks. */
static int
parse(const char *line, struct values *v, char *text, char **argv, int *n_args,
    struct err *e)
{
	struct opt_home home = { &set, v };
	struct opt_line o = { .homes = &home, .n_homes = 1 };
	char *save;
	int argc = 0;

	if (v->leading >= 0) {
		o.n_leading = n_leading;
		o.opts = v;
	}
	snprintf(text, LINE_MAX_LEN, "%s", line);
	for (char *w = strtok_r(text, " ", &save); w != NULL;
	     w = strtok_r(NULL, " ", &save))
		argv[argc++] = w;
	return opts_parse(&o, argc, argv, n_args, e);
}

static void
values_are_taken(void **state)
{
	struct values v = { .leading = -1 };
	char text[LINE_MAX_LEN], *argv[WORDS_MAX];
	struct err e;
	int n;

	(void)state;
	assert_int_equal(parse("a -gq -lbob --role=x -r y -v -v --timeout 5m "
			       "b",
			     &v, text, argv, &n, &e),
	    0);
	assert_true(v.gather && v.quiet);
	assert_string_equal(v.user, "bob");
	assert_int_equal(v.roles.n, 2);
	assert_string_equal(v.roles.v[0], "x");
	assert_string_equal(v.roles.v[1], "y");
	assert_int_equal(v.verbose, 2);
	assert_int_equal(v.timeout_ms, 300000);
	assert_int_equal(v.fanout, 64); /* the initial value */
	assert_int_equal(n, 2);
	assert_string_equal(argv[0], "a");
	assert_string_equal(argv[1], "b");
}

static void
options_end(void **state)
{
	static const struct {
		const char *line;
		int leading; /* -1: options anywhere */
		int n_args;
		bool gather;
	} cases[] = {
		{ "a -g b", -1, 2, true }, { "a -- -g b", -1, 3, false },
		{ "a -g ls", 1, 2, true },  /* between SET and COMMAND */
		{ "a ls -g", 1, 3, false }, /* the command's own */
		{ "ls -g", 0, 2, false }, { "-g ls", 0, 1, true },
		{ "a -- ls", 1, 2, false },
		{ "a ls -- x", 1, 4, false }, /* this "--" is the command's */
		{ "a -", -1, 2, false },      /* a bare "-" is an argument */
	};
	struct err e;

	(void)state;
	for (size_t i = 0; i < nitems(cases); i++) {
		struct values v = { .leading = cases[i].leading };
		char text[LINE_MAX_LEN], *argv[WORDS_MAX];
		int n;

		assert_int_equal(parse(cases[i].line, &v, text, argv, &n, &e),
		    0);
		assert_int_equal(n, cases[i].n_args);
		assert_int_equal(v.gather, cases[i].gather);
	}
}

static void
mistakes_are_refused(void **state)
{
	static const struct {
		const char *line, *says;
	} cases[] = {
		{ "--gathr", "unknown option --gathr; did you mean --gather?" },
		{ "--zzzzzzzz", "unknown option --zzzzzzzz (see --help)" },
		{ "-Z", "unknown option -Z (see --help)" }, { "--", NULL },
		{ "--user", "--user needs a value: NAME" },
		{ "-l", "--user needs a value: NAME" },
		{ "--gather=yes", "--gather takes no value" },
		{ "--fanout 0", "--fanout" }, { "--fanout 101", "--fanout" },
		{ "--fanout x", "--fanout" }, { "--timeout 5x", "--timeout" },
		{ "--on-disconnect maybe",
		    "--on-disconnect is one of kill|keep, not 'maybe'" },
		{ "--on", NULL }, /* unique: --on-disconnect, and no value */
	};
	struct err e;

	(void)state;
	for (size_t i = 0; i < nitems(cases); i++) {
		struct values v = { .leading = -1 };
		char text[LINE_MAX_LEN], *argv[WORDS_MAX];
		int n, rv = parse(cases[i].line, &v, text, argv, &n, &e);

		if (cases[i].says == NULL)
			continue;
		assert_int_equal(rv, -1);
		assert_int_equal(e.code, ERR_USAGE);
		assert_memory_equal(e.text, cases[i].says,
		    strlen(cases[i].says));
	}
}

static void
names_may_be_cut(void **state)
{
	struct values v = { .leading = -1 };
	char text[LINE_MAX_LEN], *argv[WORDS_MAX];
	struct err e;
	int n;

	(void)state;
	assert_int_equal(parse("--gat --use=bob", &v, text, argv, &n, &e), 0);
	assert_true(v.gather);
	assert_string_equal(v.user, "bob");
	assert_int_equal(parse("--on kill", &v, text, argv, &n, &e), 0);
	assert_string_equal(v.keep, "kill");
}

/* A hook takes the next word, or leaves it alone. */
static void
hooks_decide(void **state)
{
	struct values v = { .leading = -1 };
	char text[LINE_MAX_LEN], *argv[WORDS_MAX];
	struct err e;
	int n;

	(void)state;
	assert_int_equal(parse("-n take b", &v, text, argv, &n, &e), 0);
	assert_true(v.hook_used);
	assert_int_equal(n, 1);
	v.hook_used = false;
	assert_int_equal(parse("a -n leave", &v, text, argv, &n, &e), 0);
	assert_false(v.hook_used);
	assert_int_equal(v.hook_args, 1);
	assert_int_equal(n, 2);
	/* In a bundle what it leaves is the next letter. */
	assert_int_equal(parse("-ng", &v, text, argv, &n, &e), 0);
	assert_true(v.gather);
}

static int
hook(void *into, struct opt_word *w, struct err *e)
{
	struct values *v = into;

	(void)e;
	v->hook_args = w->n_args;
	w->used = w->value != NULL && strcmp(w->value, "take") == 0;
	v->hook_used |= w->used;
	return 0;
}

static int
n_leading(const void *opts)
{
	const struct values *v = opts;

	return v->leading;
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_are_taken),
		cmocka_unit_test(options_end),
		cmocka_unit_test(mistakes_are_refused),
		cmocka_unit_test(names_may_be_cut),
		cmocka_unit_test(hooks_decide),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
