/*
 * noise.h: the Noise Protocol Framework, revision 34, as far as muster needs
 * it: Noise_IK_25519_ChaChaPoly_SHA256 and Noise_IKpsk2_25519_... over
 * libsodium.  Nothing here knows what the payloads mean.
 *
 * A handshake is write, read (initiator) or read, write (responder), then
 * noise_split().  Any failure ends it: every later call fails too.
 */
#ifndef MUSTER_NOISE_H
#define MUSTER_NOISE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

#define NOISE_KEY_SIZE	  32 /* DHLEN, HASHLEN and the cipher's key */
#define NOISE_TAG_SIZE	  16
#define NOISE_MESSAGE_MAX 65535

/* Bytes that a handshake message adds to its payload, at most. */
#define NOISE_HANDSHAKE_OVERHEAD (2 * NOISE_KEY_SIZE + 2 * NOISE_TAG_SIZE)

/* The numbers go over the wire. */
enum noise_pattern { NOISE_IK, NOISE_IKPSK2, NOISE_N_PATTERNS };

/* One direction of the transport; section 5.1, CipherState. */
struct noise_cipher {
	uint8_t key[NOISE_KEY_SIZE];
	uint64_t nonce;
};

struct noise_keypair {
	uint8_t secret[NOISE_KEY_SIZE];
	uint8_t public[NOISE_KEY_SIZE];
};

/* Sections 5.2 and 5.3, SymmetricState and HandshakeState. */
struct noise_handshake {
	enum noise_pattern pattern;
	bool initiator;
	bool ephemeral_given;
	unsigned step; /* messages done; NOISE_FAILED after a failure */
	struct noise_cipher cipher;
	uint8_t ck[NOISE_KEY_SIZE];
	uint8_t hash[NOISE_KEY_SIZE];
	uint8_t psk[NOISE_KEY_SIZE];
	struct noise_keypair s, e;
	uint8_t rs[NOISE_KEY_SIZE], re[NOISE_KEY_SIZE];
};

/* The initiator gives the responder's key; a responder gives NULL. */
void noise_start(struct noise_handshake *, enum noise_pattern,
    const struct noise_keypair *ours, const uint8_t *responder_key,
    const void *prologue, size_t prologue_size);

/* IKpsk2: before the second message is written or read. */
void noise_set_psk(struct noise_handshake *, const uint8_t psk[NOISE_KEY_SIZE]);

/* For test vectors only: the ephemeral key, instead of a fresh one. */
void noise_set_ephemeral(struct noise_handshake *,
    const uint8_t secret[NOISE_KEY_SIZE]);

/* The next handshake message.  out needs size + NOISE_HANDSHAKE_OVERHEAD. */
int noise_write(struct noise_handshake *, const void *payload, size_t size,
    uint8_t *out, size_t out_max, size_t *out_size, struct err *);

/* payload needs `size` bytes, and is filled only when all is authentic. */
int noise_read(struct noise_handshake *, const uint8_t *message, size_t size,
    uint8_t *payload, size_t *payload_size, struct err *);

/* The peer's static key; the responder has it after the first message. */
const uint8_t *noise_remote_key(const struct noise_handshake *);

bool noise_is_done(const struct noise_handshake *);

/* After the last message: the two directions; wipes the handshake but its
 * hash (section 11.2, channel binding). */
void noise_split(struct noise_handshake *, struct noise_cipher *send,
    struct noise_cipher *receive);

void noise_wipe(struct noise_handshake *);

/* Encrypts `size` bytes in place; buf has room for the tag behind them. */
int noise_seal(struct noise_cipher *, uint8_t *buf, size_t size, struct err *);

/* Decrypts in place; *plain_size is size - NOISE_TAG_SIZE. */
int noise_open(struct noise_cipher *, uint8_t *buf, size_t size,
    size_t *plain_size, struct err *);

#endif
