/* test_streams.c: spools in memory and in files, windows, manifests. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "clusterctl/manifest.h"
#include "clusterctl/pace.h"
#include "clusterctl/spool.h"
#include "clusterctl/window.h"
#include "common/base/io.h"

/* Any mixture of sizes comes out as it went in, on both sides of the bound. */
static void
spools_keep_bytes(void **state)
{
	static const size_t sizes[] = { 0, 1, 1023, 1024, 5000, SPOOL_MEMORY,
		SPOOL_MEMORY + 1, 100000 };
	static char piece[100000], back[100000];
	struct err e;

	(void)state;
	for (size_t i = 0; i < sizeof(piece); i++)
		piece[i] = (char)(i * 31);
	for (size_t i = 0; i < nitems(sizes); i++) {
		struct spool s;
		const char *view;
		size_t n;

		spool_init(&s);
		for (size_t at = 0; at < sizes[i]; at += 777) {
			n = sizes[i] - at < 777 ? sizes[i] - at : 777;
			assert_int_equal(spool_put(&s, piece + at, n, &e), 0);
		}
		assert_int_equal(s.size, sizes[i]);
		assert_int_equal(s.fd != -1, sizes[i] > SPOOL_MEMORY);
		assert_int_equal(spool_read(&s, 0, back, sizeof(back), &e),
		    sizes[i]);
		assert_memory_equal(back, piece, sizes[i]);
		assert_int_equal(spool_read(&s, sizes[i], back, sizeof(back),
				     &e),
		    0);
		assert_int_equal(spool_view(&s, &view, &n, &e), 0);
		assert_int_equal(n, sizes[i]);
		assert_memory_equal(view, piece, n);
		spool_fini(&s);
		spool_fini(&s); /* harmless */
	}
}

static void
spools_need_a_directory(void **state)
{
	static char piece[SPOOL_MEMORY + 1];
	struct spool s;
	struct err e;

	(void)state;
	setenv("TMPDIR", "/nonexistent", 1);
	spool_init(&s);
	assert_int_equal(spool_put(&s, piece, sizeof(piece), &e), -1);
	assert_int_equal(e.code, ERR_LOCAL);
	assert_non_null(strstr(e.text, "/nonexistent"));
	spool_fini(&s);
	unsetenv("TMPDIR");
}

static void
windows_believe_no_nonsense(void **state)
{
	static const struct {
		uint64_t said, taken;
	} cases[] = {
		{ 0, 100 }, /* less than before */
		{ 150, 150 },
		{ 1000, 1000 },
		{ 1001, 100 }, /* more than was sent */
		{ UINT64_MAX, 100 },
	};

	(void)state;
	for (size_t i = 0; i < nitems(cases); i++) {
		struct window w = { .sent = 1000, .taken = 100 };
		uint8_t body[8];

		for (int b = 0; b < 8; b++)
			body[b] = (uint8_t)(cases[i].said >> (56 - 8 * b));
		window_taken(&w, body);
		assert_true(w.taken == cases[i].taken);
	}
}

static void
paces(void **state)
{
	static const struct {
		struct pace_opts o;
		int rv;
		uint64_t window;
		int64_t max_fail;
	} cases[] = {
		{ { .fanout = 128 }, 0, 128, -1 },
		{ { .fanout = 128, .serial = true }, 0, 1, -1 },
		{ { .fanout = 128, .batch = "25%" }, 0, 10, -1 },
		{ { .fanout = 4, .batch = "25%" }, 0, 4, -1 },
		{ { .fanout = 128, .batch = "3" }, 0, 3, -1 },
		{ { .fanout = 128, .batch = "1%" }, 0, 1, -1 },
		{ { .fanout = 128, .batch = "0" }, -1, 0, 0 },
		{ { .fanout = 128, .batch = "x" }, -1, 0, 0 },
		{ { .fanout = 128, .fail_fast = true }, 0, 128, 0 },
		{ { .fanout = 128, .max_fail = "0" }, 0, 128, 0 },
		{ { .fanout = 128, .max_fail = "10%" }, 0, 128, 4 },
		{ { .fanout = 128, .max_fail = "-1" }, -1, 0, 0 },
	};
	struct err e;

	(void)state;
	for (size_t i = 0; i < nitems(cases); i++) {
		struct fanout_plan p = { .n = 40 };

		assert_int_equal(pace_apply(&cases[i].o, &p, &e), cases[i].rv);
		if (cases[i].rv == -1) {
			assert_int_equal(e.code, ERR_USAGE);
			continue;
		}
		assert_true(p.window == cases[i].window);
		assert_true(p.max_fail == cases[i].max_fail);
	}
}

/* Where each source goes: its own name, and what is below it. */
static void
manifests_name_as_cp(void **state)
{
	static const struct {
		const char *source, *name;
	} cases[] = {
		{ "dir", "dir" },
		{ "dir/", "dir" },
		{ "dir///", "dir" },
		{ "dir/.", "" },
		{ "dir/sub/..", "" },
	};
	char top[] = "/tmp/test_streams.XXXXXX", path[128];
	struct err e;
	int fd;

	(void)state;
	assert_non_null(mkdtemp(top));
	snprintf(path, sizeof(path), "%s/dir", top);
	mkdir(path, 0750);
	snprintf(path, sizeof(path), "%s/dir/sub", top);
	mkdir(path, 0700);
	snprintf(path, sizeof(path), "%s/dir/sub/f", top);
	fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0640);
	assert_int_equal(io_write_n(fd, "abc", 3), 0);
	close(fd);
	for (size_t i = 0; i < nitems(cases); i++) {
		struct manifest m;
		char source[128];

		snprintf(source, sizeof(source), "%s/%s", top, cases[i].source);
		manifest_init(&m);
		assert_int_equal(manifest_add(&m, source, &e), 0);
		assert_int_equal(m.n, 3);
		assert_int_equal(m.n_sources, 1);
		assert_int_equal(m.size, 3);
		for (size_t k = 0; k < m.n; k++)
			assert_string_equal(m.entries[k].name, cases[i].name);
		assert_string_equal(m.entries[0].below, "");
		assert_string_equal(m.entries[1].below, "sub");
		assert_string_equal(m.entries[2].below, "sub/f");
		assert_int_equal(m.entries[2].type, ENTRY_FILE);
		assert_int_equal(m.entries[2].mode, 0640);
		assert_string_equal(m.entries[2].hash,
		    "bddd813c634239723171ef3fee98579b94964e3bb1cb3e427262c8c068"
		    "d52319");
		manifest_fini(&m);
	}
	unlink(path);
	*strrchr(path, '/') = '\0';
	rmdir(path);
	*strrchr(path, '/') = '\0';
	rmdir(path);
	rmdir(top);
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(spools_keep_bytes),
		cmocka_unit_test(spools_need_a_directory),
		cmocka_unit_test(windows_believe_no_nonsense),
		cmocka_unit_test(paces),
		cmocka_unit_test(manifests_name_as_cp),
	};

	if (sodium_init() == -1)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
