/* test_authority.c: the authority key on disk: clear, sealed, wrong, damaged. */
#include <sys/stat.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <sodium.h>

#include "common/base/io.h"
#include "common/net/authority.h"

struct fixture {
	struct state st;
	uint8_t secret[AUTHORITY_SECRET_SIZE], public[KEY_SIZE];
	uint8_t got[AUTHORITY_SECRET_SIZE];
	struct err e;
};

static int
setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	char dir[] = "/tmp/muster-authority.XXXXXX";

	assert_int_not_equal(sodium_init(), -1);
	assert_non_null(mkdtemp(dir));
	assert_int_equal(state_open(&f->st, dir, &f->e), 0);
	authority_generate(f->secret, f->public);
	*state = f;
	return 0;
}

static int
teardown(void **state)
{
	static const enum state_file files[] = { STATE_AUTHORITY_KEY,
		STATE_AUTHORITY_PUB };
	struct fixture *f = *state;
	char path[PATH_MAX];

	for (size_t i = 0; i < nitems(files); i++)
		unlink(state_path(&f->st, files[i], path));
	rmdir(f->st.dir);
	free(f);
	return 0;
}

static mode_t
mode_of(struct fixture *f, enum state_file file)
{
	char path[PATH_MAX];
	struct stat sb;

	assert_int_equal(stat(state_path(&f->st, file, path), &sb), 0);
	return sb.st_mode & 07777;
}

static void
in_the_clear(void **state)
{
	struct fixture *f = *state;
	uint8_t public[KEY_SIZE];

	assert_int_equal(authority_store(&f->st, f->secret, NULL, &f->e), 0);
	assert_int_equal(authority_load(&f->st, NULL, f->got, &f->e), 0);
	assert_memory_equal(f->got, f->secret, sizeof(f->got));
	assert_int_equal(authority_load_public(&f->st, public, &f->e), 0);
	assert_memory_equal(public, f->public, sizeof(public));
	assert_int_equal(mode_of(f, STATE_AUTHORITY_KEY), 0600);
	assert_int_equal(mode_of(f, STATE_AUTHORITY_PUB), 0644);
}

static void
sealed(void **state)
{
	struct fixture *f = *state;
	char path[PATH_MAX], *bytes;
	size_t size;

	assert_int_equal(authority_store(&f->st, f->secret, "correct horse",
			     &f->e),
	    0);
	assert_int_equal(mode_of(f, STATE_AUTHORITY_KEY), 0600);

	assert_int_equal(authority_load(&f->st, NULL, f->got, &f->e), -1);
	assert_int_equal(f->e.code, ERR_LOCKED);
	assert_non_null(strstr(f->e.text, "clusterctl unlock"));

	assert_int_equal(authority_load(&f->st, "wrong", f->got, &f->e), -1);
	assert_int_equal(f->e.code, ERR_DENIED);
	assert_null(strstr(f->e.text, "wrong\""));

	assert_int_equal(authority_load(&f->st, "correct horse", f->got, &f->e),
	    0);
	assert_memory_equal(f->got, f->secret, sizeof(f->got));

	/* The secret's seed is nowhere in the file. */
	assert_int_equal(io_read_file(state_path(&f->st, STATE_AUTHORITY_KEY,
					  path),
			     4096, &bytes, &size, &f->e),
	    0);
	assert_null(memmem(bytes, size, f->secret, 32));
	free(bytes);
}

static void
damaged(void **state)
{
	struct fixture *f = *state;
	char path[PATH_MAX];
	uint8_t other[KEY_SIZE] = { 1 }, junk[136] = { 0 };

	assert_int_equal(authority_store(&f->st, f->secret, NULL, &f->e), 0);
	assert_int_equal(io_write_file(state_path(&f->st, STATE_AUTHORITY_PUB,
					   path),
			     other, sizeof(other), 0644, &f->e),
	    0);
	assert_int_equal(authority_load(&f->st, NULL, f->got, &f->e), -1);
	assert_int_equal(f->e.code, ERR_CORRUPT);

	state_path(&f->st, STATE_AUTHORITY_KEY, path);
	assert_int_equal(io_write_file(path, junk, sizeof(junk), 0600, &f->e),
	    0);
	assert_int_equal(authority_load(&f->st, "x", f->got, &f->e), -1);
	assert_int_equal(f->e.code, ERR_CORRUPT);

	assert_int_equal(io_write_file(path, junk, 7, 0600, &f->e), 0);
	assert_int_equal(authority_load(&f->st, NULL, f->got, &f->e), -1);
	assert_int_equal(f->e.code, ERR_CORRUPT);
}

static void
open_to_others(void **state)
{
	struct fixture *f = *state;
	char path[PATH_MAX];

	assert_int_equal(authority_store(&f->st, f->secret, NULL, &f->e), 0);
	assert_int_equal(chmod(state_path(&f->st, STATE_AUTHORITY_KEY, path),
			     0640),
	    0);
	assert_int_equal(authority_load(&f->st, NULL, f->got, &f->e), -1);
	assert_non_null(strstr(f->e.text, "open to others"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(in_the_clear, setup, teardown),
		cmocka_unit_test_setup_teardown(sealed, setup, teardown),
		cmocka_unit_test_setup_teardown(damaged, setup, teardown),
		cmocka_unit_test_setup_teardown(open_to_others, setup,
		    teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
