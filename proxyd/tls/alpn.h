/*
 * alpn.h: which protocol is spoken behind a handshake, of those the client
 * names (RFC 7301).
 */
#ifndef MUSTER_TLS_ALPN_H
#define MUSTER_TLS_ALPN_H

#include <stddef.h>
#include <stdint.h>

/* Ours within the client's list, or NULL: none of ours, or it is no list.
 * Takes any bytes. */
const uint8_t *alpn_choose(const uint8_t *list, size_t size, uint8_t *len);

#endif
