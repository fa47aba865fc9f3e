/*
 * addr.h: IP addresses with ports, and CIDR ranges, as text and back.
 * IPv6 with a port is written [::1]:7400.  No name look-ups.
 *
 * A Unix socket is written unix:/PATH and stays text; as a peer it is the
 * family alone.
 */
#ifndef MUSTER_ADDR_H
#define MUSTER_ADDR_H

#include <sys/socket.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/base/err.h"

#define ADDR_TEXT_MAX  64
#define ADDR_IP_MAX    48		   /* an address alone */
#define ADDR_UNIX_MAX  108		   /* a socket's path, with its NUL */
#define ADDR_PLACE_MAX (ADDR_UNIX_MAX + 5) /* of an IP, or unix:/PATH */

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
void addr_format_ip(const struct addr *, char buf[ADDR_IP_MAX]);

/* The path in "unix:/PATH", in the text; NULL: it is an address of another
 * kind. */
const char *addr_unix_path(const char *text);
/* ERR_USAGE: a path that is relative, too long, or not plain text. */
int addr_unix_check(const char *text, struct err *);
/* One spelling of an IP (without its port) or of unix:/PATH, so that equal
 * ones are found equal. */
int addr_place(const char *text, char place[ADDR_PLACE_MAX], struct err *);

/* Whether both name the same host, ports aside (1.2.3.4 = ::ffff:1.2.3.4). */
bool addr_same_ip(const struct addr *, const struct addr *);

/* "10.0.0.0/8", "::/0", "1.2.3.4" (a single address).  Bits set behind the
 * prefix are refused. */
int cidr_parse(const char *text, struct cidr *, struct err *);
bool cidr_contains(const struct cidr *, const struct addr *);

#endif
