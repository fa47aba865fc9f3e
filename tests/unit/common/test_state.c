/* test_state.c: the state directory and whole files: who may write where. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <sys/stat.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/io.h"
#include "common/base/state.h"

static char root[] = "/tmp/muster-state-XXXXXX";

static const char *
below(const char *file)
{
	static char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", root, file);
	return path;
}

static int
make_root(void **state)
{
	(void)state;
	return mkdtemp(root) == NULL ? -1 : 0;
}

static int
remove_root(void **state)
{
	static const char *const files[] = { "open/in/deep", "open/in", "open",
		"new/a/node.key", "new/a/link", "new/a/hard",
		"new/a/authority.key", "new/a/operator.key", "new/a/whole",
		"swept/.muster", "swept/node.key", "swept", "new/a", "new",
		NULL };

	(void)state;
	for (size_t i = 0; files[i] != NULL; i++)
		remove(below(files[i]));
	return rmdir(root);
}

static void
a_made_state_is_private(void **state)
{
	struct state st;
	struct stat sb;
	struct err e;

	(void)state;
	assert_int_equal(state_create(&st, below("new/a"), &e), 0);
	assert_int_equal(stat(below("new/a"), &sb), 0);
	assert_int_equal(sb.st_mode & 07777, 0700);
}

static void
a_writable_parent_is_refused(void **state)
{
	struct state st;
	struct err e;

	(void)state;
	mkdir(below("open"), 0755);
	mkdir(below("open/in"), 0755);
	mkdir(below("open/in/deep"), 0700);
	assert_int_equal(state_open(&st, below("open/in/deep"), &e), 0);
	for (mode_t wide = 0020; wide != 0; wide = wide == 0020 ? 0002 : 0) {
		chmod(below("open"), 0755 | wide);
		assert_int_equal(state_open(&st, below("open/in/deep"), &e),
		    -1);
		assert_non_null(strstr(e.text, "/open is writable by others"));
		chmod(below("open"), 0755);
		chmod(below("open/in/deep"), 0700 | wide);
		assert_int_equal(state_open(&st, below("open/in/deep"), &e),
		    -1);
		chmod(below("open/in/deep"), 0700);
	}
	assert_int_equal(state_open(&st, below("none"), &e), -1);
	assert_non_null(strstr(e.text, "--state"));
}

static void
secrets_must_be_private(void **state)
{
	struct state st;
	uint8_t key[32];
	struct err e;

	(void)state;
	assert_int_equal(state_open(&st, below("new/a"), &e), 0);
	assert_int_equal(io_write_file(below("new/a/node.key"),
			     "0123456789abcdef0123456789abcdef", 32, 0600, &e),
	    0);
	assert_int_equal(state_read_secret(&st, STATE_NODE_KEY, key, 32, &e),
	    0);
	assert_int_equal(state_read_secret(&st, STATE_NODE_KEY, key, 31, &e),
	    -1);
	assert_int_equal(e.code, ERR_CORRUPT);
	chmod(below("new/a/node.key"), 0640);
	assert_int_equal(state_read_secret(&st, STATE_NODE_KEY, key, 32, &e),
	    -1);
	assert_non_null(strstr(e.text, "chmod 600"));
	chmod(below("new/a/node.key"), 0600);
	assert_int_equal(symlink("node.key", below("new/a/authority.key")), 0);
	assert_int_equal(state_read_secret(&st, STATE_AUTHORITY_KEY, key, 32,
			     &e),
	    -1);
	assert_non_null(strstr(e.text, "symbolic link"));
	assert_int_equal(mkfifo(below("new/a/operator.key"), 0600), 0);
	assert_int_equal(state_read_secret(&st, STATE_OPERATOR_KEY, key, 32,
			     &e),
	    -1);
}

static void
files_are_replaced_whole(void **state)
{
	char path[PATH_MAX], *data;
	struct stat sb;
	struct err e;
	size_t size;

	(void)state;
	snprintf(path, sizeof(path), "%s", below("new/a/whole"));
	assert_int_equal(io_write_file(path, "one", 3, 0600, &e), 0);
	assert_int_equal(io_write_file(path, "twotwo", 6, 0644, &e), 0);
	assert_int_equal(stat(path, &sb), 0);
	assert_int_equal(sb.st_mode & 07777, 0644);
	assert_int_equal(io_read_file(path, 6, &data, &size, &e), 0);
	assert_int_equal(size, 6);
	assert_string_equal(data, "twotwo");
	free(data);
	assert_int_equal(io_read_file(path, 5, &data, &size, &e), -1);
	assert_int_equal(io_write_file(below("none/file"), "x", 1, 0600, &e),
	    -1);
	assert_int_equal(io_read_file(below("new"), 5, &data, &size, &e), -1);
	assert_non_null(strstr(e.text, "not a plain file"));
}

static void
an_empty_name_is_no_default(void **state)
{
	struct state st;
	struct err e;

	(void)state;
	setenv("MUSTER_STATE", root, 1);
	assert_string_equal(state_dir(NULL), root);
	setenv("MUSTER_STATE", "", 1);
	assert_string_equal(state_dir(NULL), STATE_DEFAULT_DIR);
	unsetenv("MUSTER_STATE");
	assert_int_equal(state_open(&st, state_dir(""), &e), -1);
	assert_int_equal(e.code, ERR_USAGE);
	assert_int_equal(state_create(&st, state_dir(""), &e), -1);
	assert_int_equal(e.code, ERR_USAGE);
}

static void
what_killed_writers_left_is_removed(void **state)
{
	struct io_replacement dead, alive;
	char path[PATH_MAX];
	struct state st;
	struct err e;

	(void)state;
	assert_int_equal(state_create(&st, below("swept"), &e), 0);
	state_path(&st, STATE_NODE_KEY, path);
	assert_int_equal(io_replace_begin(&dead, path, &e), 0);
	io_close(&dead.fd); /* as its death would */
	assert_int_equal(io_replace_begin(&alive, path, &e), 0);
	assert_int_equal(io_write_file(below("swept/.muster"), "x", 1, 0600,
			     &e),
	    0);
	assert_int_equal(state_open(&st, below("swept"), &e), 0);
	assert_int_equal(access(dead.tmp, F_OK), -1);
	assert_int_equal(access(below("swept/.muster"), F_OK), 0);
	assert_int_equal(io_replace_commit(&alive, 0600, &e), 0);
	assert_true(state_has(&st, STATE_NODE_KEY));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_made_state_is_private),
		cmocka_unit_test(a_writable_parent_is_refused),
		cmocka_unit_test(secrets_must_be_private),
		cmocka_unit_test(files_are_replaced_whole),
		cmocka_unit_test(an_empty_name_is_no_default),
		cmocka_unit_test(what_killed_writers_left_is_removed),
	};

	return cmocka_run_group_tests_name("state", tests, make_root,
	    remove_root);
}
