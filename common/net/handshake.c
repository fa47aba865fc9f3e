/*
 * handshake.c: see handshake.h.
 *
 * First message:  pattern (1), then in Noise: lowest version (1), highest
 *                 (1), and the certificate (IK) or the token id (IKpsk2).
 * Second message: in Noise: verdict (1), version (1), wall ms (8), and the
 *                 certificate or, for a refusal, the err as JSON.
 */
#include "common/net/handshake.h"

#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "common/base/text.h"

#include "common/net/proto.h"

#define PROLOGUE      "muster"
#define PROLOGUE_SIZE 7 /* and the pattern byte */
#define OFFER_HEAD    2
#define ANSWER_HEAD   10
#define ANSWER_MAX    (ANSWER_HEAD + PROTO_ERROR_MAX)

_Static_assert(CERT_MAX <= PROTO_ERROR_MAX &&
	ANSWER_MAX + NOISE_HANDSHAKE_OVERHEAD <= PROTO_HANDSHAKE_MAX,
    "both messages fit their limit");

enum verdict { ACCEPTED, REFUSED };

static void start(struct handshake *, const struct channel_identity *,
    enum noise_pattern, const uint8_t *responder_key);
static int judge_offer(struct handshake *, const uint8_t *offer, size_t size,
    const struct addr *from, const struct channel_policy *, int64_t now_ms,
    struct peer *, struct err *);
static int judge_client(const struct handshake *, const uint8_t *cert,
    size_t size, const struct addr *from, const struct channel_policy *,
    int64_t now_ms, struct peer *, struct err *);
static int judge_joiner(struct handshake *, const uint8_t *id, size_t size,
    const struct addr *from, const struct channel_policy *, struct peer *,
    struct err *);
static int choose_version(const uint8_t *offer, struct peer *, struct err *);
static int read_answer(struct handshake *, const uint8_t *in, size_t in_size,
    uint8_t *answer, size_t *size, struct err *);
static int judge_answer(const struct handshake *, const uint8_t *answer,
    size_t size, int64_t now_ms, struct peer *, struct err *);
static int blame_clock(int64_t skew_ms, struct err *);
static int judge_server(const struct handshake *, const uint8_t *cert,
    size_t size, int64_t now_ms, struct peer *, struct err *);

void
handshake_client(struct handshake *h, const struct channel_identity *us,
    const uint8_t node_key[KEY_SIZE])
{
	memset(h, 0, sizeof(*h));
	start(h, us, NOISE_IK, node_key);
}

void
handshake_join(struct handshake *h, const struct channel_identity *us,
    const struct token *t)
{
	uint8_t psk[KEY_SIZE];

	memset(h, 0, sizeof(*h));
	memcpy(h->join_id, t->id, sizeof(h->join_id));
	start(h, us, NOISE_IKPSK2, t->master_key);
	token_psk(t->secret, psk);
	noise_set_psk(&h->noise, psk);
	sodium_memzero(psk, sizeof(psk));
}

void
handshake_server(struct handshake *h, const struct channel_identity *us)
{
	memset(h, 0, sizeof(*h));
	h->identity = us;
}

int
handshake_offer(struct handshake *h, int64_t now_ms,
    uint8_t out[PROTO_HANDSHAKE_MAX], size_t *out_size, struct err *e)
{
	uint8_t offer[OFFER_HEAD + CERT_MAX] = { PROTO_LOWEST, PROTO_HIGHEST };
	bool joins = h->pattern == NOISE_IKPSK2;
	const uint8_t *proof = joins ? h->join_id : h->identity->cert;
	size_t size = joins ? TOKEN_ID_SIZE : h->identity->cert_size;

	memcpy(offer + OFFER_HEAD, proof, size);
	out[0] = (uint8_t)h->pattern;
	if (noise_write(&h->noise, offer, OFFER_HEAD + size, out + 1,
		PROTO_HANDSHAKE_MAX - 1, out_size, e) == -1)
		return -1;
	*out_size += 1;
	h->offered_ms = now_ms;
	return 0;
}

int
handshake_answer(struct handshake *h, const uint8_t *in, size_t in_size,
    const struct addr *from, const struct channel_policy *policy,
    int64_t now_ms, uint8_t out[PROTO_HANDSHAKE_MAX], size_t *out_size,
    struct peer *p, struct err *e)
{
	uint8_t offer[PROTO_HANDSHAKE_MAX], answer[ANSWER_MAX];
	size_t size = ANSWER_HEAD;
	struct err write_err;
	int verdict;

	*out_size = 0;
	if (in_size == 0 || in_size > PROTO_HANDSHAKE_MAX ||
	    in[0] >= NOISE_N_PATTERNS)
		return err_set(e, ERR_PROTOCOL,
		    "the peer does not speak this protocol");
	start(h, h->identity, (enum noise_pattern)in[0], NULL);
	if (noise_read(&h->noise, in + 1, in_size - 1, offer, &in_size, e) ==
	    -1)
		return -1;
	verdict = judge_offer(h, offer, in_size, from, policy, now_ms, p, e);
	answer[0] = verdict == 0 ? ACCEPTED : REFUSED;
	answer[1] = (uint8_t)p->version;
	for (int i = 0; i < 8; i++)
		answer[2 + i] = (uint8_t)((uint64_t)now_ms >> (56 - 8 * i));
	if (verdict == -1) {
		size += proto_format_error(e, (char *)answer + size);
	} else {
		memcpy(answer + size, h->identity->cert,
		    h->identity->cert_size);
		size += h->identity->cert_size;
	}
	if (noise_write(&h->noise, answer, size, out, PROTO_HANDSHAKE_MAX,
		out_size, verdict == 0 ? e : &write_err) == -1)
		return -1;
	return verdict;
}

int
handshake_conclude(struct handshake *h, const uint8_t *in, size_t in_size,
    int64_t now_ms, struct peer *p, struct err *e)
{
	uint8_t answer[PROTO_HANDSHAKE_MAX];
	size_t size;

	if (in_size > sizeof(answer) ||
	    read_answer(h, in, in_size, answer, &size, e) == -1)
		return err_set(e, ERR_PROTOCOL,
		    "the node's answer to the handshake is damaged");
	return judge_answer(h, answer, size, now_ms, p, e);
}

void
handshake_split(struct handshake *h, struct noise_cipher *send,
    struct noise_cipher *receive)
{
	noise_split(&h->noise, send, receive);
}

void
handshake_wipe(struct handshake *h)
{
	noise_wipe(&h->noise);
}

static void
start(struct handshake *h, const struct channel_identity *us,
    enum noise_pattern pattern, const uint8_t *responder_key)
{
	uint8_t prologue[PROLOGUE_SIZE] = PROLOGUE;
	struct noise_keypair pair;

	prologue[PROLOGUE_SIZE - 1] = (uint8_t)pattern;
	memcpy(pair.secret, us->secret, sizeof(pair.secret));
	memcpy(pair.public, us->public, sizeof(pair.public));
	h->identity = us;
	h->pattern = pattern;
	noise_start(&h->noise, pattern, &pair, responder_key, prologue,
	    sizeof(prologue));
	sodium_memzero(&pair, sizeof(pair));
}

static int
judge_offer(struct handshake *h, const uint8_t *offer, size_t size,
    const struct addr *from, const struct channel_policy *policy,
    int64_t now_ms, struct peer *p, struct err *e)
{
	memset(p, 0, sizeof(*p));
	memcpy(p->key, noise_remote_key(&h->noise), sizeof(p->key));
	if (size < OFFER_HEAD)
		return err_set(e, ERR_PROTOCOL, "the offer is cut");
	if (choose_version(offer, p, e) == -1)
		return -1;
	offer += OFFER_HEAD;
	size -= OFFER_HEAD;
	if (h->pattern == NOISE_IKPSK2)
		return judge_joiner(h, offer, size, from, policy, p, e);
	return judge_client(h, offer, size, from, policy, now_ms, p, e);
}

static int
judge_client(const struct handshake *h, const uint8_t *cert, size_t size,
    const struct addr *from, const struct channel_policy *policy,
    int64_t now_ms, struct peer *p, struct err *e)
{
	if (cert_verify(cert, size, h->identity->authority, p->key,
		now_ms / 1000, &p->cert, e) == -1)
		return -1;
	p->has_cert = true;
	return policy->admit(&p->cert, from, policy->arg, e);
}

/*
 * The psk stays all zero where there is none: then the second message is
 * protected as in plain IK, and the joiner, who expects that of a refusal
 * only, can still read why its token is no good.
 */
static int
judge_joiner(struct handshake *h, const uint8_t *id, size_t size,
    const struct addr *from, const struct channel_policy *policy,
    struct peer *p, struct err *e)
{
	uint8_t psk[KEY_SIZE] = { 0 };
	int rv;

	if (size != TOKEN_ID_SIZE)
		return err_set(e, ERR_PROTOCOL, "a token id has %d bytes",
		    TOKEN_ID_SIZE);
	memcpy(p->join_id, id, TOKEN_ID_SIZE);
	if (policy->join_psk == NULL)
		return err_set(e, ERR_DENIED,
		    "this node takes no joins: use the address of a master");
	rv = policy->join_psk(id, from, psk, policy->arg, e);
	noise_set_psk(&h->noise, psk);
	sodium_memzero(psk, sizeof(psk));
	return rv;
}

static int
choose_version(const uint8_t *offer, struct peer *p, struct err *e)
{
	unsigned lowest = offer[0], highest = offer[1];

	if (highest < PROTO_LOWEST || lowest > PROTO_HIGHEST ||
	    lowest > highest)
		return err_set(e, ERR_VERSION,
		    "this node speaks protocol %d to %d, the client %u to %u: "
		    "upgrade the older one",
		    PROTO_LOWEST, PROTO_HIGHEST, lowest, highest);
	p->version = highest < PROTO_HIGHEST ? highest : PROTO_HIGHEST;
	return 0;
}

/* The answer to a token that the server does not know is sealed with a zero
 * psk; as anybody could do that who knows no token, it may only refuse. */
static int
read_answer(struct handshake *h, const uint8_t *in, size_t in_size,
    uint8_t *answer, size_t *size, struct err *e)
{
	static const uint8_t no_psk[KEY_SIZE];
	struct noise_handshake before = h->noise;
	int rv;

	rv = noise_read(&h->noise, in, in_size, answer, size, e);
	if (rv == -1 && h->pattern == NOISE_IKPSK2) {
		h->noise = before;
		noise_set_psk(&h->noise, no_psk);
		rv = noise_read(&h->noise, in, in_size, answer, size, e);
		if (rv == 0 && (*size < ANSWER_HEAD || answer[0] != REFUSED))
			rv = -1;
	}
	noise_wipe(&before);
	return rv;
}

static int
judge_answer(const struct handshake *h, const uint8_t *answer, size_t size,
    int64_t now_ms, struct peer *p, struct err *e)
{
	uint64_t wall_ms = 0;
	int64_t skew_ms;

	if (size < ANSWER_HEAD || answer[0] > REFUSED)
		return err_set(e, ERR_PROTOCOL, "the node's answer is cut");
	for (int i = 0; i < 8; i++)
		wall_ms = wall_ms << 8 | answer[2 + i];
	/* The server looked at its clock about half-way. */
	skew_ms = (int64_t)(wall_ms - (uint64_t)h->offered_ms / 2 -
	    (uint64_t)now_ms / 2);
	if (answer[0] == REFUSED) {
		proto_parse_error(answer + ANSWER_HEAD, size - ANSWER_HEAD, e);
		return blame_clock(skew_ms, e);
	}
	if (answer[1] < PROTO_LOWEST || answer[1] > PROTO_HIGHEST)
		return err_set(e, ERR_VERSION,
		    "the node wants protocol %u, which was not offered",
		    answer[1]);
	memset(p, 0, sizeof(*p));
	memcpy(p->key, noise_remote_key(&h->noise), sizeof(p->key));
	p->version = answer[1];
	p->skew_ms = skew_ms;
	/* One that joins does not know the authority yet; it trusts the key
	 * in its token. */
	if (h->pattern == NOISE_IKPSK2)
		return 0;
	if (judge_server(h, answer + ANSWER_HEAD, size - ANSWER_HEAD, now_ms, p,
		e) == -1)
		return blame_clock(skew_ms, e);
	return 0;
}

/* A certificate out of its time may well be a clock that is wrong, and the
 * sentence alone would send people to make a new certificate. */
static int
blame_clock(int64_t skew_ms, struct err *e)
{
	char off[32];

	if ((e->code != ERR_EXPIRED && e->code != ERR_NOT_YET) ||
	    llabs(skew_ms) <= PROTO_SKEW_S * 1000LL)
		return -1;
	text_format_duration(llabs(skew_ms), off, sizeof(off));
	return err_set(e, e->code, "%s (the node's clock is %s %s ours)",
	    e->text, off, skew_ms > 0 ? "ahead of" : "behind");
}

static int
judge_server(const struct handshake *h, const uint8_t *cert, size_t size,
    int64_t now_ms, struct peer *p, struct err *e)
{
	if (cert_verify(cert, size, h->identity->authority, p->key,
		now_ms / 1000, &p->cert, e) == -1)
		return err_wrap(e, "the node's certificate is refused");
	if (p->cert.kind != CERT_NODE)
		return err_set(e, ERR_STRANGER,
		    "the certificate of %s is an operator's, not a node's",
		    p->cert.name);
	p->has_cert = true;
	return 0;
}
