/* test_accounts.c: the counters of sites and owners, on disk and back. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/io.h"
#include "proxyd/process/accounts.h"

static char path[64];

static int
setup(void **state)
{
	static struct scoreboard sb;
	struct err e;

	snprintf(path, sizeof(path), "/tmp/muster-accounts-%d", (int)getpid());
	*state = &sb;
	return scoreboard_create(&sb, 2, 4, 8, &e);
}

static int
teardown(void **state)
{
	unlink(path);
	scoreboard_unmap(*state);
	return 0;
}

static struct sb_account *
fill(struct scoreboard *sb, enum sb_account_kind kind, int64_t id, uint64_t n)
{
	struct sb_account *a = sb_account(sb, sb_account_row(sb, kind, id));

	a->requests = n;
	a->bytes_in = n + 1;
	a->bytes_out = n + 2;
	a->node_us = n + 3;
	a->tunnels = n + 4;
	a->limited = n + 11;
	for (size_t i = 0; i < nitems(a->status); i++)
		a->status[i] = n + 5 + i;
	return a;
}

static void
check(struct scoreboard *sb, enum sb_account_kind kind, int64_t id, uint64_t n)
{
	struct sb_account *a = sb_account(sb, sb_account_row(sb, kind, id));

	assert_int_equal(a->requests, n);
	assert_int_equal(a->bytes_in, n + 1);
	assert_int_equal(a->bytes_out, n + 2);
	assert_int_equal(a->node_us, n + 3);
	assert_int_equal(a->tunnels, n + 4);
	assert_int_equal(a->limited, n + 11);
	for (size_t i = 0; i < nitems(a->status); i++)
		assert_int_equal(a->status[i], n + 5 + i);
}

static void
what_is_saved_comes_back(void **state)
{
	struct scoreboard *sb = *state, other;
	struct stat st;
	struct err e;

	fill(sb, SB_SITE, 1, 100);
	fill(sb, SB_OWNER, INT64_MAX, UINT64_MAX / 2);
	fill(sb, SB_SITE, 3, 0); /* nothing to keep */
	assert_int_equal(accounts_save(sb, path, &e), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(scoreboard_create(&other, 2, 4, 8, &e), 0);
	assert_int_equal(accounts_restore(&other, path, &e), 0);
	check(&other, SB_SITE, 1, 100);
	check(&other, SB_OWNER, INT64_MAX, UINT64_MAX / 2);
	assert_int_equal(other.head->used_accounts, 2);
	scoreboard_unmap(&other);
}

static void
what_is_restored_is_added(void **state)
{
	struct scoreboard *sb = *state;
	struct sb_account *a = fill(sb, SB_SITE, 1, 7);
	struct err e;

	assert_int_equal(accounts_save(sb, path, &e), 0);
	assert_int_equal(accounts_restore(sb, path, &e), 0);
	assert_int_equal(a->requests, 14);
	assert_int_equal(a->status[5], 34);
}

static void
no_file_is_no_counters(void **state)
{
	struct err e;

	assert_int_equal(accounts_restore(*state, "/nonexistent/x", &e), 0);
}

/* All or nothing. */
static void
a_damaged_file_adds_nothing(void **state)
{
	static const char good[] = "1 5 1 2 3 4 5 6 7 8 9 10 11\n";
	static const char *const bad[] = {
		"",
		"muster-accounts 3\n",
		"muster-accounts 1",
		"muster-accounts 2\n%s1 6 1 2 3 4 5 6 7 8 9 10 11 12\n",
		"muster-accounts 2\n1 6 1 2 3 4 5 6 7 8 9 10 11 12\n%s",
		"muster-accounts 1\n%s1 6 1 2\n",
		"muster-accounts 1\n%s1 6 1 2 3 4 5 6 7 8 9 10",
		"muster-accounts 1\n%s1 6 1 2 3 4 5 6 7 8 9 10 11",
		"muster-accounts 1\n%s1 6 1 2 3 4 5 6 7 8 9 10 11 12\n",
		"muster-accounts 1\n%s3 6 1 2 3 4 5 6 7 8 9 10 11\n",
		"muster-accounts 1\n%s1 -6 1 2 3 4 5 6 7 8 9 10 11\n",
		"muster-accounts 1\n%s1 0 1 2 3 4 5 6 7 8 9 10 11\n",
		"muster-accounts 1\n%sx\n",
		"muster-accounts 1\n%s\n\n",
	};
	struct scoreboard *sb = *state;
	char text[256];
	struct err e;

	for (size_t i = 0; i < nitems(bad); i++) {
		const char *gap = strstr(bad[i], "%s");
		int before =
		    gap != NULL ? (int)(gap - bad[i]) : (int)strlen(bad[i]);
		int n = snprintf(text, sizeof(text), "%.*s%s%s", before, bad[i],
		    gap != NULL ? good : "", gap != NULL ? gap + 2 : "");

		assert_int_equal(io_write_file(path, text, (size_t)n, 0600, &e),
		    0);
		if (accounts_restore(sb, path, &e) != -1)
			fail_msg("taken: %s", text);
		assert_int_equal(e.code, ERR_CORRUPT);
		assert_int_equal(sb->head->used_accounts, 0);
	}
}

static void
an_older_file_is_read(void **state)
{
	static const char text[] =
	    "muster-accounts 1\n1 5 1 2 3 4 5 6 7 8 9 10 11\n";
	struct scoreboard *sb = *state;
	const struct sb_account *a;
	struct err e;

	assert_int_equal(io_write_file(path, text, sizeof(text) - 1, 0600, &e),
	    0);
	assert_int_equal(accounts_restore(sb, path, &e), 0);
	a = sb_account(sb, sb_account_row(sb, SB_SITE, 5));
	assert_int_equal(a->requests, 1);
	assert_int_equal(a->status[5], 11);
	assert_int_equal(a->limited, 0);
}

static void
more_than_fits(void **state)
{
	struct scoreboard *sb = *state, small;
	struct err e;

	for (int i = 1; i <= 8; i++)
		fill(sb, SB_SITE, i, 1);
	assert_int_equal(accounts_save(sb, path, &e), 0);
	assert_int_equal(scoreboard_create(&small, 2, 4, 3, &e), 0);
	assert_int_equal(accounts_restore(&small, path, &e), 0);
	assert_int_equal(small.head->used_accounts, 3);
	scoreboard_unmap(&small);
}

static void
a_place_that_cannot_be_written(void **state)
{
	struct err e;

	assert_int_equal(accounts_save(*state, "/nonexistent/x", &e), -1);
	assert_non_null(strstr(e.text, "/nonexistent"));
}

#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(what_is_saved_comes_back),
		T(what_is_restored_is_added),
		T(no_file_is_no_counters),
		T(a_damaged_file_adds_nothing),
		T(an_older_file_is_read),
		T(more_than_fits),
		T(a_place_that_cannot_be_written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
