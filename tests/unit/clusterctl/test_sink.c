/* test_sink.c: bytes of nodes on terminals and elsewhere. */
#include "tests/unit/clusterctl/capture.h"

#include <sys/wait.h>
#include <fcntl.h>
#include <signal.h>

#include "clusterctl/utf8.h"
#include "common/base/io.h"

#define FFFD "\xef\xbf\xbd"

static void
cleans_for_a_terminal(void **state)
{
	static const char *const rows[][2] = {
		{ "plain\ttext\n", "plain\ttext\n" },
		{ "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80",
		    "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80" },
		{ "\033[31mred\033[0m", "^[[31mred^[[0m" },
		{ "a\rnode2: fake\n", "a^Mnode2: fake\n" },
		{ "dos\r\n", "dos\r\n" },
		{ "\a\b\x7f", "^G^H^?" },
		/* E15: what is no UTF-8 */
		{ "\xff", FFFD },
		{ "a\xc3", "a" FFFD },
		{ "\xc0\xaf\xed\xa0\x80", FFFD FFFD FFFD FFFD FFFD },
		{ "\xf4\x90\x80\x80", FFFD FFFD FFFD FFFD },
		/* C1 controls (CSI), and what turns the writing around */
		{ "\xc2\x9b[2J", FFFD "[2J" },
		{ "\x9b", FFFD },
		{ "\xe2\x80\xae", FFFD },
		{ "\xe2\x81\xa6", FFFD },
		{ "", "" },
	};
	struct sink s;
	struct err e;

	(void)state;
	for (size_t i = 0; i < nitems(rows); i++) {
		capture_init(&s);
		s.terminal = true;
		assert_int_equal(sink_put(&s, rows[i][0], strlen(rows[i][0]),
				     &e),
		    0);
		capture_expect(&s, rows[i][1]);
	}
}

static void
exact_elsewhere(void **state)
{
	char bytes[3 * 65536 + 7], *got;
	struct sink s;
	struct err e;
	size_t size;

	(void)state;
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (char)(i * 31);
	capture_init(&s);
	assert_int_equal(sink_put(&s, "x", 1, &e), 0);
	assert_int_equal(sink_put(&s, bytes, sizeof(bytes), &e), 0);
	got = capture_text(&s, &size);
	assert_int_equal(size, sizeof(bytes) + 1);
	assert_memory_equal(got + 1, bytes, sizeof(bytes));
	free(got);
	capture_fini(&s);
}

/* Characters are not torn where long text is cleaned in parts. */
static void
long_text_keeps_its_characters(void **state)
{
	char text[30001], *got;
	struct sink s;
	struct err e;

	(void)state;
	for (size_t i = 0; i < 30000; i += 3)
		memcpy(text + i, "\xe2\x82\xac", 3);
	text[30000] = '\0';
	capture_init(&s);
	s.terminal = true;
	assert_int_equal(sink_put(&s, text, 30000, &e), 0);
	got = capture_text(&s, NULL);
	assert_string_equal(got, text);
	free(got);
	capture_fini(&s);
}

static void
text_for_json(void **state)
{
	size_t len;
	char *text = sink_text("a\0\xff\033", 4, false, &len);

	(void)state;
	assert_int_equal(len, 6);
	assert_memory_equal(text, "a\0" FFFD "\033", 7);
	free(text);
	text = sink_text("\033", 1, true, &len);
	assert_string_equal(text, "^[");
	free(text);
}

static void
cuts_between_characters(void **state)
{
	(void)state;
	assert_int_equal(utf8_whole("abc", 3), 3);
	assert_int_equal(utf8_whole("ab\xe2", 3), 2);
	assert_int_equal(utf8_whole("a\xe2\x82", 3), 1);
	assert_int_equal(utf8_whole("\xe2\x82\xac", 3), 3);
	assert_int_equal(utf8_whole("\xff", 1), 1);
	assert_int_equal(utf8_whole("\x82\x82\x82\x82", 4), 4);
	assert_int_equal(utf8_whole("", 0), 0);
}

/* D12: a reader that went away is quiet. */
static void
closed_reader(void **state)
{
	struct sink s;
	struct err e;
	int fd[2];

	(void)state;
	signal(SIGPIPE, SIG_IGN);
	assert_int_equal(pipe2(fd, O_CLOEXEC), 0);
	sink_init(&s, fd[1]);
	close(fd[0]);
	assert_int_equal(sink_printf(&s, &e, "%s", "hello"), 0);
	assert_false(s.closed);
	assert_int_equal(sink_flush(&s, &e), 0);
	assert_true(s.closed);
	assert_int_equal(sink_put(&s, "more", 4, &e), 0);
	assert_int_equal(sink_flush(&s, &e), 0);
	close(fd[1]);
	sink_fini(&s);
}

static void
full_disk(void **state)
{
	struct sink s;
	struct err e;
	int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);

	(void)state;
	sink_init(&s, fd);
	assert_int_equal(sink_put(&s, "x", 1, &e), 0);
	assert_int_equal(sink_flush(&s, &e), -1);
	assert_int_equal(e.code, ERR_LOCAL);
	assert_string_equal(e.text,
	    "cannot write output: No space left on device");
	close(fd);
	sink_fini(&s);
}

/* A pipe that is non-blocking and full: waits until it has been read. */
static void
slow_reader(void **state)
{
	static char bytes[300000];
	char buf[4096];
	struct sink s;
	struct err e;
	int fd[2], status;
	pid_t pid;

	(void)state;
	assert_int_equal(pipe2(fd, O_CLOEXEC), 0);
	if ((pid = fork()) == 0) {
		size_t n = 0;
		ssize_t r;

		close(fd[1]);
		while ((r = read(fd[0], buf, sizeof(buf))) > 0)
			n += (size_t)r;
		_exit(n == sizeof(bytes) ? 0 : 1);
	}
	close(fd[0]);
	assert_int_equal(fcntl(fd[1], F_SETFL, O_NONBLOCK), 0);
	sink_init(&s, fd[1]);
	assert_int_equal(sink_put(&s, bytes, sizeof(bytes), &e), 0);
	assert_int_equal(sink_flush(&s, &e), 0);
	close(fd[1]);
	sink_fini(&s);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cleans_for_a_terminal),
		cmocka_unit_test(exact_elsewhere),
		cmocka_unit_test(long_text_keeps_its_characters),
		cmocka_unit_test(text_for_json),
		cmocka_unit_test(cuts_between_characters),
		cmocka_unit_test(closed_reader),
		cmocka_unit_test(full_disk),
		cmocka_unit_test(slow_reader),
	};

	return cmocka_run_group_tests_name("sink", tests, NULL, NULL);
}
