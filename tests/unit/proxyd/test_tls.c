/*
 * test_tls.c: TLS connections over a socket pair, with OpenSSL as the client:
 * what is chosen, what is refused, what is told when.
 */
#include <sys/socket.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <setjmp.h>
#include <cmocka.h>

#include "common/base/clock.h"
#include "common/base/io.h"
#include "proxyd/http/engine.h"
#include "proxyd/http/sock.h"
#include "proxyd/tls/cert_plan.h"
#include "proxyd/tls/conn.h"
#include "proxyd/tls/conn_parts.h"
#include "proxyd/tls/server.h"

/* One certificate signed by itself. */
struct made {
	uint8_t chain[4096], key[4096];
	size_t chain_size, key_size;
};

static struct made rsa, ecdsa, other;
static struct event_base *base;
static struct sock_loop loop;
static struct tls_server *server;

/* One connection from both ends. */
struct pair {
	struct sock s;
	SSL_CTX *ctx;
	SSL *client;
	int fd; /* the client's */
	enum tls_failure why;
};

static void
make(struct made *m, EVP_PKEY *key, const char *name)
{
	X509 *x = X509_new();
	X509_NAME *subject;
	uint8_t *at = m->chain;

	assert_non_null(key);
	X509_set_version(x, 2);
	ASN1_INTEGER_set(X509_get_serialNumber(x), 1);
	X509_gmtime_adj(X509_getm_notBefore(x), -3600);
	X509_gmtime_adj(X509_getm_notAfter(x), 3600);
	X509_set_pubkey(x, key);
	subject = X509_get_subject_name(x);
	X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC,
	    (const uint8_t *)name, -1, -1, 0);
	X509_set_issuer_name(x, subject);
	assert_true(X509_sign(x, key, EVP_sha256()) > 0);
	m->chain_size = (size_t)i2d_X509(x, &at);
	X509_free(x);
	at = m->key;
	PKCS8_PRIV_KEY_INFO *p8 = EVP_PKEY2PKCS8(key);
	m->key_size = (size_t)i2d_PKCS8_PRIV_KEY_INFO(p8, &at);
	PKCS8_PRIV_KEY_INFO_free(p8);
	EVP_PKEY_free(key);
}

static void
add(struct cert_plan *p, uint8_t id, const char *site,
    enum cert_image_kind kind, const struct made *m, const char *ocsp)
{
	struct cert_plan_entry entry = {
		.id = { id },
		.site = site,
		.hosts = site,
		.names = site,
		.kind = kind,
		.not_after_s = clock_wall_ms() / 1000 + 3600,
		.ocsp_until_s = clock_wall_ms() / 1000 + 3600,
		.chain = { m->chain, m->chain_size },
		.key = { m->key, m->key_size },
		.ocsp = { (const uint8_t *)ocsp, strlen(ocsp) },
	};
	struct err e;

	assert_int_equal(cert_plan_add(p, &entry, &e), 0);
}

/* Two kinds for a.example, one for b.example, which is the default if asked
 * for. */
static void
serve_certificates(const char *fallback)
{
	struct err e;
	struct cert_plan *p = cert_plan_new(&e);
	struct cert_image *image;
	int fd;

	add(p, 1, "a.example", CERT_IMAGE_RSA, &rsa, "rsa staple");
	add(p, 2, "a.example", CERT_IMAGE_ECDSA, &ecdsa, "ecdsa staple");
	add(p, 3, "b.example", CERT_IMAGE_ECDSA, &other, "");
	if (fallback != NULL)
		cert_plan_default(p, fallback);
	assert_int_equal(cert_plan_write(p, &fd, &e), 0);
	cert_plan_free(p);
	image = cert_image_map(fd, &e);
	assert_non_null(image);
	close(fd);
	tls_server_certs(server, image);
}

static int
set_up(void **state)
{
	struct ticket_keys keys = { .n = 0 };
	struct err e;

	(void)state;
	ticket_keys_rotate(&keys);
	base = engine_event_base(&e);
	assert_int_equal(sock_loop_init(&loop, base), 0);
	server = tls_server_new(&e);
	assert_int_equal(tls_server_open(server, &e), 0);
	tls_server_tickets(server, &keys);
	make(&rsa, EVP_RSA_gen(2048), "a.example");
	make(&ecdsa, EVP_EC_gen("P-256"), "a.example");
	make(&other, EVP_EC_gen("P-256"), "b.example");
	serve_certificates(NULL);
	return 0;
}

static int
tear_down(void **state)
{
	(void)state;
	tls_server_free(server);
	sock_loop_fini(&loop);
	event_base_free(base);
	return 0;
}

static void
on_ready(int fd, short what, void *arg)
{
	(void)fd;
	sock_event(&((struct pair *)arg)->s, what);
}

static void
open_pair(struct pair *p, const char *name)
{
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0,
			     fds),
	    0);
	assert_int_equal(sock_open(&p->s, fds[0], &loop, on_ready, p), 0);
	p->s.writable = true;
	sock_secure(&p->s, tls_conn_new(server, &p->s));
	p->fd = fds[1];
	p->ctx = SSL_CTX_new(TLS_client_method());
	p->client = SSL_new(p->ctx);
	SSL_set_fd(p->client, p->fd);
	SSL_set_connect_state(p->client);
	if (name != NULL)
		SSL_set_tlsext_host_name(p->client, name);
}

static void
close_pair(struct pair *p)
{
	SSL_free(p->client);
	SSL_CTX_free(p->ctx);
	sock_close(&p->s);
	if (p->fd != -1)
		close(p->fd);
	ERR_clear_error();
}

static void
turn(void)
{
	event_base_loop(base, EVLOOP_NONBLOCK);
}

/* Both sides go on until one is through with it. */
static enum tls_step
shake(struct pair *p)
{
	enum tls_step step = TLS_WAITS;

	for (int i = 0; i < 20 && step != TLS_FAILED; i++) {
		bool done = SSL_do_handshake(p->client) == 1;

		turn();
		if (step == TLS_WAITS)
			step = tls_handshake(p->s.tls, &p->why);
		if (done && step == TLS_DONE)
			break;
	}
	ERR_clear_error();
	return step;
}

static void
assert_failure(struct pair *p, enum tls_failure why)
{
	assert_int_equal(shake(p), TLS_FAILED);
	assert_int_equal(p->why, why);
	close_pair(p);
}

static void
assert_kind(struct pair *p, int kind)
{
	X509 *x;

	assert_int_equal(shake(p), TLS_DONE);
	x = SSL_get1_peer_certificate(p->client);
	assert_int_equal(EVP_PKEY_base_id(X509_get0_pubkey(x)), kind);
	X509_free(x);
}

/* --- what is chosen */

static void
test_client_gets_the_kind_it_can_verify(void **state)
{
	struct pair p;

	(void)state;
	open_pair(&p, "a.example");
	SSL_set1_sigalgs_list(p.client, "RSA-PSS+SHA256");
	assert_kind(&p, EVP_PKEY_RSA);
	close_pair(&p);
	open_pair(&p, "A.Example");
	SSL_set1_sigalgs_list(p.client, "ECDSA+SHA256");
	assert_kind(&p, EVP_PKEY_EC);
	close_pair(&p);
	open_pair(&p, "a.example");
	SSL_set_max_proto_version(p.client, TLS1_2_VERSION);
	SSL_set_cipher_list(p.client, "ECDHE-RSA-AES128-GCM-SHA256");
	assert_kind(&p, EVP_PKEY_RSA);
	assert_string_equal(tls_version(p.s.tls), "TLSv1.2");
	assert_string_equal(tls_cipher(p.s.tls), "ECDHE-RSA-AES128-GCM-SHA256");
	close_pair(&p);
	open_pair(&p, "b.example");
	SSL_set1_sigalgs_list(p.client, "RSA-PSS+SHA256");
	assert_failure(&p, TLS_FAILURE_CIPHER);
}

static void
test_unknown_name_needs_a_default(void **state)
{
	struct pair p;

	(void)state;
	open_pair(&p, "c.example");
	assert_failure(&p, TLS_FAILURE_NAME);
	open_pair(&p, NULL);
	assert_failure(&p, TLS_FAILURE_NAME);
	serve_certificates("b.example");
	open_pair(&p, "c.example");
	assert_kind(&p, EVP_PKEY_EC);
	close_pair(&p);
	open_pair(&p, NULL);
	assert_kind(&p, EVP_PKEY_EC);
	close_pair(&p);
	serve_certificates(NULL);
}

static void
test_profile_bounds_the_versions(void **state)
{
	struct pair p;

	(void)state;
	tls_server_profile(server, SNAP_TLS_MODERN);
	open_pair(&p, "a.example");
	SSL_set_max_proto_version(p.client, TLS1_2_VERSION);
	assert_failure(&p, TLS_FAILURE_VERSION);
	open_pair(&p, "a.example");
	assert_int_equal(shake(&p), TLS_DONE);
	assert_string_equal(tls_version(p.s.tls), "TLSv1.3");
	close_pair(&p);
	tls_server_profile(server, SNAP_TLS_INTERMEDIATE);
}

static void
test_protocol_is_chosen_or_refused(void **state)
{
	static const uint8_t both[] = "\x02h2\x08http/1.1", h2[] = "\x02h2";
	const uint8_t *got;
	unsigned len;
	struct pair p;

	(void)state;
	open_pair(&p, "a.example");
	SSL_set_alpn_protos(p.client, both, sizeof(both) - 1);
	assert_int_equal(shake(&p), TLS_DONE);
	SSL_get0_alpn_selected(p.client, &got, &len);
	assert_int_equal(len, 8);
	assert_memory_equal(got, "http/1.1", 8);
	close_pair(&p);
	open_pair(&p, "a.example");
	SSL_set_alpn_protos(p.client, h2, sizeof(h2) - 1);
	assert_failure(&p, TLS_FAILURE_ALPN);
}

static void
test_staple_is_of_the_chosen_certificate(void **state)
{
	static const struct {
		const char *algorithms, *staple;
	} cases[] = {
		{ "RSA-PSS+SHA256", "rsa staple" },
		{ "ECDSA+SHA256", "ecdsa staple" },
	};
	const uint8_t *got;
	struct pair p;
	long size;

	(void)state;
	for (size_t i = 0; i < nitems(cases); i++) {
		open_pair(&p, "a.example");
		SSL_set1_sigalgs_list(p.client, cases[i].algorithms);
		SSL_set_tlsext_status_type(p.client, TLSEXT_STATUSTYPE_ocsp);
		assert_int_equal(shake(&p), TLS_DONE);
		size = SSL_get_tlsext_status_ocsp_resp(p.client, &got);
		assert_int_equal(size, strlen(cases[i].staple));
		assert_memory_equal(got, cases[i].staple, (size_t)size);
		close_pair(&p);
	}
	open_pair(&p, "b.example");
	SSL_set_tlsext_status_type(p.client, TLSEXT_STATUSTYPE_ocsp);
	assert_int_equal(shake(&p), TLS_DONE);
	assert_int_equal(SSL_get_tlsext_status_ocsp_resp(p.client, &got), -1);
	close_pair(&p);
}

/* --- sessions */

static SSL_SESSION *session;

static int
keep_session(SSL *ssl, SSL_SESSION *s)
{
	(void)ssl;
	SSL_SESSION_free(session);
	session = s;
	return 1;
}

/* Whether the kept session, if any, was resumed; a new one is kept. */
static bool
resumes(int version)
{
	struct pair p;
	char byte;
	bool yes;

	open_pair(&p, "a.example");
	SSL_set_max_proto_version(p.client, version);
	SSL_CTX_set_session_cache_mode(p.ctx,
	    SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
	SSL_CTX_sess_set_new_cb(p.ctx, keep_session);
	if (session != NULL)
		SSL_set_session(p.client, session);
	assert_int_equal(shake(&p), TLS_DONE);
	assert_int_equal(SSL_read(p.client, &byte, 1), -1); /* the tickets */
	/* Of one that was renewed TLS 1.2 tells nobody. */
	if (version == TLS1_2_VERSION)
		keep_session(p.client, SSL_get1_session(p.client));
	yes = tls_resumed(p.s.tls);
	assert_int_equal(yes, SSL_session_reused(p.client));
	SSL_shutdown(p.client); /* or OpenSSL would not resume it */
	close_pair(&p);
	return yes;
}

static void
test_tickets_live_as_long_as_their_keys(void **state)
{
	static const int versions[] = { TLS1_2_VERSION, TLS1_3_VERSION };
	struct ticket_keys keys = { .n = 0 };

	(void)state;
	for (size_t i = 0; i < nitems(versions); i++) {
		ticket_keys_rotate(&keys);
		tls_server_tickets(server, &keys);
		assert_false(resumes(versions[i]));
		assert_true(resumes(versions[i]));
		/* An older key opens, and what it opens is sealed anew. */
		ticket_keys_rotate(&keys);
		ticket_keys_rotate(&keys);
		tls_server_tickets(server, &keys);
		assert_true(resumes(versions[i]));
		ticket_keys_rotate(&keys);
		ticket_keys_rotate(&keys);
		tls_server_tickets(server, &keys);
		assert_true(resumes(versions[i]));
		for (int j = 0; j < TICKET_KEYS; j++)
			ticket_keys_rotate(&keys);
		tls_server_tickets(server, &keys);
		assert_false(resumes(versions[i]));
		SSL_SESSION_free(session);
		session = NULL;
	}
}

/* --- data */

static void
assert_sends(struct pair *p, const char *bytes, size_t size)
{
	assert_int_equal(SSL_write(p->client, bytes, (int)size), size);
	turn();
}

static void
test_data_waits_until_it_is_read(void **state)
{
	struct pair p;
	char buf[64];

	(void)state;
	open_pair(&p, "a.example");
	assert_int_equal(shake(&p), TLS_DONE);
	assert_sends(&p, "0123456789", 10);
	assert_sends(&p, "abcdef", 6);
	assert_true(p.s.readable);
	/* The kernel has told all it had to; the rest is here. */
	assert_int_equal(sock_recv(&p.s, buf, 4), 4);
	assert_memory_equal(buf, "0123", 4);
	assert_true(p.s.readable);
	assert_int_equal(sock_recv(&p.s, buf, sizeof(buf)), 12);
	assert_memory_equal(buf, "456789abcdef", 12);
	assert_false(p.s.readable);
	assert_int_equal(sock_recv(&p.s, buf, sizeof(buf)), SOCK_AGAIN);
	close_pair(&p);
}

static void
test_ends_are_ends_with_or_without_a_word(void **state)
{
	struct pair p;
	char buf[64];

	(void)state;
	for (int word = 0; word < 2; word++) {
		open_pair(&p, "a.example");
		assert_int_equal(shake(&p), TLS_DONE);
		assert_sends(&p, "last", 4);
		if (word)
			SSL_shutdown(p.client);
		else
			shutdown(p.fd, SHUT_WR);
		turn();
		assert_int_equal(sock_recv(&p.s, buf, sizeof(buf)), 4);
		assert_true(p.s.readable);
		assert_int_equal(sock_recv(&p.s, buf, sizeof(buf)), SOCK_EOF);
		assert_true(p.s.closed);
		/* It may still read. */
		assert_int_equal(sock_send(&p.s,
				     &(struct iovec){ (char[]){ "answer" }, 6 },
				     1, false),
		    6);
		if (!word) {
			assert_int_equal(SSL_read(p.client, buf, 64), 6);
			assert_memory_equal(buf, "answer", 6);
			sock_close(&p.s);
			assert_int_equal(SSL_read(p.client, buf, 64), 0);
			assert_int_equal(SSL_get_error(p.client, 0),
			    SSL_ERROR_ZERO_RETURN);
		}
		close_pair(&p);
	}
}

static void
test_garbage_behind_the_handshake_is_an_error(void **state)
{
	struct pair p;
	char buf[64];

	(void)state;
	open_pair(&p, "a.example");
	assert_int_equal(shake(&p), TLS_DONE);
	assert_int_equal(write(p.fd, "no record at all", 16), 16);
	turn();
	assert_int_equal(sock_recv(&p.s, buf, sizeof(buf)), SOCK_ERROR);
	assert_int_equal(sock_recv(&p.s, buf, sizeof(buf)), SOCK_ERROR);
	assert_int_equal(sock_send(&p.s, &(struct iovec){ buf, 1 }, 1, false),
	    SOCK_ERROR);
	close_pair(&p);
}

/* More than the socket holds, out of two pieces, read byte by byte exactly. */
static void
test_what_was_not_taken_is_offered_again(void **state)
{
	enum { HEAD = 100, BODY = 3000000 };
	char *all = malloc(HEAD + BODY), *got = malloc(HEAD + BODY);
	size_t sent = 0, read_so_far = 0;
	struct pair p;
	int waits = 0;

	(void)state;
	for (size_t i = 0; i < HEAD + BODY; i++)
		all[i] = (char)(i * 7 + i / 251);
	open_pair(&p, "a.example");
	assert_int_equal(shake(&p), TLS_DONE);
	while (read_so_far < HEAD + BODY) {
		size_t head = sent < HEAD ? HEAD - sent : 0;
		struct iovec iov[2] = { { all + sent, head },
			{ all + sent + head, HEAD + BODY - sent - head } };
		int n;

		if (sent < HEAD + BODY && p.s.writable) {
			ssize_t took = head > 0 ?
			    sock_send(&p.s, iov, 2, false) :
			    sock_send(&p.s, iov + 1, 1, false);

			assert_true(took >= 0);
			sent += (size_t)took;
			waits += !p.s.writable;
		}
		while ((n = SSL_read(p.client, got + read_so_far, 100000)) > 0)
			read_so_far += (size_t)n;
		assert_int_equal(SSL_get_error(p.client, n),
		    SSL_ERROR_WANT_READ);
		turn();
	}
	assert_memory_equal(all, got, HEAD + BODY);
	assert_true(waits > 2);
	close_pair(&p);
	free(all);
	free(got);
}

static void
test_keys_are_updated_while_data_flows(void **state)
{
	struct pair p;
	char buf[64];

	(void)state;
	open_pair(&p, "a.example");
	assert_int_equal(shake(&p), TLS_DONE);
	for (int i = 0; i < 5; i++) {
		assert_int_equal(SSL_key_update(p.client,
				     SSL_KEY_UPDATE_REQUESTED),
		    1);
		assert_sends(&p, "ping", 4);
		assert_int_equal(sock_recv(&p.s, buf, sizeof(buf)), 4);
		assert_int_equal(sock_send(&p.s, &(struct iovec){ buf, 4 }, 1,
				     false),
		    4);
		assert_int_equal(SSL_read(p.client, buf, sizeof(buf)), 4);
	}
	close_pair(&p);
}

static void
test_a_flood_of_key_updates_is_cut(void **state)
{
	ssize_t n = SOCK_AGAIN;
	struct pair p;
	char buf[64];
	int i;

	(void)state;
	open_pair(&p, "a.example");
	assert_int_equal(shake(&p), TLS_DONE);
	for (i = 0; i < 20000 && n == SOCK_AGAIN; i++) {
		SSL_key_update(p.client, SSL_KEY_UPDATE_NOT_REQUESTED);
		SSL_do_handshake(p.client);
		turn();
		n = sock_recv(&p.s, buf, sizeof(buf));
	}
	assert_int_equal(n, SOCK_ERROR);
	assert_true(i > 100);
	close_pair(&p);
}

static void
test_renegotiation_is_refused(void **state)
{
	struct pair p;
	char buf[64];

	(void)state;
	open_pair(&p, "a.example");
	SSL_set_max_proto_version(p.client, TLS1_2_VERSION);
	assert_int_equal(shake(&p), TLS_DONE);
	SSL_renegotiate(p.client);
	SSL_do_handshake(p.client);
	turn();
	assert_int_equal(sock_recv(&p.s, buf, sizeof(buf)), SOCK_AGAIN);
	assert_int_equal(SSL_do_handshake(p.client), -1);
	assert_int_equal(ERR_GET_REASON(ERR_peek_error()),
	    SSL_R_NO_RENEGOTIATION);
	close_pair(&p);
}

static void
test_certificates_change_under_a_connection(void **state)
{
	struct pair p, q;
	char buf[64];

	(void)state;
	open_pair(&p, "a.example");
	assert_int_equal(shake(&p), TLS_DONE);
	make(&ecdsa, EVP_EC_gen("P-384"), "a.example");
	serve_certificates("b.example");
	assert_sends(&p, "ping", 4);
	assert_int_equal(sock_recv(&p.s, buf, sizeof(buf)), 4);
	open_pair(&q, "c.example");
	assert_kind(&q, EVP_PKEY_EC);
	close_pair(&q);
	close_pair(&p);
	serve_certificates(NULL);
}

static void
test_failures_have_names(void **state)
{
	static const struct {
		const char *bytes;
		enum tls_failure why;
	} cases[] = {
		{ "GET / HTTP/1.1\r\n\r\n", TLS_FAILURE_PLAIN_HTTP },
		{ "CONNECT a:1 HTTP/1.1\r\n\r\n", TLS_FAILURE_PLAIN_HTTP },
		{ "SSH-2.0-OpenSSH_9.2p1\r\n", TLS_FAILURE_GARBAGE },
		{ "\x16\x03\x01\x00\x05\x02\x00\x00\x01\x00",
		    TLS_FAILURE_GARBAGE },
	};
	struct pair p;

	(void)state;
	for (size_t i = 0; i < nitems(cases); i++) {
		size_t size = i == 3 ? 10 : strlen(cases[i].bytes);

		open_pair(&p, NULL);
		assert_int_equal(write(p.fd, cases[i].bytes, size), size);
		turn();
		assert_int_equal(tls_handshake(p.s.tls, &p.why), TLS_FAILED);
		assert_int_equal(p.why, cases[i].why);
		close_pair(&p);
	}
	open_pair(&p, NULL);
	close(p.fd);
	p.fd = -1;
	turn();
	assert_int_equal(tls_handshake(p.s.tls, &p.why), TLS_FAILED);
	assert_int_equal(p.why, TLS_FAILURE_GONE);
	close_pair(&p);
	for (int i = 0; i < TLS_FAILURES; i++)
		assert_true(strlen(tls_failure_word(i)) > 0 &&
		    strlen(tls_failure_text(i)) > 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_client_gets_the_kind_it_can_verify),
		cmocka_unit_test(test_unknown_name_needs_a_default),
		cmocka_unit_test(test_profile_bounds_the_versions),
		cmocka_unit_test(test_protocol_is_chosen_or_refused),
		cmocka_unit_test(test_staple_is_of_the_chosen_certificate),
		cmocka_unit_test(test_tickets_live_as_long_as_their_keys),
		cmocka_unit_test(test_data_waits_until_it_is_read),
		cmocka_unit_test(test_ends_are_ends_with_or_without_a_word),
		cmocka_unit_test(test_garbage_behind_the_handshake_is_an_error),
		cmocka_unit_test(test_what_was_not_taken_is_offered_again),
		cmocka_unit_test(test_keys_are_updated_while_data_flows),
		cmocka_unit_test(test_a_flood_of_key_updates_is_cut),
		cmocka_unit_test(test_renegotiation_is_refused),
		cmocka_unit_test(test_certificates_change_under_a_connection),
		cmocka_unit_test(test_failures_have_names),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
