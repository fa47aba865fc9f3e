/* conn.c: see conn.h. */
#include "proxyd/tls/conn.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/log.h"
#include "proxyd/http/sock.h"
#include "proxyd/tls/conn_parts.h"
#include "proxyd/tls/server_parts.h"
#include "proxyd/tls/wire.h"

/* A client can make nothing of a record before all of it is there: the first
 * one fits the packets that may be sent before its first acknowledgement. */
#define FIRST_RECORD (4096 - 64)
/* Who sends that many bytes without data in them means no good. */
#define QUIET_MAX (4 * WIRE_TURN)

static int start(struct tls_conn *);
static void establish(struct tls_conn *);
static enum tls_failure failure(struct tls_conn *, int code);
static ssize_t read_stopped(struct tls_conn *, size_t got);

struct tls_conn *
tls_conn_new(struct tls_server *server, struct sock *s)
{
	struct tls_conn *t = calloc(1, sizeof(*t));

	if (t == NULL)
		return NULL;
	t->server = server;
	t->sock = s;
	t->in_ready = s->readable;
	return t;
}

void
tls_conn_free(struct tls_conn *t)
{
	if (t == NULL)
		return;
	SSL_free(t->ssl);
	free(t);
}

/* --- the handshake */

enum tls_step
tls_handshake(struct tls_conn *t, enum tls_failure *why)
{
	int rv, code;

	if (t->ssl == NULL && start(t) == -1) {
		*why = TLS_FAILURE_OTHER;
		return TLS_FAILED;
	}
	t->turn = 0;
	if ((rv = SSL_do_handshake(t->ssl)) == 1) {
		establish(t);
		return TLS_DONE;
	}
	code = SSL_get_error(t->ssl, rv);
	if ((code == SSL_ERROR_WANT_READ && t->quiet < QUIET_MAX) ||
	    code == SSL_ERROR_WANT_WRITE) {
		if (t->choked)
			sock_again(t->sock);
		return TLS_WAITS;
	}
	t->broken = true;
	*why = failure(t, code);
	return TLS_FAILED;
}

static int
start(struct tls_conn *t)
{
	struct err e;
	SSL_CTX *ctx = tls_server_context(t->server, &e);
	BIO *wire;

	if (ctx == NULL) {
		log_error("%s", e.text);
		return -1;
	}
	t->ssl = SSL_new(ctx);
	wire = wire_new(t->server->wire, t, t->sock->fd);
	if (t->ssl == NULL || wire == NULL) {
		BIO_free(wire);
		return -1;
	}
	SSL_set_bio(t->ssl, wire, wire);
	SSL_set_accept_state(t->ssl);
	return 0;
}

static void
establish(struct tls_conn *t)
{
	ERR_clear_error(); /* of what was tried on the way */
	t->established = true;
	t->quiet = 0;
	t->kernel_out = BIO_get_ktls_send(SSL_get_wbio(t->ssl));
	t->sock->readable = t->in_ready || SSL_has_pending(t->ssl);
	SSL_certs_clear(t->ssl); /* the cache's; not needed again */
}

static enum tls_failure
failure(struct tls_conn *t, int code)
{
	int reason = ERR_GET_REASON(ERR_peek_error());
	enum tls_failure why = tls_failure_of(reason);

	ERR_clear_error();
	if (code != SSL_ERROR_SSL)
		return t->quiet >= QUIET_MAX ? TLS_FAILURE_GARBAGE :
					       TLS_FAILURE_GONE;
	/* What our callbacks refused. */
	if (reason == SSL_R_CALLBACK_FAILED)
		return TLS_FAILURE_NAME;
	return why;
}

bool
tls_resumed(const struct tls_conn *t)
{
	return SSL_session_reused(t->ssl);
}

const char *
tls_version(const struct tls_conn *t)
{
	return SSL_get_version(t->ssl);
}

const char *
tls_cipher(const struct tls_conn *t)
{
	return SSL_get_cipher_name(t->ssl);
}

const char *
tls_server_name(const struct tls_conn *t)
{
	return SSL_get_servername(t->ssl, TLSEXT_NAMETYPE_host_name);
}

size_t
tls_alpn(const struct tls_conn *t, const char **name)
{
	const unsigned char *selected;
	unsigned len;

	SSL_get0_alpn_selected(t->ssl, &selected, &len);
	*name = (const char *)selected;
	return len;
}

/* --- data */

void
tls_told(struct tls_conn *t, bool in, bool out)
{
	if (in) {
		t->in_ready = true;
		if (t->write_wants_in)
			t->sock->writable = true;
	}
	if (out && t->read_wants_out)
		t->sock->readable = true;
}

ssize_t
tls_recv(struct tls_conn *t, void *buf, size_t size)
{
	size_t got = 0, n;

	if (t->broken)
		return SOCK_ERROR;
	t->read_wants_out = false;
	do {
		t->turn = 0;
		if (SSL_read_ex(t->ssl, (char *)buf + got, size - got, &n) != 1)
			return read_stopped(t, got);
		t->quiet = 0;
		got += n;
		t->sock->readable = t->in_ready || SSL_has_pending(t->ssl);
	} while (got < size && t->sock->readable);
	return (ssize_t)got;
}

/* Nothing more can be read, now or ever; that which was is told first. */
static ssize_t
read_stopped(struct tls_conn *t, size_t got)
{
	int code = SSL_get_error(t->ssl, 0);
	struct sock *s = t->sock;

	if (code == SSL_ERROR_WANT_READ || code == SSL_ERROR_WANT_WRITE) {
		s->readable = false;
		t->read_wants_out = code == SSL_ERROR_WANT_WRITE;
		if (t->choked && t->quiet < QUIET_MAX)
			sock_again(s);
		t->broken = t->quiet >= QUIET_MAX;
		if (!t->broken)
			return got > 0 ? (ssize_t)got : SOCK_AGAIN;
	}
	ERR_clear_error();
	/* Many close without a word; whether something is missing is told by
	 * HTTP's framing. */
	if (code == SSL_ERROR_ZERO_RETURN || t->ended)
		s->closed = true;
	else
		t->broken = true;
	s->readable = got > 0; /* and next time, why */
	return got > 0 ? (ssize_t)got : t->broken ? SOCK_ERROR : SOCK_EOF;
}

/* The next record's payload: as it lies there, or gathered. */
static struct iovec
next_record(struct tls_conn *t, struct iovec *iov, int n, size_t skip)
{
	size_t most = t->sent ? TLS_RECORD : FIRST_RECORD, size = 0;
	char *gather = t->server->gather;

	while (n > 1 && skip >= iov->iov_len) {
		skip -= iov->iov_len;
		iov++;
		n--;
	}
	if (n == 1 || iov->iov_len - skip >= most) {
		size = iov->iov_len - skip;
		return (struct iovec){ (char *)iov->iov_base + skip,
			size < most ? size : most };
	}
	for (int i = 0; i < n && size < most; i++, skip = 0) {
		size_t part = iov[i].iov_len - skip;

		if (part > most - size)
			part = most - size;
		memcpy(gather + size, (char *)iov[i].iov_base + skip, part);
		size += part;
	}
	return (struct iovec){ gather, size };
}

ssize_t
tls_send(struct tls_conn *t, struct iovec *iov, int n, bool more)
{
	struct sock *s = t->sock;
	size_t all = 0, sent = 0, done;

	if (t->broken)
		return SOCK_ERROR;
	for (int i = 0; i < n; i++)
		all += iov[i].iov_len;
	t->write_wants_in = false;
	while (sent < all) {
		struct iovec record = next_record(t, iov, n, sent);

		t->more = more || sent + record.iov_len < all;
		if (SSL_write_ex(t->ssl, record.iov_base, record.iov_len,
			&done) != 1)
			break;
		t->sent = true;
		sent += done;
	}
	s->writable = sent == all;
	if (sent == all)
		return (ssize_t)sent;
	switch (SSL_get_error(t->ssl, 0)) {
	case SSL_ERROR_WANT_READ:
		t->write_wants_in = true;
		/* FALLTHROUGH */
	case SSL_ERROR_WANT_WRITE:
		return (ssize_t)sent;
	default:
		ERR_clear_error();
		t->broken = true;
		return SOCK_ERROR;
	}
}

bool
tls_raw_out(const struct tls_conn *t)
{
	return t->kernel_out;
}

bool
tls_shut(struct tls_conn *t)
{
	int rv;

	if (!t->established || t->broken || t->said_end)
		return true;
	t->more = false;
	if ((rv = SSL_shutdown(t->ssl)) < 0 &&
	    SSL_get_error(t->ssl, rv) == SSL_ERROR_WANT_WRITE)
		return false;
	ERR_clear_error();
	t->said_end = true;
	return true;
}
