/*
 * proto.h: the numbers of the service protocol (proto.7): versions, limits,
 * and the table of record types.
 *
 * On the wire: a 2-byte big-endian length, then one message.  The first
 * message each way is a handshake message; each later one is a Noise
 * transport message whose plaintext is a record: one type byte and a body.
 */
#ifndef MUSTER_PROTO_H
#define MUSTER_PROTO_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

#define PROTO_DEFAULT_PORT 7400
#define PROTO_LOWEST	   1 /* versions this build speaks */
#define PROTO_HIGHEST	   1

#define PROTO_FRAME_MAX	    65535		       /* Noise, section 3 */
#define PROTO_RECORD_MAX    (PROTO_FRAME_MAX - 16 - 1) /* body: - tag - type */
#define PROTO_HANDSHAKE_MAX 2048 /* before authentication */
#define PROTO_HANDSHAKE_S   5
#define PROTO_SKEW_S	    60 /* clocks may differ by this much */
/* A client sends at most this many bytes of STDIN or FILE beyond what was
 * taken: so a command that does not read never fills the session, and a
 * SIGNAL always gets through. */
#define PROTO_WINDOW	(1024 * 1024)
#define PROTO_ERROR_MAX 1700 /* an err as JSON, every byte escaped */

enum record_type {
	REC_REQUEST = 1, /* JSON: {"verb": ..., arguments} */
	REC_REPLY,	 /* JSON: the verb's answer; ends the request */
	REC_ERROR,	 /* JSON: {"code", "word", "text"}; ends the request */
	REC_STDIN,	 /* raw bytes, towards the node */
	REC_STDOUT,	 /* raw bytes, from the node */
	REC_STDERR,	 /* raw bytes, from the node */
	REC_FILE,	 /* raw bytes, either way */
	REC_EOF,	 /* empty: no more STDIN or FILE in this direction */
	REC_SIGNAL,	 /* one byte: signal number for the remote group */
	REC_RESIZE,	 /* rows, columns: two 2-byte big-endian numbers */
	REC_EXIT,	 /* JSON: how the command ended; ends the request */
	REC_PING,	 /* at most 64 bytes, echoed by PONG; the channel */
	REC_PONG,	 /* itself answers and swallows both */
	REC_TAKEN,	 /* 8 bytes, big-endian: how many bytes of STDIN or
			  * FILE the node has taken, in all */
	REC_N_TYPES
};

enum record_sender { FROM_CLIENT = 1, FROM_SERVER = 2, FROM_BOTH = 3 };

struct record_spec {
	const char *name;
	enum record_sender from;
	uint16_t min, max; /* body bytes */
};

/* The row of a type, or NULL for an unknown one. */
const struct record_spec *record_spec(unsigned type);

/* Whether that side may send it, in that size: ERR_PROTOCOL. */
int record_check(unsigned type, enum record_sender from, size_t size,
    struct err *);

/* An err as the JSON of ERROR records and refusals; returns its size. */
size_t proto_format_error(const struct err *, char buf[PROTO_ERROR_MAX]);

/* And back.  Bad form becomes an ERR_PROTOCOL that says so. */
void proto_parse_error(const void *json, size_t size, struct err *);

#endif
