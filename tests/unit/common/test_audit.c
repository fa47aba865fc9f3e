/* test_audit.c: the chained log: whole, torn, forged, shared, full. */
#include "tests/unit/common/scratch.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <fcntl.h>
#include <signal.h>

#include "common/audit/audit.h"
#include "common/base/io.h"

static const char *
log_path(struct scratch *s)
{
	static char path[PATH_MAX];

	return scratch_path(s, "audit-node.log", path);
}

static void
append(struct scratch *s, const char *typed)
{
	assert_ok(s,
	    audit_append(log_path(s),
		json_pack("{s:s, s:s}", "event", "exec", "typed", typed),
		&s->e));
}

static struct audit_report
verify(struct scratch *s)
{
	struct audit_report report;

	assert_ok(s, audit_verify(log_path(s), &report, &s->e));
	return report;
}

static void
slurp(struct scratch *s, char **data, size_t *size)
{
	assert_ok(s, io_read_file(log_path(s), 1 << 24, data, size, &s->e));
}

static void
spill(struct scratch *s, const char *data, size_t size)
{
	assert_ok(s, io_write_file(log_path(s), data, size, 0600, &s->e));
}

static void
lines_chain(void **state)
{
	struct scratch *s = *state;
	struct audit_report report = verify(s);
	struct stat sb;
	char *data, first[128];
	size_t size;

	assert_int_equal(report.n_lines, 0);
	assert_int_equal(report.bad_line, 0);
	append(s, "uptime");
	append(s, "id; echo \"x\"\n");
	append(s, "caf\xc3\xa9");
	report = verify(s);
	assert_int_equal(report.n_lines, 3);
	assert_int_equal(report.bad_line, 0);
	assert_int_equal(strlen(report.head_hex), 64);
	assert_int_equal(stat(log_path(s), &sb), 0);
	assert_int_equal(sb.st_mode & 07777, 0600);
	slurp(s, &data, &size);
	snprintf(first, sizeof(first), "%.60s", data);
	assert_true(strncmp(first, "{\"seq\":1,\"time\":\"20", 19) == 0);
	assert_int_equal(data[size - 1], '\n');
	free(data);
}

/* Any byte that is changed, any line that is missing or moved, is found; but
 * for the last line's, which only the head's hash shows. */
static void
forgeries_are_found(void **state)
{
	struct scratch *s = *state;
	struct audit_report report;
	char *data, *last, *copy;
	size_t size;

	for (int i = 0; i < 5; i++)
		append(s, "order");
	slurp(s, &data, &size);
	last = memrchr(data, '\n', size - 1);
	for (char *p = data; p < last; p++) {
		*p ^= 1;
		spill(s, data, size);
		report = verify(s);
		if (report.bad_line == 0)
			fail_msg("byte %d", (int)(p - data));
		*p ^= 1;
	}
	/* The second line taken out. */
	copy = strdup(data);
	{
		char *two = strchr(copy, '\n') + 1;
		char *three = strchr(two, '\n') + 1;

		memmove(two, three, strlen(three) + 1);
		spill(s, copy, strlen(copy));
		report = verify(s);
		assert_int_equal(report.bad_line, 2);
		assert_non_null(strstr(report.why, "removed"));
	}
	free(copy);
	/* Rubbish at the end, as a line. */
	copy = malloc(size + 10);
	memcpy(copy, data, size);
	memcpy(copy + size, "rubbish\n", 8);
	spill(s, copy, size + 8);
	assert_int_equal(verify(s).bad_line, 6);
	free(copy);
	free(data);
}

/* Wherever the power went: the next append says so and the chain holds. */
static void
torn_ends_are_accounted_for(void **state)
{
	struct scratch *s = *state;
	struct audit_report report;
	char *data, *last;
	size_t size;

	append(s, "one");
	append(s, "two");
	slurp(s, &data, &size);
	last = memrchr(data, '\n', size - 1);
	for (size_t n = (size_t)(last + 2 - data); n < size; n++) {
		spill(s, data, n);
		report = verify(s);
		/* With all but its newline, a line is no torn one. */
		assert_int_equal(report.torn_tail, n < size - 1);
		assert_int_equal(report.bad_line, 0);
		append(s, "three");
		report = verify(s);
		assert_false(report.torn_tail);
		assert_int_equal(report.bad_line, 0);
		assert_int_equal(report.n_healed, n < size - 1);
		assert_int_equal(report.n_lines, 3);
	}
	/* Twice in a row, the second in the middle of the healing. */
	spill(s, data, size - 5);
	free(data);
	append(s, "three");
	slurp(s, &data, &size);
	spill(s, data, size - 150);
	free(data);
	append(s, "four");
	report = verify(s);
	assert_int_equal(report.bad_line, 0);
	assert_int_equal(report.n_healed, 1);
	/* What was accounted for cannot be changed afterwards. */
	slurp(s, &data, &size);
	last = strstr(data, "\"t\n");
	assert_non_null(last);
	last[1] = 'T';
	spill(s, data, size);
	free(data);
	assert_int_not_equal(verify(s).bad_line, 0);
}

static void
large_fields_are_cut(void **state)
{
	struct scratch *s = *state;
	char *big = malloc(200001);
	json_t *list = json_array();

	memset(big, '\001', 200000); /* six bytes each in JSON */
	big[200000] = '\0';
	append(s, big);
	memset(big, 'x', 200000);
	append(s, big);
	/* A multibyte character must not be cut in two. */
	for (int i = 0; i < 100000; i++)
		memcpy(big + 2 * i, "\xc3\xa9", 2);
	append(s, big);
	for (int i = 0; i < 9000; i++)
		json_array_append_new(list, json_string("node"));
	assert_ok(s,
	    audit_append(log_path(s),
		json_pack("{s:o, s:s}", "nodes", list, "typed", big), &s->e));
	free(big);
	assert_int_equal(verify(s).n_lines, 4);
	assert_int_equal(verify(s).bad_line, 0);
}

static int
check_cut(uint64_t line, const json_t *event, void *arg)
{
	++*(uint64_t *)arg;
	assert_int_equal(line, *(uint64_t *)arg);
	assert_int_equal(json_array_size(json_object_get(event, "cut")), 1);
	assert_true(json_string_length(json_object_get(event, "typed")) > 1000);
	return 0;
}

static void
a_cut_is_marked_and_events_are_walked(void **state)
{
	struct scratch *s = *state;
	char *big = malloc(100001);
	uint64_t n = 0;

	memset(big, 'x', 100000);
	big[100000] = '\0';
	append(s, big);
	append(s, big);
	free(big);
	assert_ok(s, audit_each(log_path(s), 1, check_cut, &n, &s->e));
	assert_int_equal(n, 2);
	n = 1;
	assert_ok(s, audit_each(log_path(s), 2, check_cut, &n, &s->e));
	assert_int_equal(n, 2);
}

static void
several_writers_share_it(void **state)
{
	struct scratch *s = *state;
	int status;

	for (int i = 0; i < 8; i++) {
		if (fork() != 0)
			continue;
		for (int k = 0; k < 50; k++)
			if (audit_append_soon(log_path(s),
				json_pack("{s:i}", "writer", i), &s->e) == -1)
				_exit(1);
		_exit(0);
	}
	for (int i = 0; i < 8; i++) {
		assert_true(wait(&status) > 0);
		assert_int_equal(status, 0);
	}
	assert_ok(s, audit_sync(log_path(s), &s->e));
	assert_int_equal(verify(s).n_lines, 400);
	assert_int_equal(verify(s).bad_line, 0);
}

static void
a_killed_writer_leaves_it_sound(void **state)
{
	struct scratch *s = *state;
	char byte;

	for (int round = 0; round < 20; round++) {
		int fds[2];
		pid_t pid;

		assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
		if ((pid = fork()) == 0) {
			for (;;)
				if (audit_append_soon(log_path(s),
					json_pack("{s:i}", "n", round),
					&s->e) == -1 ||
				    io_write_n(fds[1], "x", 1) == -1)
					_exit(1);
		}
		close(fds[1]);
		for (int i = 0; i < 20; i++)
			assert_int_equal(io_read_n(fds[0], &byte, 1), 1);
		kill(pid, SIGKILL);
		assert_int_equal(waitpid(pid, NULL, 0), pid);
		close(fds[0]);
		append(s, "after");
		assert_int_equal(verify(s).bad_line, 0);
	}
}

static void
a_full_disk_gives_back_what_it_took(void **state)
{
	struct scratch *s = *state;
	struct rlimit was, small;
	struct stat before, after;

	append(s, "one");
	assert_int_equal(stat(log_path(s), &before), 0);
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &was), 0);
	small = was;
	small.rlim_cur = (rlim_t)before.st_size + 40;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	assert_refused(s,
	    audit_append(log_path(s), json_pack("{s:s}", "a", "b"), &s->e),
	    ERR_LOCAL, "cannot write audit log");
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &was), 0);
	assert_int_equal(stat(log_path(s), &after), 0);
	assert_int_equal(after.st_size, before.st_size);
	append(s, "two");
	assert_int_equal(verify(s).n_lines, 2);
	assert_int_equal(verify(s).bad_line, 0);
}

static void
a_log_that_others_may_write_is_refused(void **state)
{
	struct scratch *s = *state;
	char other[PATH_MAX];

	append(s, "one");
	assert_int_equal(chmod(log_path(s), 0622), 0);
	assert_refused(s, audit_append(log_path(s), json_object(), &s->e),
	    ERR_LOCAL, "chmod 600");
	assert_int_equal(chmod(log_path(s), 0600), 0);
	assert_int_equal(rename(log_path(s), scratch_path(s, "other", other)),
	    0);
	assert_int_equal(symlink(other, log_path(s)), 0);
	assert_refused(s, audit_append(log_path(s), json_object(), &s->e),
	    ERR_LOCAL, "symbolic link");
}

static void
a_log_of_something_else_is_refused(void **state)
{
	struct scratch *s = *state;
	char *junk = malloc(100000);

	memset(junk, 'j', 100000);
	spill(s, junk, 100000);
	assert_refused(s, audit_append(log_path(s), json_object(), &s->e),
	    ERR_CORRUPT, "move it away");
	free(junk);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		scratch_test(lines_chain),
		scratch_test(forgeries_are_found),
		scratch_test(torn_ends_are_accounted_for),
		scratch_test(large_fields_are_cut),
		scratch_test(a_cut_is_marked_and_events_are_walked),
		scratch_test(several_writers_share_it),
		scratch_test(a_killed_writer_leaves_it_sound),
		scratch_test(a_full_disk_gives_back_what_it_took),
		scratch_test(a_log_that_others_may_write_is_refused),
		scratch_test(a_log_of_something_else_is_refused),
	};

	return cmocka_run_group_tests_name("audit", tests, NULL, NULL);
}
