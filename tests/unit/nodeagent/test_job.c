/* test_job.c: children: what they get, how they end, that nothing is left. */
#include <sys/wait.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/base/clock.h"
#include "common/base/daemon.h"
#include "common/net/proto.h"
#include "nodeagent/job.h"

/* One job and all that came of it. */
struct run {
	struct event_base *base;
	struct jobs *jobs;
	struct job *job;
	char out[2][1 << 20];
	size_t n[2];
	struct job_result result;
	char report[JOB_REPORT_MAX];
	size_t input_left; /* bytes of 'x' yet to be fed */
	bool stop_at_output, slow, ended;
};

static struct run r;

static void
feed(void)
{
	static char chunk[60000];

	memset(chunk, 'x', sizeof(chunk));
	while (r.input_left > 0) {
		size_t n =
		    r.input_left < sizeof(chunk) ? r.input_left : sizeof(chunk);

		r.input_left -= n;
		job_input(r.job, chunk, n);
		if (job_input_kept(r.job) > 0)
			return;
	}
	job_input_end(r.job);
}

static void
resume(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;
	if (!r.ended)
		job_more(r.job);
}

static bool
on_output(enum job_stream s, const uint8_t *bytes, size_t size, void *arg)
{
	static const struct timeval pause = { 0, 1000 };

	(void)arg;
	assert_true(r.n[s] + size < sizeof(r.out[s]));
	memcpy(r.out[s] + r.n[s], bytes, size);
	r.n[s] += size;
	if (r.stop_at_output)
		job_stop(r.job, JOB_CANCEL);
	if (r.slow)
		event_base_once(r.base, -1, EV_TIMEOUT, resume, NULL, &pause);
	return !r.slow;
}

static void
on_input_taken(void *arg)
{
	(void)arg;
	feed();
}

static void
on_ended(const struct job_result *result, void *arg)
{
	(void)arg;
	r.result = *result;
	memcpy(r.report, result->report, result->report_size + 1);
	r.ended = true;
	event_base_loopbreak(r.base);
}

static const struct job_handlers handlers = { on_output, on_input_taken,
	on_ended };

static void
run_spec(const struct child_spec *spec, int64_t timeout_ms)
{
	struct err e;

	r.ended = false;
	r.n[0] = r.n[1] = 0;
	memset(r.out, 0, sizeof(r.out));
	r.job = job_start(r.jobs, spec, timeout_ms, &handlers, NULL, &e);
	assert_non_null(r.job);
	feed();
	event_base_dispatch(r.base);
	assert_true(r.ended);
	assert_int_equal(jobs_count(r.jobs), 0);
}

static void
run_shell(const char *line, int64_t timeout_ms)
{
	struct child_spec spec = { .shell = line,
		.node = "n1",
		.roles = "storage worker_http",
		.order = "1" };

	run_spec(&spec, timeout_ms);
}

static bool
is_gone(pid_t pid)
{
	char path[64], text[256] = "";
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	if ((f = fopen(path, "re")) == NULL)
		return true;
	if (fgets(text, sizeof(text), f) == NULL)
		text[0] = '\0';
	fclose(f);
	return strstr(text, ") Z") != NULL;
}

static int
setup(void **unused)
{
	struct err e;

	(void)unused;
	memset(&r, 0, sizeof(r));
	r.base = event_base_new();
	r.jobs = jobs_new(r.base, &e);
	return r.base == NULL || r.jobs == NULL;
}

static int
teardown(void **unused)
{
	(void)unused;
	jobs_free(r.jobs);
	event_base_free(r.base);
	return 0;
}

static void
streams_are_apart_and_exact(void **unused)
{
	(void)unused;
	run_shell("printf 'a\\000b'; printf 'no newline' >&2; exit 3", 0);
	assert_int_equal(r.n[JOB_STDOUT], 3);
	assert_memory_equal(r.out[JOB_STDOUT], "a\0b", 3);
	assert_string_equal(r.out[JOB_STDERR], "no newline");
	assert_true(WIFEXITED(r.result.status));
	assert_int_equal(WEXITSTATUS(r.result.status), 3);
	assert_int_equal(r.result.cause, JOB_RAN);
}

static void
a_signal_is_no_exit(void **unused)
{
	(void)unused;
	run_shell("kill -SEGV $$", 0);
	assert_true(WIFSIGNALED(r.result.status));
	assert_int_equal(WTERMSIG(r.result.status), SIGSEGV);
}

static void
argv_is_no_shell(void **unused)
{
	const char *const argv[] = { "printf", "%s|", "$HOME", "a b", "*",
		NULL };
	struct child_spec spec = { .argv = argv, .node = "", .roles = "" };

	(void)unused;
	run_spec(&spec, 0);
	assert_string_equal(r.out[JOB_STDOUT], "$HOME|a b|*|");
}

static void
what_cannot_be_run_says_why(void **unused)
{
	const char *const none[] = { "no-such-command", NULL };
	const char *const denied[] = { "/etc/passwd", NULL };
	struct child_spec spec = { .argv = none, .node = "", .roles = "" };

	(void)unused;
	run_spec(&spec, 0);
	assert_int_equal(WEXITSTATUS(r.result.status), 127);
	assert_string_equal(r.out[JOB_STDERR],
	    "nodeagent: no-such-command: command not found\n");
	spec.argv = denied;
	run_spec(&spec, 0);
	assert_int_equal(WEXITSTATUS(r.result.status), 126);
	assert_string_equal(r.out[JOB_STDERR],
	    "nodeagent: cannot run /etc/passwd: Permission denied\n");
}

static void
what_cannot_be_set_up_is_reported(void **unused)
{
	struct child_spec spec = { .shell = "echo never",
		.node = "",
		.roles = "",
		.cwd = "/no/such" };
	struct err e;

	(void)unused;
	run_spec(&spec, 0);
	assert_int_equal(r.n[JOB_STDOUT], 0);
	proto_parse_error(r.report, r.result.report_size, &e);
	assert_int_equal(e.code, ERR_USAGE);
	assert_string_equal(e.text,
	    "cannot enter directory /no/such: No such file or directory");
	spec.cwd = NULL;
	spec.user = "no_such_user";
	run_spec(&spec, 0);
	proto_parse_error(r.report, r.result.report_size, &e);
	assert_string_equal(e.text,
	    "there is no user no_such_user on this node");
}

static void
the_environment_is_clean(void **unused)
{
	const char *const extra[] = { "EXTRA=a b", "PATH=/bin:/usr/bin", NULL };
	const char *const argv[] = { "env", NULL };
	struct child_spec spec = { .argv = argv,
		.node = "n1",
		.roles = "storage worker_http",
		.env = extra };

	(void)unused;
	setenv("LEAK", "secret", 1);
	run_spec(&spec, 0);
	assert_null(strstr(r.out[JOB_STDOUT], "LEAK"));
	assert_non_null(strstr(r.out[JOB_STDOUT], "MUSTER_NODE=n1\n"));
	assert_non_null(
	    strstr(r.out[JOB_STDOUT], "MUSTER_ROLES=storage worker_http\n"));
	assert_non_null(strstr(r.out[JOB_STDOUT], "EXTRA=a b\n"));
	assert_non_null(strstr(r.out[JOB_STDOUT], "PATH=/bin:/usr/bin\n"));
	assert_null(strstr(r.out[JOB_STDOUT], "TERM="));
}

static void
no_descriptor_and_no_signal_is_inherited(void **unused)
{
	int leak = open("/dev/null", O_RDONLY); /* not close-on-exec */
	const char *ignored;

	(void)unused;
	assert_true(leak > 2);
	signal(SIGPIPE, SIG_IGN);
	run_shell("ls /proc/self/fd | wc -l; "
		  "grep -E 'Sig(Blk|Ign)' /proc/self/status; umask; "
		  "echo $(ps -o pid=,pgid=,sid= $$)",
	    0);
	close(leak);
	assert_non_null(strstr(r.out[JOB_STDOUT], "4\n")); /* ls's own */
	assert_non_null(
	    strstr(r.out[JOB_STDOUT], "SigBlk:\t0000000000000000\n"));
	/* make(1) leaves 32 and 33 ignored (glibc's posix_spawn does), which
	 * nobody can undo or send. */
	ignored = strstr(r.out[JOB_STDOUT], "SigIgn:\t");
	assert_non_null(ignored);
	assert_int_equal(strtoull(ignored + strlen("SigIgn:\t"), NULL, 16) &
		0x7fffffff,
	    0);
	assert_non_null(strstr(r.out[JOB_STDOUT], "0022\n"));
}

static void
input_goes_through_whole(void **unused)
{
	(void)unused;
	r.input_left = 900000;
	run_shell("wc -c", 0);
	assert_string_equal(r.out[JOB_STDOUT], "900000\n");
	assert_int_equal(r.result.input_used, 900000);
}

static void
unread_input_is_no_failure(void **unused)
{
	(void)unused;
	r.input_left = 900000;
	run_shell("head -c 10 >/dev/null; exec <&-; echo done", 0);
	assert_string_equal(r.out[JOB_STDOUT], "done\n");
	assert_int_equal(WEXITSTATUS(r.result.status), 0);
	assert_true(r.result.input_used < 900000);
}

static void
a_slow_reader_gets_everything(void **unused)
{
	(void)unused;
	r.slow = true;
	run_shell("head -c 500000 /dev/zero; echo end >&2", 0);
	assert_int_equal(r.n[JOB_STDOUT], 500000);
	assert_string_equal(r.out[JOB_STDERR], "end\n");
}

static pid_t
first_pid(void)
{
	return (pid_t)strtol(r.out[JOB_STDOUT], NULL, 10);
}

static void
a_daemon_left_behind_does_not_hold_it_up(void **unused)
{
	int64_t began_ms = clock_mono_ms();
	pid_t pid;

	(void)unused;
	run_shell("sleep 300 & echo $!", 0);
	pid = first_pid();
	assert_true(clock_mono_ms() - began_ms < 60000);
	assert_int_equal(WEXITSTATUS(r.result.status), 0);
	assert_false(is_gone(pid));
	kill(pid, SIGKILL);
}

static void
an_endless_writer_left_behind_does_not_either(void **unused)
{
	pid_t pid;

	(void)unused;
	run_shell("echo $$; yes & exit 0", 0);
	pid = first_pid();
	assert_true(r.n[JOB_STDOUT] < 400000);
	kill(-pid, SIGKILL);
}

/* Prints the pids of all that it leaves alive; a busy machine may need longer
 * for that than the time-out. */
static void
assert_all_gone(const char *line)
{
	char *save = NULL;
	size_t n = 0;

	for (int64_t ms = 100; ms < 30000; ms *= 3) {
		run_shell(line, ms);
		if (r.n[JOB_STDOUT] > 0)
			break;
	}
	for (char *p = strtok_r(r.out[JOB_STDOUT], " \n", &save); p != NULL;
	     p = strtok_r(NULL, " \n", &save), n++)
		if (!is_gone((pid_t)strtol(p, NULL, 10)))
			fail_msg("pid %s is left of: %s", p, line);
	assert_true(n > 0);
}

static void
a_timeout_ends_the_group(void **unused)
{
	(void)unused;
	assert_all_gone("sleep 300 & echo $! $$; wait");
	assert_int_equal(r.result.cause, JOB_TIMEOUT);
	assert_int_equal(WTERMSIG(r.result.status), SIGTERM);
}

static void
who_left_the_group_ends_too(void **unused)
{
	(void)unused;
	assert_all_gone("set -m; sleep 300 & echo $! $$; wait");
}

static void
who_left_the_session_ends_too(void **unused)
{
	(void)unused;
	assert_all_gone("setsid sh -c 'echo $$; sleep 301; true' & "
			"sleep 300; true");
}

static void
an_orphan_that_left_the_session_ends_too(void **unused)
{
	(void)unused;
	assert_all_gone("setsid sh -c '(trap \"\" TERM; sleep 301; true) & "
			"echo $!'; sleep 300; true");
}

static void
who_ignores_term_is_killed(void **unused)
{
	(void)unused;
	assert_all_gone("trap '' TERM; (sleep 300) & echo $$ $!; "
			"while :; do sleep 1; done");
	assert_int_equal(WTERMSIG(r.result.status), SIGKILL);
	assert_true(r.result.ms >= JOB_GRACE_MS);
}

static void
a_stopped_process_ends_too(void **unused)
{
	(void)unused;
	assert_all_gone("echo $$; kill -STOP $$; sleep 300");
	assert_int_equal(WTERMSIG(r.result.status), SIGTERM);
}

static void
a_cancel_lets_it_say_goodbye(void **unused)
{
	(void)unused;
	r.stop_at_output = true;
	run_shell("trap 'echo bye; exit 5' TERM; echo ready; "
		  "while :; do sleep 0.05; done",
	    0);
	assert_string_equal(r.out[JOB_STDOUT], "ready\nbye\n");
	assert_int_equal(WEXITSTATUS(r.result.status), 5);
	assert_int_equal(r.result.cause, JOB_CANCEL);
}

static void
a_terminal_is_one(void **unused)
{
	const struct child_pty pty = { 33, 99, "xterm" };
	struct child_spec spec = { .pty = &pty,
		.node = "",
		.roles = "",
		.shell = "stty size; echo $TERM; test -t 0 && test -t 2 && "
			 "exit 7" };

	(void)unused;
	run_spec(&spec, 0);
	assert_string_equal(r.out[JOB_STDOUT], "33 99\r\nxterm\r\n");
	assert_int_equal(WEXITSTATUS(r.result.status), 7);
}

static int
echo_report(const void *arg, int report)
{
	char buf[16];
	ssize_t n = read(STDIN_FILENO, buf, sizeof(buf));

	dprintf(report, "%s %d", (const char *)arg, (int)n);
	return 0;
}

static void
a_function_runs_in_the_childs_place(void **unused)
{
	struct child_spec spec = { .call = echo_report, .call_arg = "got" };

	(void)unused;
	r.input_left = 5;
	run_spec(&spec, 0);
	assert_string_equal(r.report, "got 5");
}

#define JOB_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		JOB_TEST(streams_are_apart_and_exact),
		JOB_TEST(a_signal_is_no_exit),
		JOB_TEST(argv_is_no_shell),
		JOB_TEST(what_cannot_be_run_says_why),
		JOB_TEST(what_cannot_be_set_up_is_reported),
		JOB_TEST(the_environment_is_clean),
		JOB_TEST(no_descriptor_and_no_signal_is_inherited),
		JOB_TEST(input_goes_through_whole),
		JOB_TEST(unread_input_is_no_failure),
		JOB_TEST(a_slow_reader_gets_everything),
		JOB_TEST(a_daemon_left_behind_does_not_hold_it_up),
		JOB_TEST(an_endless_writer_left_behind_does_not_either),
		JOB_TEST(a_timeout_ends_the_group),
		JOB_TEST(who_left_the_group_ends_too),
		JOB_TEST(who_left_the_session_ends_too),
		JOB_TEST(an_orphan_that_left_the_session_ends_too),
		JOB_TEST(who_ignores_term_is_killed),
		JOB_TEST(a_stopped_process_ends_too),
		JOB_TEST(a_cancel_lets_it_say_goodbye),
		JOB_TEST(a_terminal_is_one),
		JOB_TEST(a_function_runs_in_the_childs_place),
	};

	child_save_limits();
	daemon_prepare();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
