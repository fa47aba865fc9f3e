/*
 * handshake.h: what muster says inside a Noise handshake, without a socket:
 * versions, certificates or a token's id one way; a verdict the other way.
 * noise.h is below, channel.h above.
 *
 * Client: handshake_offer(), send; receive, handshake_conclude().
 * Server: receive, handshake_answer(), send.  Then handshake_split().
 */
#ifndef MUSTER_HANDSHAKE_H
#define MUSTER_HANDSHAKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/net/channel.h"
#include "common/net/noise.h"

/* Who is at the other end. */
struct peer {
	bool has_cert; /* else it joins, or is joined without knowing it yet */
	struct cert cert;
	uint8_t key[KEY_SIZE];
	uint8_t join_id[TOKEN_ID_SIZE];
	unsigned version; /* of the protocol, spoken by both */
	int64_t skew_ms;  /* client: the server's clock minus ours */
};

struct handshake {
	const struct channel_identity *identity; /* borrowed */
	enum noise_pattern pattern;
	struct noise_handshake noise;
	uint8_t join_id[TOKEN_ID_SIZE];
	int64_t offered_ms; /* wall */
};

void handshake_client(struct handshake *, const struct channel_identity *,
    const uint8_t node_key[KEY_SIZE]);
void handshake_join(struct handshake *, const struct channel_identity *,
    const struct token *);
void handshake_server(struct handshake *, const struct channel_identity *);

/* Client: the first message. */
int handshake_offer(struct handshake *, int64_t now_ms,
    uint8_t out[PROTO_HANDSHAKE_MAX], size_t *out_size, struct err *);

/*
 * Server: judges the first message.  -1 refuses; *out_size is then 0 for a
 * peer to whom nothing can be said, else the size of a message that tells it
 * why, to be sent before closing.  The peer is still unproven: only its first
 * record shows that it did not replay somebody else's message.
 */
int handshake_answer(struct handshake *, const uint8_t *in, size_t in_size,
    const struct addr *from, const struct channel_policy *, int64_t now_ms,
    uint8_t out[PROTO_HANDSHAKE_MAX], size_t *out_size, struct peer *,
    struct err *);

/* Client: judges the answer.  A refusal comes as the err of the server. */
int handshake_conclude(struct handshake *, const uint8_t *in, size_t in_size,
    int64_t now_ms, struct peer *, struct err *);

/* The session's two directions; wipes every secret of the handshake. */
void handshake_split(struct handshake *, struct noise_cipher *send,
    struct noise_cipher *receive);

void handshake_wipe(struct handshake *);

#endif
