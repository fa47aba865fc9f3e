/* addr.c: see addr.h. */
#include "common/base/addr.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "common/base/text.h"

static int split_port(const char *text, char *host, size_t size,
    const char **port);
static void addr_bytes(const struct addr *, uint8_t bytes[16]);
static char *put_ip(char *, const struct addr *);
static char *put_decimal(char *, unsigned n);
static const uint8_t v4_mapped[12] = { [10] = 0xff, [11] = 0xff };

int
addr_parse(const char *text, uint16_t default_port, struct addr *a,
    struct err *e)
{
	char host[INET6_ADDRSTRLEN];
	struct addr out = { .len = 0 };
	const char *port;
	uint64_t number = default_port;

	if (split_port(text, host, sizeof(host), &port) == -1)
		goto bad;
	if (port != NULL &&
	    text_parse_u64("port", port, 1, 65535, &number, e) == -1)
		return -1;
	if (inet_pton(AF_INET, host, &out.u.in.sin_addr) == 1) {
		out.u.in.sin_family = AF_INET;
		out.len = sizeof(out.u.in);
	} else if (inet_pton(AF_INET6, host, &out.u.in6.sin6_addr) == 1) {
		out.u.in6.sin6_family = AF_INET6;
		out.len = sizeof(out.u.in6);
	} else {
		goto bad;
	}
	addr_set_port(&out, (uint16_t)number);
	*a = out;
	return 0;
bad:
	return err_set(e, ERR_USAGE,
	    "'%.64s' is not an IP address (1.2.3.4, 1.2.3.4:80, ::1 or "
	    "[::1]:80)",
	    text);
}

int
addr_from_sockaddr(const struct sockaddr *sa, socklen_t len, struct addr *a)
{
	if (len > sizeof(a->u) ||
	    (sa->sa_family != AF_INET && sa->sa_family != AF_INET6))
		return -1;
	memset(a, 0, sizeof(*a));
	memcpy(&a->u, sa, len);
	a->len = len;
	return 0;
}

uint16_t
addr_port(const struct addr *a)
{
	return ntohs(a->u.sa.sa_family == AF_INET ? a->u.in.sin_port :
						    a->u.in6.sin6_port);
}

void
addr_set_port(struct addr *a, uint16_t port)
{
	if (a->u.sa.sa_family == AF_INET)
		a->u.in.sin_port = htons(port);
	else
		a->u.in6.sin6_port = htons(port);
}

void
addr_format(const struct addr *a, char buf[ADDR_TEXT_MAX])
{
	bool v6 = a->u.sa.sa_family == AF_INET6;
	char *p = buf;

	if (v6)
		*p++ = '[';
	p = put_ip(p, a);
	if (v6)
		*p++ = ']';
	*p++ = ':';
	*put_decimal(p, addr_port(a)) = '\0';
}

void
addr_format_ip(const struct addr *a, char buf[ADDR_IP_MAX])
{
	*put_ip(buf, a) = '\0';
}

const char *
addr_unix_path(const char *text)
{
	return strncmp(text, "unix:", 5) == 0 ? text + 5 : NULL;
}

int
addr_unix_check(const char *text, struct err *e)
{
	const char *path = addr_unix_path(text);
	size_t len = path == NULL ? 0 : strlen(path);

	if (len < 2 || *path != '/' || !text_is_utf8(path, len))
		return err_set(e, ERR_USAGE,
		    "'%.64s' is not unix: and an absolute path", text);
	if (len >= ADDR_UNIX_MAX)
		return err_set(e, ERR_USAGE,
		    "'%.64s...' is too long: a socket's path has at most %d "
		    "bytes",
		    text, ADDR_UNIX_MAX - 1);
	for (; *path != '\0'; path++)
		if ((unsigned char)*path <= ' ' || *path == 0x7f ||
		    *path == ',')
			return err_set(e, ERR_USAGE,
			    "'%.64s' has a space, comma or control character",
			    text);
	return 0;
}

int
addr_place(const char *text, char place[ADDR_PLACE_MAX], struct err *e)
{
	struct addr a;

	if (addr_unix_path(text) != NULL) {
		if (addr_unix_check(text, e) == -1)
			return -1;
		snprintf(place, ADDR_PLACE_MAX, "%s", text);
		return 0;
	}
	if (addr_parse(text, 0, &a, e) == -1)
		return -1;
	addr_format_ip(&a, place);
	return 0;
}

bool
addr_same_ip(const struct addr *a, const struct addr *b)
{
	uint8_t x[16], y[16];

	addr_bytes(a, x);
	addr_bytes(b, y);
	return memcmp(x, y, sizeof(x)) == 0;
}

int
cidr_parse(const char *text, struct cidr *c, struct err *e)
{
	const char *slash = strchr(text, '/');
	char host[INET6_ADDRSTRLEN];
	struct cidr out;
	struct addr a;
	unsigned width;
	uint64_t bits;
	size_t len = slash != NULL ? (size_t)(slash - text) : strlen(text);

	if (len >= sizeof(host))
		goto bad;
	memcpy(host, text, len);
	host[len] = '\0';
	if (strpbrk(host, "[]") != NULL || addr_parse(host, 0, &a, e) == -1)
		goto bad;
	width = a.u.sa.sa_family == AF_INET ? 32 : 128;
	if ((strchr(host, ':') != NULL) != (width == 128)) /* a port */
		goto bad;
	bits = width;
	if (slash != NULL &&
	    text_parse_u64("prefix", slash + 1, 0, width, &bits, e) == -1)
		goto bad;
	addr_bytes(&a, out.bytes);
	out.bits = (unsigned)bits + (128 - width);
	for (unsigned i = out.bits; i < 128; i++)
		if (out.bytes[i / 8] & (0x80 >> i % 8))
			return err_set(e, ERR_USAGE,
			    "'%.64s' has address bits behind its prefix", text);
	*c = out;
	return 0;
bad:
	return err_set(e, ERR_USAGE,
	    "'%.64s' is not an address range like 10.0.0.0/8 or fd00::/8",
	    text);
}

bool
cidr_contains(const struct cidr *c, const struct addr *a)
{
	uint8_t ip[16];
	unsigned whole = c->bits / 8, rest = c->bits % 8;

	addr_bytes(a, ip);
	if (memcmp(ip, c->bytes, whole) != 0)
		return false;
	return rest == 0 ||
	    ((ip[whole] ^ c->bytes[whole]) & (0xff00 >> rest) & 0xff) == 0;
}

/* Splits "host:port" and "[v6]:port"; a bare IPv6 address has no port. */
static int
split_port(const char *text, char *host, size_t size, const char **port)
{
	const char *start = text, *end, *colon = strchr(text, ':');

	*port = NULL;
	if (*text == '[') {
		start = text + 1;
		if ((end = strchr(start, ']')) == NULL)
			return -1;
		if (end[1] == ':')
			*port = end + 2;
		else if (end[1] != '\0')
			return -1;
		/* Brackets are for IPv6 only. */
		if (memchr(start, ':', (size_t)(end - start)) == NULL)
			return -1;
	} else if (colon != NULL && strchr(colon + 1, ':') == NULL) {
		end = colon;
		*port = colon + 1;
	} else {
		end = text + strlen(text);
	}
	if ((size_t)(end - start) >= size)
		return -1;
	memcpy(host, start, (size_t)(end - start));
	host[end - start] = '\0';
	return 0;
}

static void
addr_bytes(const struct addr *a, uint8_t bytes[16])
{
	if (a->u.sa.sa_family == AF_INET) {
		memcpy(bytes, v4_mapped, sizeof(v4_mapped));
		memcpy(bytes + 12, &a->u.in.sin_addr, 4);
	} else {
		memcpy(bytes, &a->u.in6.sin6_addr, 16);
	}
}

/* By hand: the C library's way through printf costs a listing of many nodes
 * a tenth of its time.  Returns the end. */
static char *
put_ip(char *p, const struct addr *a)
{
	if (a->u.sa.sa_family == AF_INET) {
		uint32_t ip = ntohl(a->u.in.sin_addr.s_addr);

		for (int shift = 24; shift >= 0; shift -= 8) {
			p = put_decimal(p, ip >> shift & 0xff);
			*p++ = '.';
		}
		return p - 1;
	}
	if (inet_ntop(a->u.sa.sa_family, &a->u.in6.sin6_addr, p,
		INET6_ADDRSTRLEN) != NULL)
		return p + strlen(p);
	*p = '?';
	return p + 1;
}

static char *
put_decimal(char *p, unsigned n)
{
	char digits[10];
	size_t i = sizeof(digits);

	do
		digits[--i] = (char)('0' + n % 10);
	while ((n /= 10) != 0);
	return mempcpy(p, digits + i, sizeof(digits) - i);
}
