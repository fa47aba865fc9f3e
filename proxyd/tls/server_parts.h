/*
 * server_parts.h: a worker's TLS as the files of this folder share it.
 * Everybody else sees server.h and conn.h.
 */
#ifndef MUSTER_TLS_SERVER_PARTS_H
#define MUSTER_TLS_SERVER_PARTS_H

#include <openssl/evp.h>
#include <openssl/ssl.h>

#include "proxyd/tls/cert_cache.h"
#include "proxyd/tls/server.h"

#define TLS_RECORD 16384 /* payload of one, at most */

struct tls_server {
	SSL_CTX *contexts[SNAP_TLS_PROFILES]; /* NULL: not made so far */
	enum snap_tls_profile profile;
	bool kernel;	  /* can encrypt */
	BIO_METHOD *wire; /* wire.h */
	struct cert_image *certs;
	struct cert_cache *cache;
	struct ticket_keys tickets;
	EVP_CIPHER *ticket_cipher;
	char gather[TLS_RECORD]; /* a record's payload out of pieces */
};

/* The current profile's context; NULL: no memory. */
SSL_CTX *tls_server_context(struct tls_server *, struct err *);

/* Takes what OpenSSL has to say about a failure, and clears it. */
int tls_err(struct err *, int code, const char *what);

#endif
