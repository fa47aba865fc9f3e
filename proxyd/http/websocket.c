/* websocket.c: see websocket.h. */
#include "proxyd/http/websocket.h"

#include <stdint.h>
#include <string.h>

#include <sodium.h>

#define GUID	 "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
#define KEY_MAX	 64
#define SHA1_LEN 20

static uint32_t
rol(uint32_t x, int n)
{
	return x << n | x >> (32 - n);
}

static void
sha1_block(uint32_t h[5], const unsigned char *p)
{
	static const uint32_t k[] = { 0x5a827999, 0x6ed9eba1, 0x8f1bbcdc,
		0xca62c1d6 };
	uint32_t w[80], v[5];

	for (int i = 0; i < 16; i++, p += 4)
		w[i] = (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 |
		    (uint32_t)p[2] << 8 | p[3];
	for (int i = 16; i < 80; i++)
		w[i] = rol(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
	memcpy(v, h, sizeof(v));
	for (int i = 0; i < 80; i++) {
		uint32_t f = i < 20   ? (v[1] & v[2]) | (~v[1] & v[3]) :
		    i >= 40 && i < 60 ? (v[1] & v[2]) | (v[1] & v[3]) |
			(v[2] & v[3]) :
					v[1] ^ v[2] ^ v[3];
		uint32_t t = rol(v[0], 5) + f + v[4] + k[i / 20] + w[i];

		v[4] = v[3];
		v[3] = v[2];
		v[2] = rol(v[1], 30);
		v[1] = v[0];
		v[0] = t;
	}
	for (int i = 0; i < 5; i++)
		h[i] += v[i];
}

/* FIPS 180-4, for what fits two blocks: keys are short. */
static void
sha1(const char *text, size_t len, unsigned char out[SHA1_LEN])
{
	uint32_t h[5] = { 0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476,
		0xc3d2e1f0 };
	unsigned char blocks[128] = { 0 };
	size_t size = len + 9 <= 64 ? 64 : 128;

	memcpy(blocks, text, len);
	blocks[len] = 0x80;
	blocks[size - 2] = (unsigned char)(len * 8 >> 8);
	blocks[size - 1] = (unsigned char)(len * 8);
	for (size_t i = 0; i < size; i += 64)
		sha1_block(h, blocks + i);
	for (int i = 0; i < SHA1_LEN; i++)
		out[i] = (unsigned char)(h[i / 4] >> (24 - i % 4 * 8));
}

bool
websocket_accepts(const char *key, size_t key_len, const char *accept,
    size_t accept_len)
{
	char text[KEY_MAX + sizeof(GUID)], want[32];
	unsigned char digest[SHA1_LEN];

	if (key_len > KEY_MAX)
		return false;
	memcpy(text, key, key_len);
	memcpy(text + key_len, GUID, sizeof(GUID) - 1);
	sha1(text, key_len + sizeof(GUID) - 1, digest);
	sodium_bin2base64(want, sizeof(want), digest, sizeof(digest),
	    sodium_base64_VARIANT_ORIGINAL);
	return strlen(want) == accept_len &&
	    memcmp(want, accept, accept_len) == 0;
}
