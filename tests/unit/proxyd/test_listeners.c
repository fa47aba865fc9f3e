/* test_listeners.c: the listening sockets, as addresses and workers change. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/base/io.h"
#include "proxyd/process/listeners.h"

static struct listeners l;
static char here[32], there[32], path[64];

/* A port that nobody has just now, on an address of this process's own. */
static void
choose(char text[32], int host)
{
	struct sockaddr_in sin = { .sin_family = AF_INET };
	socklen_t len = sizeof(sin);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int pid = (int)getpid();

	sin.sin_addr.s_addr =
	    htonl(0x7f000000U | (uint32_t)(pid & 0x7fff) << 8 | (uint32_t)host);
	assert_int_equal(bind(fd, (struct sockaddr *)&sin, len), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&sin, &len), 0);
	close(fd);
	snprintf(text, 32, "127.%d.%d.%d:%d", pid >> 8 & 0x7f, pid & 0xff, host,
	    ntohs(sin.sin_port));
}

static int
setup(void **state)
{
	(void)state;
	choose(here, 1);
	choose(there, 2);
	snprintf(path, sizeof(path), "/tmp/muster-listen-%d", (int)getpid());
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	listeners_close(&l);
	unlink(path);
	return 0;
}

static bool
apply(const char *list, unsigned n_workers)
{
	bool changed = false;
	struct err e;

	if (listeners_apply(&l, list, "", n_workers, &changed, &e) == -1)
		fail_msg("%s", e.text);
	return changed;
}

static void
refuse(const char *list, const char *part)
{
	struct listener *before = l.rows;
	size_t n = l.n;
	bool changed;
	struct err e;

	assert_int_equal(listeners_apply(&l, list, "", 2, &changed, &e), -1);
	if (strstr(e.text, part) == NULL)
		fail_msg("'%s' is not in: %s", part, e.text);
	assert_ptr_equal(l.rows, before);
	assert_int_equal(l.n, n);
}

/* Connects to "127.x.y.z:port". */
static int
knock(const char *text)
{
	struct sockaddr_in sin = { .sin_family = AF_INET };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char host[32];
	int port;

	assert_int_equal(sscanf(text, "%31[^:]:%d", host, &port), 2);
	assert_int_equal(inet_pton(AF_INET, host, &sin.sin_addr), 1);
	sin.sin_port = htons((uint16_t)port);
	assert_int_equal(connect(fd, (struct sockaddr *)&sin, sizeof(sin)), 0);
	/* The accept is deferred until there is something to read. */
	assert_int_equal(io_write_n(fd, "x", 1), 0);
	return fd;
}

/* How many wait at the row. */
static int
waiting(size_t row)
{
	struct pollfd p = { .fd = l.rows[row].fd, .events = POLLIN };
	int n = 0, fd;

	while (poll(&p, 1, 0) == 1 &&
	    (fd = accept4(l.rows[row].fd, NULL, NULL, SOCK_CLOEXEC)) != -1) {
		close(fd);
		n++;
	}
	return n;
}

static void
a_socket_a_worker(void **state)
{
	char both[80];

	(void)state;
	snprintf(both, sizeof(both), "%s %s", here, there);
	assert_true(apply(both, 2));
	assert_int_equal(l.n, 4);
	assert_false(apply(both, 2));
	for (size_t i = 0; i < l.n; i++) {
		assert_string_equal(l.rows[i].text, i < 2 ? here : there);
		assert_int_equal(l.rows[i].worker, i % 2);
		assert_true(listener_is_for(&l.rows[i], i % 2, 2));
		assert_false(listener_is_for(&l.rows[i], (i + 1) % 2, 2));
	}
	assert_true(apply(here, 2));
	assert_int_equal(l.n, 2);
	assert_true(apply("", 2));
	assert_int_equal(l.n, 0);
}

static void
an_address_said_twice_is_one(void **state)
{
	char both[80];

	(void)state;
	snprintf(both, sizeof(both), "%s %s", here, here);
	apply(both, 3);
	assert_int_equal(l.n, 3);
}

/* With fewer workers the sockets stay, and nothing new comes to the rest. */
static void
fewer_workers(void **state)
{
	int fds[64], n[4] = { 0 }, surplus_fd;

	(void)state;
	apply(here, 4);
	surplus_fd = l.rows[3].fd;
	for (int i = 0; i < 64; i++)
		fds[i] = knock(here);
	assert_false(apply(here, 1));
	assert_int_equal(l.n, 4);
	assert_int_equal(l.rows[3].fd, surplus_fd);
	for (size_t i = 0; i < 4; i++) {
		assert_true(listener_is_for(&l.rows[i], 0, 1));
		n[i] = waiting(i);
	}
	/* All that waited is still there, and it was spread. */
	assert_int_equal(n[0] + n[1] + n[2] + n[3], 64);
	assert_true(n[1] > 0 && n[2] > 0 && n[3] > 0);
	for (int i = 0; i < 64; i++) {
		close(fds[i]);
		fds[i] = knock(here);
	}
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(waiting(i), i == 0 ? 64 : 0);
	for (int i = 0; i < 64; i++)
		close(fds[i]);
	/* And more again. */
	apply(here, 3);
	for (int i = 0; i < 64; i++)
		fds[i] = knock(here);
	for (size_t i = 0; i < 4; i++)
		n[i] = waiting(i);
	assert_int_equal(n[0] + n[1] + n[2], 64);
	assert_true(n[0] > 0 && n[1] > 0 && n[2] > 0);
	for (int i = 0; i < 64; i++)
		close(fds[i]);
}

static void
a_failure_changes_nothing(void **state)
{
	char list[120];
	int fd;

	(void)state;
	apply(here, 2);
	snprintf(list, sizeof(list), "%s 192.0.2.1:80", there);
	refuse(list, "192.0.2.1:80: cannot bind");
	refuse("127.0.0.1:99999", "127.0.0.1:99999");
	refuse("unix:relative", "absolute");
	snprintf(list, sizeof(list), "unix:/%0107d", 0);
	refuse(list, "shorter than");
	/* What was opened on the way there is closed again. */
	fd = knock(here);
	close(fd);
	apply(there, 2);
}

static void
an_address_in_use(void **state)
{
	struct listeners other = { NULL, 0 };
	struct listeners mine;
	bool changed;
	struct err e;

	(void)state;
	apply(here, 2);
	mine = l;
	assert_int_equal(listeners_apply(&other, here, "", 2, &changed, &e),
	    -1);
	assert_non_null(strstr(e.text, "another program has it"));
	assert_int_equal(other.n, 0);
	assert_ptr_equal(l.rows, mine.rows);
}

static void
unix_sockets(void **state)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	char list[80];
	struct stat sb;
	int fd;

	(void)state;
	snprintf(list, sizeof(list), "unix:%s", path);
	apply(list, 4);
	assert_int_equal(l.n, 1);
	assert_int_equal(l.rows[0].worker, LISTENER_ALL);
	assert_true(listener_is_for(&l.rows[0], 3, 4));
	assert_int_equal(stat(path, &sb), 0);
	assert_int_equal(sb.st_mode & 0777, 0666);
	memcpy(sun.sun_path, path, strlen(path) + 1);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&sun, sizeof(sun)), 0);
	close(fd);
	apply("", 4);
	assert_int_equal(stat(path, &sb), -1);
	/* A file that is no socket is left alone. */
	assert_int_equal(io_write_file(path, "x", 1, 0600, &(struct err){ 0 }),
	    0);
	refuse(list, "another program has it");
	assert_int_equal(stat(path, &sb), 0);
}

static void
a_stale_unix_socket_is_replaced(void **state)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	char list[80];
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)state;
	memcpy(sun.sun_path, path, strlen(path) + 1);
	assert_int_equal(bind(fd, (struct sockaddr *)&sun, sizeof(sun)), 0);
	close(fd); /* its program died */
	snprintf(list, sizeof(list), "unix:%s", path);
	apply(list, 1);
}

static void
taken_from_a_predecessor(void **state)
{
	struct listeners old;
	struct err e;
	int fd;

	(void)state;
	apply(here, 2);
	fd = knock(here);
	old = l;
	l = (struct listeners){ NULL, 0 };
	for (size_t i = 0; i < old.n; i++)
		assert_int_equal(listeners_take(&l, old.rows[i].text,
				     old.rows[i].worker, dup(old.rows[i].fd),
				     &e),
		    0);
	listeners_close(&old);
	assert_false(apply(here, 2));
	assert_int_equal(waiting(0) + waiting(1), 1);
	close(fd);
}

#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_socket_a_worker),
		T(an_address_said_twice_is_one),
		T(fewer_workers),
		T(a_failure_changes_nothing),
		T(an_address_in_use),
		T(unix_sockets),
		T(a_stale_unix_socket_is_replaced),
		T(taken_from_a_predecessor),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
