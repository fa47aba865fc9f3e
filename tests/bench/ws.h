/*
 * ws.h: as much of RFC 6455 as a load generator and an echo server need:
 * handshake keys and frames.
 */
#ifndef MUSTER_BENCH_WS_H
#define MUSTER_BENCH_WS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

#include <openssl/evp.h>
#include <openssl/rand.h>

#define WS_GUID	      "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
#define WS_KEY_SIZE   25 /* base64 of 16 bytes, and NUL */
#define WS_ACCEPT_MAX 29 /* base64 of 20 bytes, and NUL */
#define WS_HEAD_MAX   14

enum ws_opcode {
	WS_CONTINUATION = 0,
	WS_TEXT = 1,
	WS_BINARY = 2,
	WS_CLOSE = 8,
	WS_PING = 9,
	WS_PONG = 10,
};

struct ws_frame {
	bool fin, masked;
	uint8_t opcode;
	unsigned char mask[4];
	size_t head; /* bytes before the payload */
	uint64_t len;
};

static inline void
ws_key(char key[WS_KEY_SIZE])
{
	unsigned char bytes[16];

	RAND_bytes(bytes, sizeof(bytes));
	EVP_EncodeBlock((unsigned char *)key, bytes, sizeof(bytes));
}

/* The Sec-WebSocket-Accept for a key; "" for one that is no key. */
static inline void
ws_accept(const char *key, size_t len, char accept[WS_ACCEPT_MAX])
{
	char text[WS_KEY_SIZE + sizeof(WS_GUID)];
	unsigned char digest[EVP_MAX_MD_SIZE];

	accept[0] = '\0';
	if (len != WS_KEY_SIZE - 1)
		return;
	memcpy(text, key, len);
	memcpy(text + len, WS_GUID, sizeof(WS_GUID) - 1);
	if (EVP_Digest(text, len + sizeof(WS_GUID) - 1, digest, NULL,
		EVP_sha1(), NULL) == 1)
		EVP_EncodeBlock((unsigned char *)accept, digest, 20);
}

/* The value of a field ("\r\nname: ") in a head; NULL: none. */
static inline const char *
ws_field(const char *head, size_t size, const char *name, size_t *len)
{
	size_t n = strlen(name);

	for (size_t i = 0; i + n + 1 < size; i++) {
		const char *v, *end;

		if (head[i] != '\n' || head[i + n + 1] != ':' ||
		    strncasecmp(head + i + 1, name, n) != 0)
			continue;
		v = head + i + n + 2;
		if ((end = memchr(v, '\r', size - i - n - 2)) == NULL)
			return NULL;
		while (v < end && *v == ' ')
			v++;
		*len = (size_t)(end - v);
		return v;
	}
	return NULL;
}

/* Writes a frame's head; mask NULL: none.  Its size. */
static inline size_t
ws_head(unsigned char *out, bool fin, enum ws_opcode opcode, uint64_t len,
    const unsigned char *mask)
{
	size_t n = 2, wide = len < 126 ? 0 : len < 65536 ? 2 : 8;

	out[0] = (unsigned char)((fin ? 0x80 : 0) | (int)opcode);
	out[1] = (unsigned char)((mask != NULL ? 0x80 : 0) |
	    (wide == 0	      ? (int)len :
		    wide == 2 ? 126 :
				127));
	for (size_t i = 0; i < wide; i++)
		out[n++] = (unsigned char)(len >> 8 * (wide - 1 - i));
	if (mask != NULL) {
		memcpy(out + n, mask, 4);
		n += 4;
	}
	return n;
}

/* 1: *f is the frame that begins at p; 0: its head is not whole; -1: it is
 * none. */
static inline int
ws_parse(struct ws_frame *f, const unsigned char *p, size_t size)
{
	size_t wide;

	if (size < 2)
		return 0;
	if (p[0] & 0x70)
		return -1; /* no extension was agreed on */
	f->fin = p[0] >> 7;
	f->opcode = p[0] & 15;
	f->masked = p[1] >> 7;
	f->len = p[1] & 127;
	wide = f->len == 126 ? 2 : f->len == 127 ? 8 : 0;
	f->head = 2 + wide + (f->masked ? 4 : 0);
	if (size < f->head)
		return 0;
	if (wide > 0)
		f->len = 0;
	for (size_t i = 0; i < wide; i++)
		f->len = f->len << 8 | p[2 + i];
	if (f->masked)
		memcpy(f->mask, p + 2 + wide, 4);
	/* Control frames are short and whole. */
	if (f->opcode >= WS_CLOSE && (!f->fin || f->len > 125))
		return -1;
	return 1;
}

static inline void
ws_mask(unsigned char *data, size_t len, const unsigned char mask[4])
{
	for (size_t i = 0; i < len; i++)
		data[i] ^= mask[i & 3];
}

#endif
