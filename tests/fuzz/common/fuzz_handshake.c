/*
 * fuzz_handshake.c: handshake messages, raw and behind the encryption.
 * First byte of the input: 0 a raw first message, 1 a raw answer to IK, 2 a
 * raw answer to IKpsk2, 3 an offer's plaintext, 4 an answer's plaintext (a
 * peer that encrypts what it likes), 5 and 6 the same for a join.
 */
#include "identities.h"

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size);

static int
join_psk(const uint8_t id[TOKEN_ID_SIZE], const struct addr *from,
    uint8_t psk[KEY_SIZE], void *arg, struct err *e)
{
	(void)from;
	(void)arg;
	if (memcmp(id, token.id, TOKEN_ID_SIZE) != 0)
		return err_set(e, ERR_NO_TARGET, "no such token");
	token_psk(token.secret, psk);
	return 0;
}

static const struct channel_policy policy = {
	.admit = admit,
	.join_psk = join_psk,
};

static void
start_client(struct handshake *h, bool join)
{
	if (join)
		handshake_join(h, &client, &token);
	else
		handshake_client(h, &client, server.public);
}

/* A first message, as it came over the wire. */
static int
answer(const uint8_t *in, size_t size, uint8_t *out, size_t *out_size)
{
	struct handshake h;
	struct peer peer;
	struct addr from;
	struct err e;
	int rv;

	addr_parse("10.0.0.1:1", 1, &from, &e);
	handshake_server(&h, &server);
	rv = handshake_answer(&h, in, size, &from, &policy, NOW_MS, out,
	    out_size, &peer, &e);
	if (*out_size > PROTO_HANDSHAKE_MAX ||
	    (rv == 0 && (*out_size == 0 || peer.version != 1)))
		abort();
	handshake_wipe(&h);
	return rv;
}

/* An answer, raw or (plain) of a server that says what it likes. */
static void
conclude(const uint8_t *in, size_t size, bool join, bool plain)
{
	uint8_t offer[PROTO_HANDSHAKE_MAX], bytes[PROTO_HANDSHAKE_MAX];
	uint8_t psk[KEY_SIZE];
	struct handshake c, s;
	struct peer peer;
	struct err e;
	size_t n;

	start_client(&c, join);
	if (handshake_offer(&c, NOW_MS, offer, &n, &e) == -1)
		abort();
	if (plain) {
		uint8_t prologue[] = "muster\0";
		struct noise_keypair pair;

		prologue[6] = (uint8_t)join;
		memcpy(pair.secret, server.secret, KEY_SIZE);
		memcpy(pair.public, server.public, KEY_SIZE);
		noise_start(&s.noise, join ? NOISE_IKPSK2 : NOISE_IK, &pair,
		    NULL, prologue, 7);
		token_psk(token.secret, psk);
		noise_set_psk(&s.noise, psk);
		if (noise_read(&s.noise, offer + 1, n - 1, bytes, &n, &e) == -1)
			abort();
		if (noise_write(&s.noise, in, size, bytes, sizeof(bytes), &n,
			&e) == -1)
			return;
		in = bytes;
		size = n;
	}
	if (handshake_conclude(&c, in, size, NOW_MS, &peer, &e) == 0 && !plain)
		abort(); /* Nobody guesses an authentic answer. */
	handshake_wipe(&c);
}

/* An offer of a client that says what it likes. */
static void
offer_plain(const uint8_t *in, size_t size, bool join)
{
	uint8_t bytes[PROTO_HANDSHAKE_MAX], out[PROTO_HANDSHAKE_MAX];
	struct handshake h;
	struct err e;
	size_t n;

	start_client(&h, join);
	bytes[0] = (uint8_t)join;
	if (noise_write(&h.noise, in, size, bytes + 1, sizeof(bytes) - 1, &n,
		&e) == -1)
		return;
	answer(bytes, n + 1, out, &n);
	if (n == 0)
		abort(); /* Whoever knows our key gets a reason. */
}

int
LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	uint8_t out[PROTO_HANDSHAKE_MAX];
	size_t n;

	make_identities();
	if (size < 1)
		return 0;
	switch (input[0]) {
	case 0:
		answer(input + 1, size - 1, out, &n);
		break;
	case 1:
	case 2:
		conclude(input + 1, size - 1, input[0] == 2, false);
		break;
	case 3:
	case 5:
		offer_plain(input + 1, size - 1, input[0] == 5);
		break;
	case 4:
	case 6:
		conclude(input + 1, size - 1, input[0] == 6, true);
		break;
	default:
		break;
	}
	return 0;
}
