/*
 * proxy_header.h: the header of the PROXY protocol, versions 1 and 2, with
 * which a balancer says whose connection it passes on; after HAProxy's
 * "The PROXY protocol".
 *
 * proxy_header.c reads, proxy_header_write.c writes.  The reader is strict:
 * what the specification does not allow is refused, never repaired, and it
 * knows where the header ends without looking at a byte behind it.
 */
#ifndef MUSTER_PROXY_HEADER_H
#define MUSTER_PROXY_HEADER_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/addr.h"

#define PROXY_HEADER_MAX 4096 /* taken, with all its TLVs */
#define PROXY_HEADER_OUT 2048 /* enough for any of ours */
#define PROXY_NAME_MAX	 255  /* of an authority */
#define PROXY_ID_MAX	 128

enum proxy_version { PROXY_OFF, PROXY_V1, PROXY_V2 };

struct proxy_text {
	const char *text; /* no NUL behind it */
	size_t len;	  /* 0: not told */
};

struct proxy_header {
	struct addr from, to; /* from.len 0: those of the connection */
	bool secure;	      /* the client spoke TLS */
	struct proxy_text alpn, authority, id;
	struct proxy_text tls_version, tls_cipher;
};

enum proxy_read {
	PROXY_READ_MORE, /* right so far, and not all of it */
	PROXY_READ_DONE,
	PROXY_READ_BAD, /* no header, or a broken one */
};

/* Reads what begins a connection.  Texts point into `bytes`; *size is what
 * the header takes of them. */
enum proxy_read proxy_header_read(const char *bytes, size_t n,
    struct proxy_header *, size_t *size);

/*
 * Writes one, in `room` bytes of at least PROXY_HEADER_OUT; its size.
 * Version 1 has no place for more than the addresses.  Texts longer than
 * PROXY_NAME_MAX are left out.
 */
size_t proxy_header_write(char *out, size_t room, enum proxy_version,
    const struct proxy_header *);

/* ---- numbers of version 2, for both files -------------------------------- */

#define PROXY_V2_SIGNATURE "\r\n\r\n\0\r\nQUIT\n" /* 12 bytes */
#define PROXY_V2_FIXED	   16 /* signature, command, family, length */

enum proxy_tlv {
	PROXY_TLV_ALPN = 0x01,
	PROXY_TLV_AUTHORITY = 0x02,
	PROXY_TLV_CRC32C = 0x03,
	PROXY_TLV_NOOP = 0x04,
	PROXY_TLV_UNIQUE_ID = 0x05,
	PROXY_TLV_SSL = 0x20,
	PROXY_TLV_SSL_VERSION = 0x21, /* inside PROXY_TLV_SSL */
	PROXY_TLV_SSL_CIPHER = 0x23,
};

#define PROXY_SSL_FIXED	 5    /* client, verify */
#define PROXY_SSL_CLIENT 0x01 /* it connected over TLS */

#endif
