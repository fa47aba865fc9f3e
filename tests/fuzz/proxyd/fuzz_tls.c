/*
 * fuzz_tls.c: what a client says before a word is encrypted.  The first byte
 * chooses: a protocol list, a server name extension, or bytes of the wire,
 * which go through OpenSSL into the callbacks of a server with certificates.
 */
#include <sys/socket.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <openssl/err.h>
#include <openssl/ssl.h>

#include "proxyd/http/engine.h"
#include "proxyd/http/sock.h"
#include "proxyd/tls/alpn.h"
#include "proxyd/tls/cert_plan.h"
#include "proxyd/tls/conn.h"
#include "proxyd/tls/server.h"
#include "proxyd/tls/sni.h"

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size);

#define CHECK(what)              \
	do {                     \
		if (!(what))     \
			abort(); \
	} while (0)

static struct event_base *base;
static struct sock_loop loop;
static struct tls_server *server;

static void
add_certificate(struct cert_plan *p)
{
	EVP_PKEY *key = EVP_EC_gen("P-256");
	PKCS8_PRIV_KEY_INFO *p8 = EVP_PKEY2PKCS8(key);
	X509 *x = X509_new();
	uint8_t chain[2048], secret[512], *at = chain;
	struct cert_plan_entry entry = {
		.site = "a.example",
		.hosts = "a.example *.a.example",
		.names = "a.example *.a.example",
		.kind = CERT_IMAGE_ECDSA,
		.not_after_s = INT64_MAX,
	};
	struct err e;

	X509_set_version(x, 2);
	ASN1_INTEGER_set(X509_get_serialNumber(x), 1);
	X509_gmtime_adj(X509_getm_notBefore(x), 0);
	X509_gmtime_adj(X509_getm_notAfter(x), 3600);
	X509_set_pubkey(x, key);
	X509_sign(x, key, EVP_sha256());
	entry.chain =
	    (struct cert_plan_bytes){ chain, (size_t)i2d_X509(x, &at) };
	at = secret;
	entry.key = (struct cert_plan_bytes){ secret,
		(size_t)i2d_PKCS8_PRIV_KEY_INFO(p8, &at) };
	CHECK(cert_plan_add(p, &entry, &e) == 0);
	X509_free(x);
	PKCS8_PRIV_KEY_INFO_free(p8);
	EVP_PKEY_free(key);
}

static void
set_up(void)
{
	struct ticket_keys keys = { .n = 0 };
	struct cert_plan *p;
	struct err e;
	int fd;

	base = engine_event_base(&e);
	CHECK(base != NULL && sock_loop_init(&loop, base) == 0);
	server = tls_server_new(&e);
	CHECK(server != NULL && tls_server_open(server, &e) == 0);
	ticket_keys_rotate(&keys);
	tls_server_tickets(server, &keys);
	p = cert_plan_new(&e);
	add_certificate(p);
	cert_plan_default(p, "a.example");
	CHECK(cert_plan_write(p, &fd, &e) == 0);
	cert_plan_free(p);
	tls_server_certs(server, cert_image_map(fd, &e));
	close(fd);
}

static void
on_ready(int fd, short what, void *arg)
{
	(void)fd;
	sock_event(arg, what);
}

/* In two pieces, and then the end. */
static void
shake(const uint8_t *bytes, size_t size)
{
	enum tls_step step = TLS_WAITS;
	size_t half = size / 2;
	enum tls_failure why;
	struct sock s;
	int fds[2];

	CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds) == 0);
	CHECK(sock_open(&s, fds[0], &loop, on_ready, &s) == 0);
	s.writable = true;
	sock_secure(&s, tls_conn_new(server, &s));
	for (int i = 0; i < 3 && step == TLS_WAITS; i++) {
		if (i == 0)
			CHECK(write(fds[1], bytes, half) == (ssize_t)half);
		else if (i == 1)
			CHECK(write(fds[1], bytes + half, size - half) ==
			    (ssize_t)(size - half));
		else
			shutdown(fds[1], SHUT_WR);
		event_base_loop(base, EVLOOP_NONBLOCK);
		step = tls_handshake(s.tls, &why);
	}
	/* Nobody can know what the server's key is to be answered with. */
	CHECK(step == TLS_FAILED && why < TLS_FAILURES);
	CHECK(ERR_peek_error() == 0);
	sock_close(&s);
	close(fds[1]);
}

static void
choose_protocol(const uint8_t *list, size_t size)
{
	uint8_t len;
	const uint8_t *got = alpn_choose(list, size, &len);

	CHECK(got == NULL ||
	    (got > list && got + len <= list + size && got[-1] == len &&
		len == 8 && memcmp(got, "http/1.1", 8) == 0));
}

static void
read_name(const uint8_t *extension, size_t size)
{
	uint8_t one[SNI_CONTEXT], other[SNI_CONTEXT], upper[SNI_NAME_MAX + 5];
	const uint8_t *name;
	size_t len;

	sni_context(extension, size, one);
	if (!sni_parse(extension, size, &name, &len))
		return;
	CHECK(len > 0 && len <= SNI_NAME_MAX && name + len == extension + size);
	for (size_t i = 0; i < size; i++)
		upper[i] =
		    i >= 5 && extension[i] >= 'a' && extension[i] <= 'z' ?
		    extension[i] & ~0x20 :
		    extension[i];
	sni_context(upper, size, other);
	CHECK(memcmp(one, other, sizeof(one)) == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	uint8_t *bytes;

	if (server == NULL)
		set_up();
	if (size == 0 || size > 20000)
		return 0;
	bytes = malloc(size - 1); /* what is behind it is noticed */
	memcpy(bytes, input + 1, size - 1);
	if (input[0] == 'a')
		choose_protocol(bytes, size - 1);
	else if (input[0] == 'n')
		read_name(bytes, size - 1);
	else
		shake(bytes, size - 1);
	free(bytes);
	return 0;
}
