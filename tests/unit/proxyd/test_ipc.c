/* test_ipc.c: messages between the processes of a proxy. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/io.h"
#include "proxyd/process/ipc.h"

static int fds[2];
static struct ipc_message m;

static int
setup(void **state)
{
	struct err e;

	(void)state;
	return ipc_pair(fds, &e);
}

static int
teardown(void **state)
{
	(void)state;
	io_close(&fds[0]);
	io_close(&fds[1]);
	return 0;
}

static void
messages_keep_their_bounds(void **state)
{
	struct err e;

	(void)state;
	assert_int_equal(ipc_send(fds[0], IPC_DRAIN, INT64_MIN, -1, NULL, &e),
	    0);
	assert_int_equal(ipc_send(fds[0], IPC_START, 7, -1, "nobody", &e), 0);
	assert_int_equal(ipc_recv(fds[1], &m, &e), 1);
	assert_int_equal(m.type, IPC_DRAIN);
	assert_int_equal(m.number, INT64_MIN);
	assert_int_equal(m.fd, -1);
	assert_string_equal(m.text, "");
	assert_int_equal(ipc_recv(fds[1], &m, &e), 1);
	assert_int_equal(m.type, IPC_START);
	assert_int_equal(m.number, 7);
	assert_string_equal(m.text, "nobody");
}

static void
a_descriptor_goes_along(void **state)
{
	int pipe_fds[2];
	char c = 'x';
	struct err e;

	(void)state;
	assert_int_equal(pipe2(pipe_fds, O_CLOEXEC), 0);
	assert_int_equal(ipc_send(fds[0], IPC_LISTENER, 0, pipe_fds[1], "a:1",
			     &e),
	    0);
	close(pipe_fds[1]);
	assert_int_equal(ipc_recv(fds[1], &m, &e), 1);
	assert_int_not_equal(m.fd, -1);
	assert_true(fcntl(m.fd, F_GETFD) & FD_CLOEXEC);
	assert_int_equal(io_write_n(m.fd, "y", 1), 0);
	assert_int_equal(io_read_n(pipe_fds[0], &c, 1), 1);
	assert_int_equal(c, 'y');
	close(m.fd);
	close(pipe_fds[0]);
}

static void
the_end_and_nothing_yet_differ(void **state)
{
	struct err e;

	(void)state;
	assert_int_equal(ipc_recv(fds[0], &m, &e), -1);
	assert_int_equal(e.code, ERR_BUSY);
	assert_false(ipc_has_ended(fds[0], 0));
	io_close(&fds[1]);
	assert_int_equal(ipc_recv(fds[0], &m, &e), 0);
}

/* However it went, it is told apart from one that does not read. */
static void
the_other_end_has_ended(void **state)
{
	struct err e;

	(void)state;
	/* What lies there to be read is no end. */
	assert_int_equal(ipc_send(fds[0], IPC_READY, 0, -1, NULL, &e), 0);
	assert_false(ipc_has_ended(fds[1], 0));
	io_close(&fds[1]);
	assert_true(ipc_has_ended(fds[0], 0));
	/* It had not read all: the first one to ask is told of a reset. */
	for (int i = 0; i < 2; i++) {
		e.code = ERR_NONE;
		assert_int_equal(ipc_send(fds[0], IPC_READY, 0, -1, NULL, &e),
		    -1);
		assert_int_equal(e.code, ERR_UNREACHABLE);
	}
}

static void
a_text_that_is_too_long(void **state)
{
	static char text[IPC_TEXT_MAX + 1];
	struct err e;

	(void)state;
	memset(text, 'x', IPC_TEXT_MAX - 1);
	assert_int_equal(ipc_send(fds[1], IPC_SETTINGS, 0, -1, text, &e), 0);
	assert_int_equal(ipc_recv(fds[0], &m, &e), 1);
	assert_string_equal(m.text, text);
	text[IPC_TEXT_MAX - 1] = 'x';
	assert_int_equal(ipc_send(fds[1], IPC_SETTINGS, 0, -1, text, &e), -1);
}

/* One that does not read must not stop the master. */
static void
a_full_socket_is_busy(void **state)
{
	struct err e;
	int n = 0;

	(void)state;
	while (ipc_send(fds[0], IPC_SNAPSHOT, n, -1, NULL, &e) == 0)
		assert_true(n++ < 100000);
	assert_int_equal(e.code, ERR_BUSY);
	assert_true(n > 0);
}

static void
damaged_messages(void **state)
{
	static const char short_one[8] = { 0 };
	static const uint32_t unknown[4] = { IPC_N_TYPES };
	static char long_one[16 + IPC_TEXT_MAX];
	struct err e;

	(void)state;
	assert_true(send(fds[0], short_one, sizeof(short_one), 0) > 0);
	assert_true(send(fds[0], unknown, sizeof(unknown), 0) > 0);
	assert_true(send(fds[0], long_one, sizeof(long_one), 0) > 0);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(ipc_recv(fds[1], &m, &e), -1);
		assert_int_equal(e.code, ERR_PROTOCOL);
	}
}

#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(messages_keep_their_bounds),
		T(a_descriptor_goes_along),
		T(the_end_and_nothing_yet_differ),
		T(the_other_end_has_ended),
		T(a_text_that_is_too_long),
		T(a_full_socket_is_busy),
		T(damaged_messages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
