/*
 * tlsload.c: TLS connections one after the other: each shakes hands, asks for
 * one small page, reads it, and closes.
 *
 * usage: tlsload [-n N] [--resume] [--tls12] NAME ADDRESS:PORT
 *
 * Prints one JSON object.  With --resume each comes back with the session of
 * the one before.  Certificates are not looked at: what is measured is the
 * server.
 */
#include <sys/socket.h>
#include <err.h>
#include <getopt.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <openssl/ssl.h>

#include "common/base/addr.h"
#include "common/base/clock.h"

static struct {
	const char *name;
	struct addr to;
	long n;
	bool resume, tls12;
} opt = { .n = 1000 };

static SSL_CTX *ctx;
static SSL_SESSION *session; /* the newest */
static long n_resumed;

static int
keep_session(SSL *ssl, SSL_SESSION *s)
{
	(void)ssl;
	SSL_SESSION_free(session);
	session = s;
	return 1;
}

static int
open_socket(void)
{
	static const int on = 1;
	int fd = socket(opt.to.u.sa.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd == -1 || connect(fd, &opt.to.u.sa, opt.to.len) == -1)
		err(1, "connect");
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	return fd;
}

static void
ask(SSL *ssl)
{
	char buf[16384];
	int n = snprintf(buf, sizeof(buf),
	    "GET /5 HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n",
	    opt.name);

	if (SSL_write(ssl, buf, n) != n)
		errx(1, "the connection is gone");
	n = SSL_read(ssl, buf, sizeof(buf));
	if (n < 12 || memcmp(buf + 8, " 200", 4) != 0)
		errx(1, "no page, but: %.*s", n > 0 ? n : 0, buf);
	while (n > 0)
		n = SSL_read(ssl, buf, sizeof(buf));
}

static void
one(void)
{
	SSL *ssl = SSL_new(ctx);
	int fd = open_socket();

	SSL_set_fd(ssl, fd);
	SSL_set_tlsext_host_name(ssl, opt.name);
	if (opt.resume && session != NULL)
		SSL_set_session(ssl, session);
	if (SSL_connect(ssl) != 1)
		errx(1, "the handshake failed");
	n_resumed += SSL_session_reused(ssl);
	ask(ssl);
	SSL_shutdown(ssl);
	SSL_free(ssl);
	close(fd);
}

static void
parse(int argc, char **argv)
{
	static const struct option longs[] = {
		{ "resume", no_argument, NULL, 'R' },
		{ "tls12", no_argument, NULL, '2' },
		{ 0 },
	};
	struct err e;
	int c;

	while ((c = getopt_long(argc, argv, "n:", longs, NULL)) != -1)
		switch (c) {
		case 'n':
			opt.n = strtol(optarg, NULL, 10);
			break;
		case 'R':
			opt.resume = true;
			break;
		case '2':
			opt.tls12 = true;
			break;
		default:
			exit(2);
		}
	if (optind + 2 != argc || opt.n <= 0)
		errx(2,
		    "usage: tlsload [-n N] [--resume] [--tls12] NAME "
		    "ADDRESS:PORT");
	opt.name = argv[optind];
	if (addr_parse(argv[optind + 1], 443, &opt.to, &e) == -1)
		errx(2, "%s", e.text);
}

int
main(int argc, char **argv)
{
	int64_t start_ms;

	parse(argc, argv);
	ctx = SSL_CTX_new(TLS_client_method());
	SSL_CTX_set_session_cache_mode(ctx,
	    SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
	SSL_CTX_sess_set_new_cb(ctx, keep_session);
	if (opt.tls12)
		SSL_CTX_set_max_proto_version(ctx, TLS1_2_VERSION);
	if (opt.resume)
		one(); /* where the first session is from */
	n_resumed = 0;
	start_ms = clock_mono_ms();
	for (long i = 0; i < opt.n; i++)
		one();
	printf("{\"done\": %ld, \"resumed\": %ld, \"seconds\": %.3f}\n", opt.n,
	    n_resumed, (double)(clock_mono_ms() - start_ms) / 1000);
	return 0;
}
