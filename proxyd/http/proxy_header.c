/* proxy_header.c: see proxy_header.h. */
#include "proxyd/http/proxy_header.h"

#include <arpa/inet.h>
#include <stdint.h>
#include <string.h>

#include "common/base/io.h"
#include "proxyd/http/crc32c.h"

#define V1_PREFIX "PROXY "
#define V1_MAX	  107 /* the longest line, with its CRLF */

/* The second half of a byte is the transport; which one does not matter. */
enum family {
	FAMILY_NONE = 0x0,
	FAMILY_V4 = 0x1,
	FAMILY_V6 = 0x2,
	FAMILY_UNIX = 0x3
};

static const struct {
	uint8_t size; /* of both addresses, with ports */
	uint8_t transports;
} families[] = {
	[FAMILY_NONE] = { 0, 0 },
	[FAMILY_V4] = { 12, 2 },
	[FAMILY_V6] = { 36, 2 },
	[FAMILY_UNIX] = { 216, 2 },
};

static enum proxy_read read_v1(const char *, size_t n, struct proxy_header *,
    size_t *size);
static bool parse_line(char *line, struct proxy_header *);
static enum proxy_read read_v2(const char *, size_t n, struct proxy_header *,
    size_t *size);
static bool parse_block(const char *bytes, size_t size, struct proxy_header *);
static bool take_tlvs(const char *, size_t at, size_t size,
    struct proxy_header *);
static void unmap(struct addr *);

enum proxy_read
proxy_header_read(const char *bytes, size_t n, struct proxy_header *out,
    size_t *size)
{
	static const struct {
		const char *text;
		size_t len;
		enum proxy_read (*read)(const char *, size_t,
		    struct proxy_header *, size_t *);
	} starts[] = {
		{ V1_PREFIX, sizeof(V1_PREFIX) - 1, read_v1 },
		{ PROXY_V2_SIGNATURE, sizeof(PROXY_V2_SIGNATURE) - 1, read_v2 },
	};

	for (size_t i = 0; i < nitems(starts); i++) {
		size_t len = n < starts[i].len ? n : starts[i].len;
		struct proxy_header h = { .secure = false };
		enum proxy_read r;

		if (memcmp(bytes, starts[i].text, len) != 0)
			continue;
		if (n < starts[i].len)
			return PROXY_READ_MORE;
		if ((r = starts[i].read(bytes, n, &h, size)) == PROXY_READ_DONE)
			*out = h;
		return r;
	}
	return PROXY_READ_BAD;
}

/* --- version 1 */

static enum proxy_read
read_v1(const char *bytes, size_t n, struct proxy_header *h, size_t *size)
{
	size_t window = n < V1_MAX ? n : V1_MAX, len;
	const char *lf = memchr(bytes, '\n', window);
	char line[V1_MAX + 1];

	if (lf == NULL)
		return window == V1_MAX ? PROXY_READ_BAD : PROXY_READ_MORE;
	len = (size_t)(lf - bytes) - 1;
	/* No other CR, nor a NUL, that would end the line for somebody else. */
	if (lf[-1] != '\r' || memchr(bytes, '\r', len) != NULL ||
	    memchr(bytes, '\0', len) != NULL)
		return PROXY_READ_BAD;
	memcpy(line, bytes, len);
	line[len] = '\0';
	if (!parse_line(line + sizeof(V1_PREFIX) - 1, h))
		return PROXY_READ_BAD;
	*size = len + 2;
	return PROXY_READ_DONE;
}

/* The word at *at, which ends there and at a space; NULL: none is left. */
static char *
next_word(char **at)
{
	char *word = *at, *space;

	if (word == NULL || *word == '\0' || *word == ' ')
		return NULL;
	if ((space = strchr(word, ' ')) != NULL)
		*space++ = '\0';
	*at = space;
	return word;
}

static bool
parse_ip(const char *text, int family, struct addr *a)
{
	struct addr out = { .len = 0 };
	bool v4 = family == AF_INET;

	/* It takes no leading zeros, as the specification wants. */
	if (text == NULL ||
	    inet_pton(family, text,
		v4 ? (void *)&out.u.in.sin_addr :
		     (void *)&out.u.in6.sin6_addr) != 1)
		return false;
	out.u.sa.sa_family = (sa_family_t)family;
	out.len = v4 ? sizeof(out.u.in) : sizeof(out.u.in6);
	*a = out;
	return true;
}

/* 0 to 65535 in decimal, no leading zeros. */
static bool
parse_port(const char *text, struct addr *a)
{
	uint32_t port = 0;
	size_t n = text == NULL ? 0 : strlen(text);

	if (n == 0 || n > 5 || (n > 1 && *text == '0'))
		return false;
	for (; *text != '\0'; text++) {
		if (*text < '0' || *text > '9')
			return false;
		port = port * 10 + (uint32_t)(*text - '0');
	}
	if (port > UINT16_MAX)
		return false;
	addr_set_port(a, (uint16_t)port);
	return true;
}

/* "TCP4 1.2.3.4 5.6.7.8 1 80", "UNKNOWN" and anything. */
static bool
parse_line(char *line, struct proxy_header *h)
{
	const char *protocol = next_word(&line);
	int family = AF_INET;

	if (protocol == NULL)
		return false;
	if (strcmp(protocol, "UNKNOWN") == 0)
		return true;
	if (strcmp(protocol, "TCP6") == 0)
		family = AF_INET6;
	else if (strcmp(protocol, "TCP4") != 0)
		return false;
	if (!parse_ip(next_word(&line), family, &h->from) ||
	    !parse_ip(next_word(&line), family, &h->to) ||
	    !parse_port(next_word(&line), &h->from) ||
	    !parse_port(next_word(&line), &h->to) || line != NULL)
		return false;
	unmap(&h->from);
	unmap(&h->to);
	return true;
}

/* --- version 2 */

static uint8_t
byte_at(const char *p)
{
	return (uint8_t)*p;
}

static size_t
be16(const char *p)
{
	return (size_t)byte_at(p) << 8 | byte_at(p + 1);
}

static uint32_t
be32(const char *p)
{
	return (uint32_t)be16(p) << 16 | (uint32_t)be16(p + 2);
}

static enum proxy_read
read_v2(const char *bytes, size_t n, struct proxy_header *h, size_t *size)
{
	enum { VERSION = 0x20, LOCAL = 0x20, PROXY = 0x21 };
	size_t all;

	/* Each byte is refused as soon as it is there. */
	if (n > 12 && byte_at(bytes + 12) != LOCAL &&
	    byte_at(bytes + 12) != PROXY)
		return PROXY_READ_BAD;
	if (n < PROXY_V2_FIXED)
		return PROXY_READ_MORE;
	all = PROXY_V2_FIXED + be16(bytes + 14);
	if (all > PROXY_HEADER_MAX)
		return PROXY_READ_BAD;
	if (n < all)
		return PROXY_READ_MORE;
	/* Of a LOCAL connection's block nothing counts, not even its form. */
	if (byte_at(bytes + 12) == PROXY && !parse_block(bytes, all, h))
		return PROXY_READ_BAD;
	*size = all;
	return PROXY_READ_DONE;
}

static void
take_v4(const char *p, const char *port, struct addr *a)
{
	*a =
	    (struct addr){ .u.in.sin_family = AF_INET, .len = sizeof(a->u.in) };
	memcpy(&a->u.in.sin_addr, p, 4);
	memcpy(&a->u.in.sin_port, port, 2);
}

static void
take_v6(const char *p, const char *port, struct addr *a)
{
	*a = (struct addr){ .u.in6.sin6_family = AF_INET6,
		.len = sizeof(a->u.in6) };
	memcpy(&a->u.in6.sin6_addr, p, 16);
	memcpy(&a->u.in6.sin6_port, port, 2);
	unmap(a);
}

/* The family, the addresses and what stands behind them. */
static bool
parse_block(const char *bytes, size_t size, struct proxy_header *h)
{
	const char *p = bytes + PROXY_V2_FIXED;
	unsigned family = byte_at(bytes + 13) >> 4;
	unsigned transport = byte_at(bytes + 13) & 15;

	if (family >= nitems(families) ||
	    transport > families[family].transports ||
	    (transport == 0) != (family == FAMILY_NONE) ||
	    size - PROXY_V2_FIXED < families[family].size)
		return false;
	if (family == FAMILY_V4) {
		take_v4(p, p + 8, &h->from);
		take_v4(p + 4, p + 10, &h->to);
	} else if (family == FAMILY_V6) {
		take_v6(p, p + 32, &h->from);
		take_v6(p + 16, p + 34, &h->to);
	}
	return take_tlvs(bytes, PROXY_V2_FIXED + families[family].size, size,
	    h);
}

/* One type, length, value at *at; false: it does not fit. */
static bool
next_tlv(const char *bytes, size_t *at, size_t size, uint8_t *type,
    struct proxy_text *value)
{
	if (size - *at < 3)
		return false;
	*type = byte_at(bytes + *at);
	value->len = be16(bytes + *at + 1);
	value->text = bytes + *at + 3;
	*at += 3;
	if (value->len > size - *at)
		return false;
	*at += value->len;
	return true;
}

/* Over the whole header, with its own four bytes as zeros. */
static bool
checksum_right(const char *bytes, size_t size, struct proxy_text value)
{
	static const char zeros[4];
	const char *behind = value.text + sizeof(zeros);
	uint32_t crc;

	if (value.len != sizeof(zeros))
		return false;
	crc = crc32c(0, bytes, (size_t)(value.text - bytes));
	crc = crc32c(crc, zeros, sizeof(zeros));
	crc = crc32c(crc, behind, (size_t)(bytes + size - behind));
	return crc == be32(value.text);
}

static bool
take_ssl(struct proxy_text value, struct proxy_header *h)
{
	size_t at = PROXY_SSL_FIXED;
	struct proxy_text v;
	uint8_t type;

	if (value.len < PROXY_SSL_FIXED)
		return false;
	h->secure = (byte_at(value.text) & PROXY_SSL_CLIENT) != 0;
	while (at < value.len) {
		if (!next_tlv(value.text, &at, value.len, &type, &v))
			return false;
		if (type == PROXY_TLV_SSL_VERSION)
			h->tls_version = v;
		else if (type == PROXY_TLV_SSL_CIPHER)
			h->tls_cipher = v;
	}
	return true;
}

static bool
take_tlvs(const char *bytes, size_t at, size_t size, struct proxy_header *h)
{
	struct proxy_text v;
	uint8_t type;

	while (at < size) {
		if (!next_tlv(bytes, &at, size, &type, &v))
			return false;
		switch (type) {
		case PROXY_TLV_ALPN:
			h->alpn = v;
			break;
		case PROXY_TLV_AUTHORITY:
			h->authority = v;
			break;
		case PROXY_TLV_UNIQUE_ID:
			if (v.len > PROXY_ID_MAX)
				return false;
			h->id = v;
			break;
		case PROXY_TLV_CRC32C:
			if (!checksum_right(bytes, size, v))
				return false;
			break;
		case PROXY_TLV_SSL:
			if (!take_ssl(v, h))
				return false;
			break;
		default: /* NOOP, and what others have agreed on */
			break;
		}
	}
	return true;
}

/* A sender that mixes families writes IPv4 as ::ffff:a.b.c.d; here it is
 * what it was, in logs and for limits, too. */
static void
unmap(struct addr *a)
{
	struct in6_addr ip = a->u.in6.sin6_addr;
	in_port_t port = a->u.in6.sin6_port;

	if (a->u.sa.sa_family != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&ip))
		return;
	*a = (struct addr){ .u.in.sin_family = AF_INET,
		.u.in.sin_port = port,
		.len = sizeof(a->u.in) };
	memcpy(&a->u.in.sin_addr, &ip.s6_addr[12], 4);
}
