/*
 * limits.h: what strangers may cost before they have proved who they are.
 *
 * Each source address (an IPv6 /64 counts as one) has a bucket of handshakes
 * that refills steadily.  The table has a fixed size: a bucket that is full
 * again knows nothing, so the fullest one makes room for a new address.
 */
#ifndef NODEAGENT_LIMITS_H
#define NODEAGENT_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/addr.h"

#define LIMITS_BURST	 512  /* handshakes an address may begin at once, */
#define LIMITS_PER_S	 128  /* and for ever after */
#define LIMITS_HALF_OPEN 256  /* handshakes under way, all addresses */
#define LIMITS_SESSIONS	 2048 /* sessions of any kind */

#define LIMITS_SETS 128
#define LIMITS_WAYS 4

struct limits {
	uint8_t hash_key[16]; /* so that nobody can aim at one set */
	struct bucket {
		uint64_t source; /* 0: free */
		int64_t filled_ms;
		int64_t milli; /* thousandths of a handshake left */
	} buckets[LIMITS_SETS][LIMITS_WAYS];
};

void limits_init(struct limits *);

/* Whether this address may begin one more handshake now. */
bool limits_take(struct limits *, const struct addr *, int64_t now_ms);

#endif
