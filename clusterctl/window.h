/*
 * window.h: how much of a stream may be under way to a node: what the
 * session queues here, and what the node has not taken yet (PROTO_WINDOW).
 */
#ifndef CLUSTERCTL_WINDOW_H
#define CLUSTERCTL_WINDOW_H

#include <stddef.h>
#include <stdint.h>

#include "common/net/channel.h"

struct window {
	uint64_t sent, taken; /* bytes of this request */
};

/* How many bytes may be sent now. */
size_t window_room(const struct window *, const struct channel *);

/* A TAKEN record has come. */
void window_taken(struct window *, const uint8_t body[8]);

#endif
