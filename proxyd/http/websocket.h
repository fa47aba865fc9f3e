/*
 * websocket.h: the one thing of RFC 6455 a proxy has to know: whether a
 * node's 101 answers the very handshake that was sent.
 */
#ifndef MUSTER_WEBSOCKET_H
#define MUSTER_WEBSOCKET_H

#include <stdbool.h>
#include <stddef.h>

/* Whether `accept` is the right Sec-WebSocket-Accept for `key`. */
bool websocket_accepts(const char *key, size_t key_len, const char *accept,
    size_t accept_len);

#endif
