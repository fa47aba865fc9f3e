/* test_sock.c: sockets of the hot path: whose turn it is. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <sys/socket.h>

#include "common/base/io.h"
#include "proxyd/http/engine.h"
#include "proxyd/http/sock.h"

static struct event_base *base;
static struct sock_loop loop;

struct hog {
	struct sock sock, other;
	int wakes_other;
	int n, n_then; /* turns; when the other one had his */
};

static void
on_hog(int fd, short what, void *arg)
{
	struct hog *h = arg;

	(void)fd;
	(void)what;
	if (++h->n == 5)
		assert_int_equal(send(h->wakes_other, "x", 1, 0), 1);
	if (h->n < 1000)
		sock_again(&h->sock);
}

static void
on_other(int fd, short what, void *arg)
{
	struct hog *h = arg;

	(void)fd;
	if ((what & EV_READ) != 0)
		h->n_then = h->n;
}

/* Whoever always has more to do keeps nobody out. */
static void
turns_come_behind_those_of_others(void **state)
{
	struct hog h = { .n = 0 };
	int a[2], b[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX,
			     SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, a),
	    0);
	assert_int_equal(socketpair(AF_UNIX,
			     SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, b),
	    0);
	h.wakes_other = b[1];
	assert_int_equal(sock_open(&h.sock, a[0], &loop, on_hog, &h), 0);
	assert_int_equal(sock_open(&h.other, b[0], &loop, on_other, &h), 0);
	event_base_loop(base, EVLOOP_NONBLOCK);
	assert_int_equal(h.n, 1000);
	assert_in_range(h.n_then, 5, 7);
	/* Nothing is left of one that is closed. */
	h.n = 0;
	sock_again(&h.sock);
	sock_again(&h.sock);
	sock_close(&h.sock);
	sock_again(&h.sock);
	event_base_loop(base, EVLOOP_NONBLOCK);
	assert_int_equal(h.n, 0);
	sock_close(&h.other);
	io_close(&a[1]);
	io_close(&b[1]);
}

static int
open_loop(void **state)
{
	struct err e;

	(void)state;
	base = engine_event_base(&e);
	return base == NULL || sock_loop_init(&loop, base) == -1;
}

static int
close_loop(void **state)
{
	(void)state;
	sock_loop_fini(&loop);
	event_base_free(base);
	return 0;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(turns_come_behind_those_of_others),
	};

	return cmocka_run_group_tests_name("sock", tests, open_loop,
	    close_loop);
}
