/* test_log_writer.c: lines of the access log, on a disk that gets full. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <sys/resource.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/io.h"
#include "proxyd/process/log_writer.h"

#define PATIENCE_MS 20000

static char dir[32], path[64];
static struct log_writer *writer;
static struct log_ring *ring;

/* As a full disk would: what goes beyond is refused. */
static void
limit_files(rlim_t bytes)
{
	struct rlimit l;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &l), 0);
	l.rlim_cur = bytes;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &l), 0);
}

static int
setup(void **state)
{
	struct err e;

	(void)state;
	signal(SIGXFSZ, SIG_IGN);
	snprintf(dir, sizeof(dir), "/tmp/muster-log-XXXXXX");
	if (mkdtemp(dir) == NULL)
		return -1;
	snprintf(path, sizeof(path), "%s/log", dir);
	writer = log_writer_new(&e);
	return writer == NULL || log_writer_open(writer, path, &e) == -1 ||
		(ring = log_writer_ring(writer, &e)) == NULL ?
	    -1 :
	    0;
}

static int
teardown(void **state)
{
	(void)state;
	limit_files(RLIM_INFINITY);
	log_writer_free(writer);
	unlink(path);
	return rmdir(dir);
}

static void
put(const char *line)
{
	char *room = log_ring_room(ring, strlen(line));

	assert_non_null(room);
	memcpy(room, line, strlen(line));
	log_ring_put(ring, strlen(line));
}

static void
wait_until_taken(void)
{
	for (int i = 0; atomic_load(&ring->shared->tail) !=
	     atomic_load(&ring->shared->head);
	     i++) {
		assert_true(i < PATIENCE_MS);
		poll(NULL, 0, 1);
	}
}

static void
expect(const char *content)
{
	char *text;
	size_t size;
	struct err e;

	assert_int_equal(io_read_file(path, 1 << 20, &text, &size, &e), 0);
	assert_int_equal(size, strlen(content));
	assert_memory_equal(text, content, size);
	free(text);
}

static void
half_a_line_is_not_joined_by_the_next(void **state)
{
	(void)state;
	put("first\n");
	wait_until_taken();
	limit_files(10);
	put("second\n");
	wait_until_taken();
	expect("first\nseco");
	put("third\n"); /* it is still full */
	wait_until_taken();
	expect("first\nseco");
	limit_files(RLIM_INFINITY);
	put("fourth\n");
	wait_until_taken();
	put("fifth\n");
	wait_until_taken();
	expect("first\nseco\nfourth\nfifth\n");
}

static void
a_whole_line_at_the_end_needs_no_other_end(void **state)
{
	(void)state;
	limit_files(6);
	put("first\nsecond\n");
	wait_until_taken();
	expect("first\n");
	limit_files(RLIM_INFINITY);
	put("third\n");
	wait_until_taken();
	expect("first\nthird\n");
}

static void
another_file_begins_at_its_beginning(void **state)
{
	char moved[80];
	struct err e;

	(void)state;
	limit_files(3);
	put("first\n");
	wait_until_taken();
	limit_files(RLIM_INFINITY);
	snprintf(moved, sizeof(moved), "%s.1", path);
	assert_int_equal(rename(path, moved), 0);
	assert_int_equal(log_writer_reopen(writer, &e), 0);
	put("second\n");
	wait_until_taken();
	expect("second\n");
	unlink(moved);
}

#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(half_a_line_is_not_joined_by_the_next),
		T(a_whole_line_at_the_end_needs_no_other_end),
		T(another_file_begins_at_its_beginning),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
