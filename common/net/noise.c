/*
 * noise.c: see noise.h.  Names in capitals in comments are those of the
 * specification (noiseprotocol.org/noise.html, revision 34).
 */
#include "common/net/noise.h"

#include <assert.h>
#include <string.h>

#include <sodium.h>

#include "common/base/io.h"

#define NOISE_STEPS  2
#define NOISE_FAILED 99
#define TOKENS_MAX   4

enum token { END, E, S, EE, ES, SE, SS, PSK };

/*
 * Section 7.5 and 9.4.  Both start with the pre-message "<- s".  Each first
 * message carries a DH before its static key, so that nothing is ever sent
 * before there is a cipher key: EncryptAndHash always encrypts.
 */
static const struct {
	const char *name;
	bool psk;
	uint8_t tokens[NOISE_STEPS][TOKENS_MAX + 1];
} patterns[] = {
	[NOISE_IK] = { "Noise_IK_25519_ChaChaPoly_SHA256", false,
	    { { E, ES, S, SS }, { E, EE, SE } } },
	[NOISE_IKPSK2] = { "Noise_IKpsk2_25519_ChaChaPoly_SHA256", true,
	    { { E, ES, S, SS }, { E, EE, SE, PSK } } },
};
_Static_assert(nitems(patterns) == NOISE_N_PATTERNS, "a row per pattern");

/* Which key each side brings to a DH: the initiator's, the responder's. */
static const uint8_t dh_keys[][2] = {
	[EE] = { E, E },
	[ES] = { E, S },
	[SE] = { S, E },
	[SS] = { S, S },
};

/* A message being written or read. */
struct cursor {
	uint8_t *out;	   /* writing: next free byte */
	const uint8_t *in; /* reading: next byte */
	size_t left;
};

static int write_token(struct noise_handshake *, enum token, struct cursor *);
static int read_token(struct noise_handshake *, enum token, struct cursor *);
static int write_ephemeral(struct noise_handshake *, struct cursor *);
static int read_ephemeral(struct noise_handshake *, struct cursor *);
static int mix_dh(struct noise_handshake *, enum token);
static void mix_hash(struct noise_handshake *, const void *, size_t);
static void mix_key(struct noise_handshake *, const uint8_t *);
static void mix_psk(struct noise_handshake *);
static int encrypt_and_hash(struct noise_handshake *, const void *plain,
    size_t size, struct cursor *);
static int decrypt_and_hash(struct noise_handshake *, uint8_t *plain,
    size_t size, struct cursor *);
static void hkdf(const uint8_t *ck, const uint8_t *input, size_t input_size,
    uint8_t (*out)[NOISE_KEY_SIZE], size_t n);
static int noise_fail(struct noise_handshake *, const char *what, struct err *);
static int aead_nonce(const struct noise_cipher *, uint8_t nonce[12]);

void
noise_start(struct noise_handshake *h, enum noise_pattern pattern,
    const struct noise_keypair *ours, const uint8_t *responder_key,
    const void *prologue, size_t prologue_size)
{
	const char *name = patterns[pattern].name;

	memset(h, 0, sizeof(*h));
	h->pattern = pattern;
	h->initiator = responder_key != NULL;
	h->s = *ours;
	/* A name of up to HASHLEN bytes is its own hash, padded. */
	if (strlen(name) <= sizeof(h->hash))
		memcpy(h->hash, name, strlen(name));
	else
		crypto_hash_sha256(h->hash, (const uint8_t *)name,
		    strlen(name));
	memcpy(h->ck, h->hash, sizeof(h->ck));
	mix_hash(h, prologue, prologue_size);
	if (responder_key != NULL)
		memcpy(h->rs, responder_key, sizeof(h->rs));
	mix_hash(h, h->initiator ? h->rs : h->s.public, NOISE_KEY_SIZE);
}

void
noise_set_psk(struct noise_handshake *h, const uint8_t psk[NOISE_KEY_SIZE])
{
	memcpy(h->psk, psk, sizeof(h->psk));
}

void
noise_set_ephemeral(struct noise_handshake *h,
    const uint8_t secret[NOISE_KEY_SIZE])
{
	memcpy(h->e.secret, secret, sizeof(h->e.secret));
	h->ephemeral_given = true;
}

int
noise_write(struct noise_handshake *h, const void *payload, size_t size,
    uint8_t *out, size_t out_max, size_t *out_size, struct err *e)
{
	struct cursor c = { .out = out };

	if (size > NOISE_MESSAGE_MAX - NOISE_HANDSHAKE_OVERHEAD ||
	    out_max < size + NOISE_HANDSHAKE_OVERHEAD)
		return noise_fail(h, "a payload is too long", e);
	if (h->step >= NOISE_STEPS || h->initiator != (h->step == 0))
		return noise_fail(h, "it is not our turn", e);
	for (const uint8_t *t = patterns[h->pattern].tokens[h->step]; *t != END;
	     t++)
		if (write_token(h, *t, &c) == -1)
			return noise_fail(h, "the peer's key is no good", e);
	if (encrypt_and_hash(h, payload, size, &c) == -1)
		return noise_fail(h, "the cipher is spent", e);
	h->step++;
	*out_size = (size_t)(c.out - out);
	return 0;
}

int
noise_read(struct noise_handshake *h, const uint8_t *message, size_t size,
    uint8_t *payload, size_t *payload_size, struct err *e)
{
	struct cursor c = { .in = message, .left = size };

	if (h->step >= NOISE_STEPS || h->initiator == (h->step == 0))
		return noise_fail(h, "it is not the peer's turn", e);
	for (const uint8_t *t = patterns[h->pattern].tokens[h->step]; *t != END;
	     t++)
		if (read_token(h, *t, &c) == -1)
			return noise_fail(h,
			    "the message is for other keys or damaged", e);
	if (c.left < NOISE_TAG_SIZE)
		return noise_fail(h, "the message is cut", e);
	size = c.left - NOISE_TAG_SIZE;
	if (decrypt_and_hash(h, payload, size, &c) == -1)
		return noise_fail(h, "the message is for other keys or damaged",
		    e);
	h->step++;
	*payload_size = size;
	return 0;
}

const uint8_t *
noise_remote_key(const struct noise_handshake *h)
{
	return h->rs;
}

bool
noise_is_done(const struct noise_handshake *h)
{
	return h->step == NOISE_STEPS;
}

void
noise_split(struct noise_handshake *h, struct noise_cipher *send,
    struct noise_cipher *receive)
{
	uint8_t keys[2][NOISE_KEY_SIZE], hash[NOISE_KEY_SIZE];

	assert(noise_is_done(h));
	hkdf(h->ck, NULL, 0, keys, 2);
	/* The first is the initiator's sending key. */
	memcpy(send->key, keys[!h->initiator], NOISE_KEY_SIZE);
	memcpy(receive->key, keys[h->initiator], NOISE_KEY_SIZE);
	send->nonce = receive->nonce = 0;
	memcpy(hash, h->hash, sizeof(hash));
	noise_wipe(h);
	memcpy(h->hash, hash, sizeof(hash));
	sodium_memzero(keys, sizeof(keys));
}

void
noise_wipe(struct noise_handshake *h)
{
	sodium_memzero(h, sizeof(*h));
	h->step = NOISE_FAILED;
}

int
noise_seal(struct noise_cipher *c, uint8_t *buf, size_t size, struct err *e)
{
	uint8_t nonce[12];

	if (size > NOISE_MESSAGE_MAX - NOISE_TAG_SIZE ||
	    aead_nonce(c, nonce) == -1)
		return err_set(e, ERR_PROTOCOL,
		    "a message is too long, or the session too old, to "
		    "be encrypted");
	crypto_aead_chacha20poly1305_ietf_encrypt(buf, NULL, buf, size, NULL, 0,
	    NULL, nonce, c->key);
	c->nonce++;
	return 0;
}

int
noise_open(struct noise_cipher *c, uint8_t *buf, size_t size,
    size_t *plain_size, struct err *e)
{
	uint8_t nonce[12];

	if (size < NOISE_TAG_SIZE || aead_nonce(c, nonce) == -1 ||
	    crypto_aead_chacha20poly1305_ietf_decrypt(buf, NULL, NULL, buf,
		size, NULL, 0, nonce, c->key) == -1)
		return err_set(e, ERR_PROTOCOL,
		    "a record is damaged, repeated or out of order");
	c->nonce++;
	*plain_size = size - NOISE_TAG_SIZE;
	return 0;
}

static int
write_token(struct noise_handshake *h, enum token t, struct cursor *c)
{
	switch (t) {
	case E:
		return write_ephemeral(h, c);
	case S:
		return encrypt_and_hash(h, h->s.public, NOISE_KEY_SIZE, c);
	case PSK:
		mix_psk(h);
		return 0;
	default:
		return mix_dh(h, t);
	}
}

static int
read_token(struct noise_handshake *h, enum token t, struct cursor *c)
{
	switch (t) {
	case E:
		return read_ephemeral(h, c);
	case S:
		return decrypt_and_hash(h, h->rs, NOISE_KEY_SIZE, c);
	case PSK:
		mix_psk(h);
		return 0;
	default:
		return mix_dh(h, t);
	}
}

static int
write_ephemeral(struct noise_handshake *h, struct cursor *c)
{
	if (!h->ephemeral_given)
		randombytes_buf(h->e.secret, sizeof(h->e.secret));
	crypto_scalarmult_base(h->e.public, h->e.secret);
	memcpy(c->out, h->e.public, NOISE_KEY_SIZE);
	c->out += NOISE_KEY_SIZE;
	mix_hash(h, h->e.public, NOISE_KEY_SIZE);
	/* Section 9.2: with a psk the ephemeral is key material too. */
	if (patterns[h->pattern].psk)
		mix_key(h, h->e.public);
	return 0;
}

static int
read_ephemeral(struct noise_handshake *h, struct cursor *c)
{
	if (c->left < NOISE_KEY_SIZE)
		return -1;
	memcpy(h->re, c->in, NOISE_KEY_SIZE);
	c->in += NOISE_KEY_SIZE;
	c->left -= NOISE_KEY_SIZE;
	mix_hash(h, h->re, NOISE_KEY_SIZE);
	if (patterns[h->pattern].psk)
		mix_key(h, h->re);
	return 0;
}

static int
mix_dh(struct noise_handshake *h, enum token t)
{
	uint8_t ours = dh_keys[t][!h->initiator];
	uint8_t theirs = dh_keys[t][h->initiator];
	uint8_t shared[NOISE_KEY_SIZE];

	/* Fails for an all-zero result: a key of small order (section 12.1). */
	if (crypto_scalarmult(shared, ours == E ? h->e.secret : h->s.secret,
		theirs == E ? h->re : h->rs) == -1)
		return -1;
	mix_key(h, shared);
	sodium_memzero(shared, sizeof(shared));
	return 0;
}

static void
mix_hash(struct noise_handshake *h, const void *bytes, size_t size)
{
	crypto_hash_sha256_state st;

	crypto_hash_sha256_init(&st);
	crypto_hash_sha256_update(&st, h->hash, sizeof(h->hash));
	crypto_hash_sha256_update(&st, bytes, size);
	crypto_hash_sha256_final(&st, h->hash);
}

static void
mix_key(struct noise_handshake *h, const uint8_t *material)
{
	uint8_t out[2][NOISE_KEY_SIZE];

	hkdf(h->ck, material, NOISE_KEY_SIZE, out, 2);
	memcpy(h->ck, out[0], NOISE_KEY_SIZE);
	memcpy(h->cipher.key, out[1], NOISE_KEY_SIZE);
	h->cipher.nonce = 0;
	sodium_memzero(out, sizeof(out));
}

/* MixKeyAndHash(psk) */
static void
mix_psk(struct noise_handshake *h)
{
	uint8_t out[3][NOISE_KEY_SIZE];

	hkdf(h->ck, h->psk, sizeof(h->psk), out, 3);
	memcpy(h->ck, out[0], NOISE_KEY_SIZE);
	mix_hash(h, out[1], NOISE_KEY_SIZE);
	memcpy(h->cipher.key, out[2], NOISE_KEY_SIZE);
	h->cipher.nonce = 0;
	sodium_memzero(out, sizeof(out));
}

static int
encrypt_and_hash(struct noise_handshake *h, const void *plain, size_t size,
    struct cursor *c)
{
	unsigned long long sealed;
	uint8_t nonce[12];

	if (aead_nonce(&h->cipher, nonce) == -1)
		return -1;
	crypto_aead_chacha20poly1305_ietf_encrypt(c->out, &sealed, plain, size,
	    h->hash, sizeof(h->hash), NULL, nonce, h->cipher.key);
	h->cipher.nonce++;
	mix_hash(h, c->out, sealed);
	c->out += sealed;
	return 0;
}

static int
decrypt_and_hash(struct noise_handshake *h, uint8_t *plain, size_t size,
    struct cursor *c)
{
	size_t sealed = size + NOISE_TAG_SIZE;
	uint8_t nonce[12];

	if (c->left < sealed || aead_nonce(&h->cipher, nonce) == -1 ||
	    crypto_aead_chacha20poly1305_ietf_decrypt(plain, NULL, NULL, c->in,
		sealed, h->hash, sizeof(h->hash), nonce, h->cipher.key) == -1)
		return -1;
	h->cipher.nonce++;
	mix_hash(h, c->in, sealed);
	c->in += sealed;
	c->left -= sealed;
	return 0;
}

/* Section 4.3: HKDF of RFC 5869 with an empty info. */
static void
hkdf(const uint8_t *ck, const uint8_t *input, size_t input_size,
    uint8_t (*out)[NOISE_KEY_SIZE], size_t n)
{
	crypto_auth_hmacsha256_state st, keyed;
	uint8_t temp[NOISE_KEY_SIZE];

	crypto_auth_hmacsha256_init(&st, ck, NOISE_KEY_SIZE);
	if (input_size > 0)
		crypto_auth_hmacsha256_update(&st, input, input_size);
	crypto_auth_hmacsha256_final(&st, temp);
	crypto_auth_hmacsha256_init(&keyed, temp, sizeof(temp));
	for (size_t i = 0; i < n; i++) {
		uint8_t counter = (uint8_t)(i + 1);

		st = keyed;
		if (i > 0)
			crypto_auth_hmacsha256_update(&st, out[i - 1],
			    NOISE_KEY_SIZE);
		crypto_auth_hmacsha256_update(&st, &counter, 1);
		crypto_auth_hmacsha256_final(&st, out[i]);
	}
	sodium_memzero(temp, sizeof(temp));
	sodium_memzero(&st, sizeof(st));
	sodium_memzero(&keyed, sizeof(keyed));
}

static int
noise_fail(struct noise_handshake *h, const char *what, struct err *e)
{
	noise_wipe(h);
	return err_set(e, ERR_PROTOCOL, "the handshake failed: %s", what);
}

/* Four zero bytes and the counter, little-endian (section 12.3).  The last
 * value is reserved (section 5.1). */
static int
aead_nonce(const struct noise_cipher *c, uint8_t nonce[12])
{
	uint64_t n = c->nonce;

	if (n == UINT64_MAX)
		return -1;
	memset(nonce, 0, 4);
	for (size_t i = 4; i < 12; i++, n >>= 8)
		nonce[i] = (uint8_t)n;
	return 0;
}
