/*
 * wire.h: the socket as OpenSSL sees it.
 *
 * OpenSSL's own socket would read until the kernel says EAGAIN; this one
 * knows, as sock.h does, that a short read means empty, and asks no more
 * than that.  It bounds what one call may take in, so that records without
 * data (key updates) cannot hold up everybody else.
 *
 * The kernel's TLS (kTLS) is set up by OpenSSL through the methods of its own
 * socket, which this one passes on.
 */
#ifndef MUSTER_TLS_WIRE_H
#define MUSTER_TLS_WIRE_H

#include <openssl/bio.h>

struct tls_conn;

BIO_METHOD *wire_method_new(void);
void wire_method_free(BIO_METHOD *);

/* One for a connection, whose fields it reads and writes; NULL: no memory. */
BIO *wire_new(BIO_METHOD *, struct tls_conn *, int fd);

#endif
