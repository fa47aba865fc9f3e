/*
 * addr.h: IP addresses with ports, and CIDR ranges, as text and back.
 * IPv6 with a port is written [::1]:7400.  No name look-ups.
 */
#ifndef MUSTER_ADDR_H
#define MUSTER_ADDR_H

#include <sys/socket.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/base/err.h"

#define ADDR_TEXT_MAX 64

struct addr {
	union {
		struct sockaddr sa;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
	} u;
	socklen_t len;
};

struct cidr {
	uint8_t bytes[16]; /* IPv4 as ::ffff:a.b.c.d */
	unsigned bits;	   /* 0..128 */
};

/* "1.2.3.4", "1.2.3.4:80", "::1", "[::1]", "[::1]:80"; port when absent:
 * default_port. */
int addr_parse(const char *text, uint16_t default_port, struct addr *,
    struct err *);

/* From accept(2), getpeername(2). */
int addr_from_sockaddr(const struct sockaddr *, socklen_t, struct addr *);

uint16_t addr_port(const struct addr *);
void addr_set_port(struct addr *, uint16_t port);

/* With the port; without it for addr_format_ip (no brackets then). */
void addr_format(const struct addr *, char buf[ADDR_TEXT_MAX]);
void addr_format_ip(const struct addr *, char buf[ADDR_TEXT_MAX]);

/* Whether both name the same host, ports aside (1.2.3.4 = ::ffff:1.2.3.4). */
bool addr_same_ip(const struct addr *, const struct addr *);

/* "10.0.0.0/8", "::/0", "1.2.3.4" (a single address).  Bits set behind the
 * prefix are refused. */
int cidr_parse(const char *text, struct cidr *, struct err *);
bool cidr_contains(const struct cidr *, const struct addr *);

#endif
