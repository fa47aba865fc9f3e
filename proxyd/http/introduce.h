/*
 * introduce.h: to nodes that want it (the role's proxy_protocol), each
 * connection begins with a PROXY header that names its client.
 *
 * So such a connection is that client's alone: node_conn.c keeps it with the
 * client, not in the pool, and only for as long as a request is for whom the
 * header named (a trusted peer may ask for many).
 */
#ifndef MUSTER_INTRODUCE_H
#define MUSTER_INTRODUCE_H

#include <stddef.h>
#include <stdint.h>

struct exchange;

/* A number for whom a header would name; 0: the role's nodes get none. */
uint64_t introduce_key(const struct exchange *);

/* Writes the header of a new connection; its size, 0: there is none. */
size_t introduce_write(const struct exchange *, char *out, size_t room);

#endif
