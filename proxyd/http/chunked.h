/*
 * chunked.h: the chunked transfer coding (RFC 9112, section 7.1): a strict
 * decoder that works where the bytes lie, and our own encoder.
 *
 * Chunk extensions and trailer fields are checked and dropped.  Nothing a
 * peer wrote as framing is ever passed on.
 */
#ifndef MUSTER_CHUNKED_H
#define MUSTER_CHUNKED_H

#include <stddef.h>
#include <stdint.h>

#define CHUNK_EXT_MAX	    2048U	/* bytes of extensions, one chunk */
#define CHUNK_EXT_ALL_MAX   (16U << 10) /* and of a whole body */
#define CHUNK_TRAILER_MAX   (8U << 10)	/* bytes of the trailer section */
#define CHUNK_TRAILER_LINES 32U

enum chunk_result {
	CHUNK_MORE, /* took everything, the body goes on */
	CHUNK_DONE, /* the body is complete */
	CHUNK_BAD,  /* no chunked coding */
	CHUNK_BAD_TRAILER,
};

struct chunked {
	uint8_t state;
	uint8_t digits;
	uint16_t ext;	   /* bytes in this chunk's extensions */
	uint16_t trailer;  /* bytes of trailer section */
	uint16_t trailers; /* lines of it */
	uint32_t ext_all;
	uint64_t left; /* of the chunk: size being read, data to come */
};

void chunked_init(struct chunked *);

/* A piece of the buffer: data[start, start + len). */
struct chunk_piece {
	size_t start, len;
};

/*
 * Decodes data[0, size).  The payload found is moved together into one piece
 * (what comes first does not move).  *taken bytes were looked at: all of
 * them, unless the body ended before; then the next message begins there and
 * is left where it is.
 */
enum chunk_result chunked_decode(struct chunked *, char *data, size_t size,
    struct chunk_piece *, size_t *taken);

/* --- the encoder: data goes out as one chunk; room is needed around it. */
#define CHUNK_HEAD_MAX 18 /* 16 digits, CRLF */
#define CHUNK_TAIL     "\r\n"
#define CHUNK_END      "0\r\n\r\n"
#define CHUNK_TAIL_MAX 7 /* CHUNK_TAIL and CHUNK_END */

/* Writes the size line so that it ends just before `data`; returns its
 * length. */
size_t chunked_head(char *data, uint64_t size);

#endif
