/*
 * conn.h: TLS on one socket, which reads and writes through it (sock.h).
 *
 * What the kernel told of the socket is remembered here; the socket's own
 * `readable` and `writable` then say whether data may be had or taken, so
 * that its users need not know.  An idle connection holds no buffer.
 */
#ifndef MUSTER_TLS_CONN_H
#define MUSTER_TLS_CONN_H

#include <sys/types.h>
#include <sys/uio.h>
#include <stdbool.h>
#include <stddef.h>

#include "common/base/err.h"
#include "proxyd/tls/failure.h"

struct sock;
struct tls_conn;
struct tls_server;

/* For an open socket, which must outlive it; NULL: no memory. */
struct tls_conn *tls_conn_new(struct tls_server *, struct sock *);
/* Without a word to the peer. */
void tls_conn_free(struct tls_conn *);

enum tls_step { TLS_DONE, TLS_WAITS, TLS_FAILED };

/* Goes on with the handshake: the costly part.  *why after TLS_FAILED; the
 * peer has been told then, as far as it can be. */
enum tls_step tls_handshake(struct tls_conn *, enum tls_failure *why);

/* After the handshake: for counters and logs. */
bool tls_resumed(const struct tls_conn *);
const char *tls_version(const struct tls_conn *); /* "TLSv1.3" */
const char *tls_cipher(const struct tls_conn *);  /* "TLS_AES_..." */
/* The host it asked for, or NULL; the protocol that was agreed on and its
 * length, 0: none was. */
const char *tls_server_name(const struct tls_conn *);
size_t tls_alpn(const struct tls_conn *, const char **);

/* --- for sock.c */

/* What the kernel told. */
void tls_told(struct tls_conn *, bool in, bool out);

/* As those of a socket. */
ssize_t tls_recv(struct tls_conn *, void *, size_t);
ssize_t tls_send(struct tls_conn *, struct iovec *, int n, bool more);

/* Whether the kernel encrypts what is written to the socket. */
bool tls_raw_out(const struct tls_conn *);

/* Tells the peer that nothing more comes.  False: no room for it now. */
bool tls_shut(struct tls_conn *);

#endif
