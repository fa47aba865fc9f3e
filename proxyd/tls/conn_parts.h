/* conn_parts.h: a TLS connection, as conn.c and wire.c share it. */
#ifndef MUSTER_TLS_CONN_PARTS_H
#define MUSTER_TLS_CONN_PARTS_H

#include <openssl/ssl.h>

#include "proxyd/tls/conn.h"

/* Bytes taken in by one call without any data in them: several records of
 * the largest kind, or a thousand key updates. */
#define WIRE_TURN (32U << 10)

struct tls_conn {
	SSL *ssl; /* NULL: not one byte has come */
	struct sock *sock;
	struct tls_server *server;
	bool in_ready;	     /* what the kernel told last */
	bool kernel_out;     /* the kernel encrypts */
	bool ended;	     /* FIN, with or without a word before */
	bool broken;	     /* reset, or no TLS any more */
	bool established;    /* the handshake is over */
	bool sent;	     /* data, ever */
	bool said_end;	     /* close_notify is out */
	bool more;	     /* more will be written at once */
	bool choked;	     /* wire.c let no more in: enough this turn */
	bool read_wants_out; /* reading waits for room to write */
	bool write_wants_in; /* and the other way round */
	uint32_t turn;	     /* bytes taken in by this call */
	uint32_t quiet;	     /* and since the last data */
};

#endif
