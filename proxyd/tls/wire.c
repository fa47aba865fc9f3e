/* wire.c: see wire.h. */
#include "proxyd/tls/wire.h"

#include <sys/socket.h>
#include <errno.h>

#include "proxyd/http/sock.h"
#include "proxyd/tls/conn_parts.h"

static int
wire_read(BIO *b, char *out, int size)
{
	struct tls_conn *t = BIO_get_app_data(b);
	ssize_t n;

	BIO_clear_retry_flags(b);
	if (t->ended || t->broken)
		return t->ended ? 0 : -1;
	t->choked = t->in_ready && t->turn >= WIRE_TURN;
	if (!t->in_ready || t->choked) {
		BIO_set_retry_read(b);
		return -1;
	}
	if (BIO_get_ktls_recv(b)) {
		n = BIO_meth_get_read(BIO_s_socket())(b, out, size);
	} else {
		do
			n = recv(t->sock->fd, out, (size_t)size, 0);
		while (n == -1 && errno == EINTR);
	}
	if (n > 0) {
		/* The kernel's TLS gives one record at a time. */
		if (n < size && !BIO_get_ktls_recv(b))
			t->in_ready = t->sock->closed;
		t->turn += (uint32_t)n;
		t->quiet += (uint32_t)n;
		return (int)n;
	}
	t->in_ready = false;
	if (n == 0)
		t->ended = true;
	else if (errno == EAGAIN)
		BIO_set_retry_read(b);
	else
		t->broken = true;
	return (int)n;
}

static int
wire_write(BIO *b, const char *bytes, int size)
{
	struct tls_conn *t = BIO_get_app_data(b);
	int flags = MSG_NOSIGNAL | (t->more ? MSG_MORE : 0);
	ssize_t n;

	BIO_clear_retry_flags(b);
	if (BIO_get_ktls_send(b))
		return BIO_meth_get_write(BIO_s_socket())(b, bytes, size);
	do
		n = send(t->sock->fd, bytes, (size_t)size, flags);
	while (n == -1 && errno == EINTR);
	if (n == -1 && errno == EAGAIN)
		BIO_set_retry_write(b);
	else if (n == -1)
		t->broken = true;
	return (int)n;
}

BIO_METHOD *
wire_method_new(void)
{
	const BIO_METHOD *own = BIO_s_socket();
	BIO_METHOD *m = BIO_meth_new(BIO_TYPE_SOCKET, "wire");

	if (m == NULL)
		return NULL;
	BIO_meth_set_read(m, wire_read);
	BIO_meth_set_write(m, wire_write);
	BIO_meth_set_ctrl(m, BIO_meth_get_ctrl(own));
	BIO_meth_set_create(m, BIO_meth_get_create(own));
	BIO_meth_set_destroy(m, BIO_meth_get_destroy(own));
	return m;
}

void
wire_method_free(BIO_METHOD *m)
{
	BIO_meth_free(m);
}

BIO *
wire_new(BIO_METHOD *m, struct tls_conn *t, int fd)
{
	BIO *b = BIO_new(m);

	if (b == NULL)
		return NULL;
	BIO_set_fd(b, fd, BIO_NOCLOSE);
	BIO_set_app_data(b, t);
	return b;
}
