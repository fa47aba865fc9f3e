/*
 * channel.h: one session of the service protocol on a libevent base: the
 * Noise handshake, certificates both ways, then records.
 *
 * A channel never blocks and never buffers without bound: channel_send()
 * queues, channel_queued() tells how much, and `drained` calls when it is
 * worth going on.  Received records are handed over one at a time; between
 * channel_pause() and channel_resume() the socket is not read, so that TCP
 * slows the other end down.
 */
#ifndef MUSTER_CHANNEL_H
#define MUSTER_CHANNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <event2/event.h>
#include <jansson.h>

#include "common/base/addr.h"
#include "common/base/err.h"
#include "common/net/cert.h"
#include "common/net/proto.h"
#include "common/net/token.h"

#define CHANNEL_HIGH_WATER (256 * 1024)	 /* stop feeding above */
#define CHANNEL_LOW_WATER  (64 * 1024)	 /* `drained` below */
#define CHANNEL_QUEUE_MAX  (1024 * 1024) /* channel_send refuses above */
#define CHANNEL_LINGER_S   5		 /* for a close to reach the peer */

struct channel;

/* Our side.  Borrowed by every channel; must outlive them. */
struct channel_identity {
	uint8_t secret[KEY_SIZE]; /* X25519 */
	uint8_t public[KEY_SIZE];
	uint8_t authority[KEY_SIZE]; /* Ed25519 public key */
	uint8_t cert[CERT_MAX];
	size_t cert_size; /* 0: not enrolled yet (joining) */
};

/*
 * Calls from the event loop, never from within a channel_ function.
 * `closed` comes exactly once and last, with NULL for an orderly end; the
 * channel is freed after it returns, never inside another callback.
 * channel_close() and channel_abort() from within any callback are legal, and
 * no callback but `closed` follows them.  `opened` and `drained` may be NULL.
 */
struct channel_handlers {
	/* Handshake done, peer verified.  A server learns it with the first
	 * record: whoever replays a first flight never gets here. */
	void (*opened)(struct channel *, void *arg);
	/* One record; body is borrowed for the call. */
	void (*record)(struct channel *, enum record_type, const uint8_t *body,
	    size_t size, void *arg);
	/* Output fell to CHANNEL_LOW_WATER after being above. */
	void (*drained)(struct channel *, void *arg);
	void (*closed)(struct channel *, const struct err *why, void *arg);
};

/* ---- client side ------------------------------------------------------ */

/*
 * IK: connects to a node whose key the roster tells.  timeout_ms covers
 * connect and handshake.  NULL is a failure of this machine; whatever the
 * network or the node does wrong comes through `closed`.
 */
struct channel *channel_connect(struct event_base *, const struct addr *,
    const struct channel_identity *, const uint8_t node_key[KEY_SIZE],
    int timeout_ms, const struct channel_handlers *, void *arg, struct err *);

/* IKpsk2: joins with a token (its master_key, id and psk). */
struct channel *channel_connect_join(struct event_base *, const struct addr *,
    const struct channel_identity *, const struct token *, int timeout_ms,
    const struct channel_handlers *, void *arg, struct err *);

/* ---- server side ------------------------------------------------------ */

/*
 * What a server decides about a peer; borrowed, must outlive its channels.
 * Each call returns 0 or -1 with an err that is sent to the peer inside the
 * handshake, encrypted, before closing.  They decide only: a replayed first
 * flight asks them too.
 */
struct channel_policy {
	int handshake_ms; /* from accept to `opened`; 0: PROTO_HANDSHAKE_S */
	/* After the peer's certificate is verified: revoked? */
	int (*admit)(const struct cert *peer, const struct addr *from,
	    void *arg, struct err *);
	/* A join: fills psk for a token id, where it can also when it
	 * refuses (an expired token).  NULL: nobody can join here. */
	int (*join_psk)(const uint8_t id[TOKEN_ID_SIZE],
	    const struct addr *from, uint8_t psk[KEY_SIZE], void *arg,
	    struct err *);
	void *arg;
};

/* Takes an accepted, non-blocking socket (closes it also on failure). */
struct channel *channel_accept(struct event_base *, int fd,
    const struct addr *from, const struct channel_identity *,
    const struct channel_policy *, const struct channel_handlers *, void *arg,
    struct err *);

/* ---- both ------------------------------------------------------------- */

/* ERR_BUSY above CHANNEL_QUEUE_MAX; ERR_UNREACHABLE once closed; a body that
 * record_spec() does not allow is ERR_PROTOCOL. */
int channel_send(struct channel *, enum record_type, const void *body,
    size_t size, struct err *);
/* Steals the reference. */
int channel_send_json(struct channel *, enum record_type, json_t *,
    struct err *);
int channel_send_error(struct channel *, const struct err *);

size_t channel_queued(const struct channel *); /* bytes not yet sent */
void channel_pause(struct channel *);
void channel_resume(struct channel *);

/* Sends what is queued, then closes; all within CHANNEL_LINGER_S. */
void channel_close(struct channel *);
/* At once; *why (may be NULL) is what `closed` is told. */
void channel_abort(struct channel *, const struct err *why);

/* The verified peer, from `opened` on; NULL for one that joins. */
const struct cert *channel_peer(const struct channel *);
const uint8_t *channel_peer_key(const struct channel *);
/* The token id of a joining peer, else NULL. */
const uint8_t *channel_join_id(const struct channel *);
const struct addr *channel_addr(const struct channel *);
bool channel_is_open(const struct channel *);
/* Whether the peer's machine has fallen silent for half a minute under what
 * we sent.  Ask now and then, and abort; an idle one is noticed without. */
bool channel_is_lost(const struct channel *);
/* Client side: the server's wall clock minus ours at the handshake, ms. */
int64_t channel_skew_ms(const struct channel *);
uint64_t channel_bytes_in(const struct channel *);
uint64_t channel_bytes_out(const struct channel *);

#endif
