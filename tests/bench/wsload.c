/*
 * wsload.c: a load of WebSockets: each connection connects, upgrades, sends
 * one text, compares what comes back, and closes as RFC 6455 wants it.
 *
 * usage: wsload [OPTION]... ADDRESS:PORT
 *   -n, --connections N   in all (1000)
 *   -c, --at-once N       under way at a time (100)
 *       --hold            open all, then one message on each, then close all;
 *                         says "held" when all are open and goes on after a
 *                         line on stdin, or its end
 *       --host NAME       for Host and SNI (bench.test)
 *       --path PATH       (/)
 *       --size BYTES      of the text (64)
 *       --source ADDR     connect from this address...
 *       --sources N       ...and the N - 1 next to it, in turn
 *       --timeout SECONDS for each step of a connection (30)
 *       --tls             without looking at the certificate
 *       --json            one object instead of one line
 *
 * Exits with 1 when any connection failed.
 */
#include "tests/bench/wsload.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <event2/event.h>
#include <event2/event_struct.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include "common/base/addr.h"
#include "common/base/err.h"
#include "tests/bench/ws.h"

#define IN_MAX	      8192 /* a response's head */
#define SIZE_MAX_TEXT (64U << 10)
#define STATUS_LINE   "HTTP/1.1 101"

/* A connection's life.  New, open, echoed: it may have to wait for its turn
 * to go on. */
enum stage {
	ST_NEW,
	ST_CONNECT,
	ST_TLS,
	ST_UPGRADE,
	ST_OPEN,
	ST_MESSAGE,
	ST_ECHOED,
	ST_CLOSE,
	ST_END, /* our close is answered; its FIN is to come */
	ST_CLOSED,
	ST_FAILED,
};

struct conn {
	struct event ev;
	SSL *ssl;
	int fd;
	uint8_t stage; /* enum stage */
	bool active;   /* it is its turn */
	size_t number;
	int64_t since_us; /* of connect(), of the message */
	int64_t step_us;  /* of the present step, for its time-out */
	char key[WS_KEY_SIZE];
	unsigned char *in, *out;
	size_t in_size, out_size, out_sent;
};

static struct {
	struct addr to, source;
	size_t n_sources, size;
	const char *host, *path;
	int64_t timeout_us;
	bool json;
} opt = {
	.n_sources = 1,
	.size = 64,
	.host = "bench.test",
	.path = "/",
	.timeout_us = 30000000,
};

static struct outcome result = { .connections = 1000, .at_once = 100 };
static struct event_base *base;
static SSL_CTX *tls;
static struct conn *conns;
static size_t n_active, next_conn;
static enum stage target; /* of the phase under way */

static int64_t now_us(void);
static int read_options(int argc, char **argv);
static void run_phase(enum stage to);
static void wait_for_word(void);
static void conn_ready(evutil_socket_t, short, void *);
static void check_timeouts(evutil_socket_t, short, void *);

int
main(int argc, char **argv)
{
	const struct timeval often = { .tv_usec = 250000 };
	struct event *timer;
	int64_t start;

	if (read_options(argc, argv) == -1)
		return 2;
	signal(SIGPIPE, SIG_IGN);
	base = event_base_new();
	timer = event_new(base, -1, EV_PERSIST, check_timeouts, NULL);
	event_add(timer, &often);
	if (result.tls)
		tls = SSL_CTX_new(TLS_client_method());
	conns = calloc(result.connections, sizeof(*conns));
	result.handshake.us = calloc(result.connections, sizeof(int64_t));
	result.message.us = calloc(result.connections, sizeof(int64_t));
	start = now_us();
	if (result.hold) {
		run_phase(ST_OPEN);
		result.total_us -= now_us();
		wait_for_word();
		result.total_us += now_us();
		run_phase(ST_ECHOED);
	}
	run_phase(ST_CLOSED);
	result.total_us = now_us() - start - result.total_us;
	print_outcome(&result, opt.json);
	return result.done == result.connections ? 0 : 1;
}

static int64_t
now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

/* --- options */

static int
usage(void)
{
	fputs("usage: wsload [-n N] [-c N] [--hold] [--tls] [--json] "
	      "[--host NAME] [--path PATH]\n\t[--size BYTES] [--source ADDR] "
	      "[--sources N] [--timeout SECONDS] ADDRESS:PORT\n",
	    stderr);
	return -1;
}

static int
read_options(int argc, char **argv)
{
	static const struct option options[] = {
		{ "connections", required_argument, NULL, 'n' },
		{ "at-once", required_argument, NULL, 'c' },
		{ "hold", no_argument, NULL, 'H' },
		{ "host", required_argument, NULL, 'h' },
		{ "path", required_argument, NULL, 'p' },
		{ "size", required_argument, NULL, 's' },
		{ "source", required_argument, NULL, 'a' },
		{ "sources", required_argument, NULL, 'A' },
		{ "timeout", required_argument, NULL, 't' },
		{ "tls", no_argument, NULL, 'T' },
		{ "json", no_argument, NULL, 'j' },
		{ NULL, 0, NULL, 0 },
	};
	struct err e;
	int o;

	while ((o = getopt_long(argc, argv, "n:c:", options, NULL)) != -1) {
		size_t n = optarg == NULL ? 0 : strtoul(optarg, NULL, 10);

		switch (o) {
		case 'n':
			result.connections = n;
			break;
		case 'c':
			result.at_once = n;
			break;
		case 'H':
			result.hold = true;
			break;
		case 'h':
			opt.host = optarg;
			break;
		case 'p':
			opt.path = optarg;
			break;
		case 's':
			opt.size = n;
			break;
		case 'A':
			opt.n_sources = n;
			break;
		case 't':
			opt.timeout_us = (int64_t)n * 1000000;
			break;
		case 'T':
			result.tls = true;
			break;
		case 'j':
			opt.json = true;
			break;
		case 'a':
			if (addr_parse(optarg, 0, &opt.source, &e) == 0)
				break;
			/* FALLTHROUGH */
		default:
			return usage();
		}
	}
	if (optind + 1 != argc ||
	    addr_parse(argv[optind], 0, &opt.to, &e) == -1 ||
	    result.connections == 0 || result.at_once == 0 ||
	    opt.n_sources == 0 || opt.size > SIZE_MAX_TEXT)
		return usage();
	return 0;
}

/* --- a connection's socket */

enum { IO_AGAIN = -1, IO_ERROR = -2 };

static ssize_t
tls_result(struct conn *c, int n)
{
	switch (n > 0 ? SSL_ERROR_NONE : SSL_get_error(c->ssl, n)) {
	case SSL_ERROR_NONE:
		return n;
	case SSL_ERROR_WANT_READ:
	case SSL_ERROR_WANT_WRITE:
		return IO_AGAIN;
	case SSL_ERROR_ZERO_RETURN:
		return 0;
	default:
		ERR_clear_error();
		return IO_ERROR;
	}
}

static ssize_t
plain_result(ssize_t n)
{
	return n >= 0 ? n : errno == EAGAIN ? IO_AGAIN : IO_ERROR;
}

static ssize_t
conn_read(struct conn *c, void *p, size_t size)
{
	if (c->ssl != NULL)
		return tls_result(c, SSL_read(c->ssl, p, (int)size));
	return plain_result(recv(c->fd, p, size, 0));
}

static ssize_t
conn_write(struct conn *c, const void *p, size_t size)
{
	if (c->ssl != NULL)
		return tls_result(c, SSL_write(c->ssl, p, (int)size));
	return plain_result(send(c->fd, p, size, MSG_NOSIGNAL));
}

/* From one of our source addresses; the kernel finds the port at connect. */
static int
bind_source(int fd, size_t number)
{
	struct addr a = opt.source;
	int one = 1;

	if (a.len == 0)
		return 0;
	if (a.u.sa.sa_family == AF_INET)
		a.u.in.sin_addr.s_addr = htonl(ntohl(a.u.in.sin_addr.s_addr) +
		    (uint32_t)(number % opt.n_sources));
	setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof(one));
	return bind(fd, &a.u.sa, a.len);
}

/* --- turns */

static void
close_conn(struct conn *c)
{
	if (c->fd != -1) {
		event_del(&c->ev);
		SSL_free(c->ssl);
		c->ssl = NULL;
		close(c->fd);
		c->fd = -1;
	}
	free(c->in);
	free(c->out);
	c->in = c->out = NULL;
}

/* It has come as far as this phase goes, or no further. */
static void
end_turn(struct conn *c)
{
	if (c->active)
		n_active--;
	c->active = false;
}

static void
fail(struct conn *c, enum failure why)
{
	result.failed[why]++;
	close_conn(c);
	c->stage = ST_FAILED;
	end_turn(c);
}

/* To the next stage, and whether the phase goes on there. */
static bool
reach(struct conn *c, enum stage stage)
{
	c->stage = (uint8_t)stage;
	c->step_us = now_us();
	if (stage != target)
		return true;
	end_turn(c);
	return false;
}

/* --- stages: each function does what can be done and says whether the next
 * stage may be tried at once */

static bool
begin(struct conn *c)
{
	int one = 1;

	c->fd = socket(opt.to.u.sa.sa_family,
	    SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (c->fd == -1) {
		fail(c, FAIL_SOCKET);
		return false;
	}
	event_assign(&c->ev, base, c->fd,
	    EV_READ | EV_WRITE | EV_PERSIST | EV_ET, conn_ready, c);
	event_add(&c->ev, NULL);
	c->in = malloc(IN_MAX + opt.size + WS_HEAD_MAX);
	c->out = malloc(IN_MAX + opt.size + WS_HEAD_MAX);
	setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (bind_source(c->fd, c->number) == -1 || c->in == NULL ||
	    c->out == NULL) {
		fail(c, FAIL_SOCKET);
		return false;
	}
	c->since_us = now_us();
	if (connect(c->fd, &opt.to.u.sa, opt.to.len) == -1 &&
	    errno != EINPROGRESS) {
		fail(c, errno == EADDRNOTAVAIL ? FAIL_SOCKET : FAIL_CONNECT);
		return false;
	}
	reach(c, ST_CONNECT);
	return false; /* until it is writable */
}

static bool
connected(struct conn *c)
{
	socklen_t len = sizeof(int);
	int error = 0;

	getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &len);
	if (error != 0) {
		fail(c, FAIL_CONNECT);
		return false;
	}
	if (result.tls) {
		c->ssl = SSL_new(tls);
		SSL_set_fd(c->ssl, c->fd);
		SSL_set_tlsext_host_name(c->ssl, opt.host);
		SSL_set_connect_state(c->ssl);
	}
	return reach(c, ST_TLS);
}

/* The request for the upgrade is ready to go. */
static bool
secured(struct conn *c)
{
	int n = c->ssl == NULL ? 1 : SSL_do_handshake(c->ssl);

	if (n != 1) {
		if (tls_result(c, n) != IO_AGAIN)
			fail(c, FAIL_TLS);
		return false;
	}
	ws_key(c->key);
	c->in_size = c->out_sent = 0;
	c->out_size = (size_t)snprintf((char *)c->out, IN_MAX,
	    "GET %s HTTP/1.1\r\nHost: %s\r\nUpgrade: websocket\r\n"
	    "Connection: Upgrade\r\nSec-WebSocket-Key: %s\r\n"
	    "Sec-WebSocket-Version: 13\r\n\r\n",
	    opt.path, opt.host, c->key);
	return reach(c, ST_UPGRADE);
}

/* Writes what waits; false: not all, or it failed. */
static bool
flush(struct conn *c)
{
	while (c->out_sent < c->out_size) {
		ssize_t n = conn_write(c, c->out + c->out_sent,
		    c->out_size - c->out_sent);

		if (n == IO_AGAIN)
			return false;
		if (n < 0) {
			fail(c, FAIL_RESET);
			return false;
		}
		c->out_sent += (size_t)n;
	}
	return true;
}

/* Reads more; false: there is none, or it failed. */
static bool
fill(struct conn *c)
{
	ssize_t n = conn_read(c, c->in + c->in_size,
	    IN_MAX + opt.size + WS_HEAD_MAX - c->in_size);

	if (n > 0) {
		c->in_size += (size_t)n;
		return true;
	}
	if (n != IO_AGAIN)
		fail(c, n == 0 ? FAIL_EOF : FAIL_RESET);
	return false;
}

static bool
upgraded(struct conn *c)
{
	const char *head = (const char *)c->in, *end, *value;
	char want[WS_ACCEPT_MAX];
	size_t size, len = 0;

	if (!flush(c))
		return false;
	while ((end = memmem(head, c->in_size, "\r\n\r\n", 4)) == NULL)
		if (!fill(c))
			return false;
	size = (size_t)(end - head) + 4;
	if (memcmp(head, STATUS_LINE, sizeof(STATUS_LINE) - 1) != 0) {
		fail(c, FAIL_STATUS);
		return false;
	}
	ws_accept(c->key, WS_KEY_SIZE - 1, want);
	value = ws_field(head, size, "Sec-WebSocket-Accept", &len);
	if (value == NULL || len != strlen(want) ||
	    memcmp(value, want, len) != 0 || c->in_size != size) {
		fail(c, FAIL_ACCEPT);
		return false;
	}
	c->in_size = 0;
	result.handshake.us[result.handshake.n++] = now_us() - c->since_us;
	return reach(c, ST_OPEN);
}

/* A masked frame is put before its mask, and is the last before a flush. */
static void
send_frame(struct conn *c, enum ws_opcode opcode, const void *p, size_t len)
{
	unsigned char mask[4];
	size_t head;

	RAND_bytes(mask, sizeof(mask));
	head = ws_head(c->out, true, opcode, len, mask);
	memcpy(c->out + head, p, len);
	ws_mask(c->out + head, len, mask);
	c->out_size = head + len;
	c->out_sent = 0;
}

/* The text of a connection, made anew for the comparison. */
static void
make_text(const struct conn *c, char *text)
{
	static const char words[] = "Gr\u00fc\u00dfe, \u4e16\u754c! ";
	int n = snprintf(text, opt.size + 1, "%zu: ", c->number);
	size_t at = n < 0 ? 0 : (size_t)n;

	for (; at + sizeof(words) - 1 <= opt.size; at += sizeof(words) - 1)
		memcpy(text + at, words, sizeof(words) - 1);
	for (; at < opt.size; at++)
		text[at] = '.';
}

static bool
speak(struct conn *c)
{
	char text[SIZE_MAX_TEXT + 1];

	make_text(c, text);
	send_frame(c, WS_TEXT, text, opt.size);
	c->since_us = now_us();
	return reach(c, ST_MESSAGE);
}

/* One whole frame of this kind, and nothing behind it; NULL: not yet, or it
 * failed. */
static const unsigned char *
take_frame(struct conn *c, enum ws_opcode opcode, struct ws_frame *f)
{
	int r;

	while ((r = ws_parse(f, c->in, c->in_size)) == 0 ||
	    (r == 1 && f->len <= opt.size + 125 &&
		c->in_size < f->head + f->len))
		if (!fill(c))
			return NULL;
	if (r == -1 || f->masked || !f->fin || f->opcode != opcode ||
	    c->in_size != f->head + f->len) {
		fail(c, FAIL_FRAME);
		return NULL;
	}
	c->in_size = 0;
	return c->in + f->head;
}

static bool
answered(struct conn *c)
{
	char text[SIZE_MAX_TEXT + 1];
	const unsigned char *payload;
	struct ws_frame f;

	if (!flush(c) || (payload = take_frame(c, WS_TEXT, &f)) == NULL)
		return false;
	make_text(c, text);
	if (f.len != opt.size || memcmp(payload, text, opt.size) != 0) {
		fail(c, FAIL_ECHO);
		return false;
	}
	result.message.us[result.message.n++] = now_us() - c->since_us;
	return reach(c, ST_ECHOED);
}

static bool
say_goodbye(struct conn *c)
{
	send_frame(c, WS_CLOSE, "\x03\xe8", 2); /* 1000: normal */
	return reach(c, ST_CLOSE);
}

static bool
goodbye_answered(struct conn *c)
{
	const unsigned char *payload;
	struct ws_frame f;

	if (!flush(c) || (payload = take_frame(c, WS_CLOSE, &f)) == NULL)
		return false;
	if (f.len != 2 || memcmp(payload, "\x03\xe8", 2) != 0) {
		fail(c, FAIL_CLOSE);
		return false;
	}
	return reach(c, ST_END);
}

/* The server is the first to end the connection. */
static bool
at_end(struct conn *c)
{
	ssize_t n = conn_read(c, c->in, IN_MAX);

	if (n == IO_AGAIN)
		return false;
	/* Over TLS many end without saying so. */
	if (n > 0 || (n < 0 && c->ssl == NULL)) {
		fail(c, FAIL_CLOSE);
		return false;
	}
	close_conn(c);
	result.done++;
	return reach(c, ST_CLOSED);
}

/* Between turns a connection should be silent. */
static bool
idle(struct conn *c)
{
	unsigned char byte;
	ssize_t n = conn_read(c, &byte, 1);

	if (n != IO_AGAIN)
		fail(c, n > 0 ? FAIL_FRAME : n == 0 ? FAIL_EOF : FAIL_RESET);
	return false;
}

static bool (*const stages[])(struct conn *) = {
	[ST_NEW] = begin,
	[ST_CONNECT] = connected,
	[ST_TLS] = secured,
	[ST_UPGRADE] = upgraded,
	[ST_OPEN] = speak,
	[ST_MESSAGE] = answered,
	[ST_ECHOED] = say_goodbye,
	[ST_CLOSE] = goodbye_answered,
	[ST_END] = at_end,
};

static void
conn_run(struct conn *c)
{
	while (c->active && c->stage < ST_CLOSED && stages[c->stage](c))
		continue;
}

/* --- phases */

static void
start_more(void)
{
	while (n_active < result.at_once && next_conn < result.connections) {
		struct conn *c = &conns[next_conn];

		c->number = next_conn++;
		if (c->stage >= ST_CLOSED)
			continue;
		c->active = true;
		n_active++;
		conn_run(c);
	}
}

static void
run_phase(enum stage to)
{
	target = to;
	next_conn = 0;
	start_more();
	while (n_active > 0 || next_conn < result.connections) {
		event_base_loop(base, EVLOOP_ONCE);
		start_more();
	}
}

static void
conn_ready(evutil_socket_t fd, short what, void *arg)
{
	struct conn *c = arg;

	(void)fd;
	if (!c->active)
		idle(c);
	else if (c->stage != ST_CONNECT || (what & EV_WRITE))
		conn_run(c);
}

static void
check_timeouts(evutil_socket_t fd, short what, void *arg)
{
	int64_t before = now_us() - opt.timeout_us;

	(void)fd;
	(void)what;
	(void)arg;
	for (size_t i = 0; i < next_conn; i++)
		if (conns[i].active && conns[i].step_us < before)
			fail(&conns[i], FAIL_TIMEOUT);
}

/* All are open and silent: whoever started us may look around. */
static void
wait_for_word(void)
{
	char line[64];

	puts("held");
	fflush(stdout);
	if (fgets(line, sizeof(line), stdin) == NULL)
		return; /* nobody there: go on */
}
