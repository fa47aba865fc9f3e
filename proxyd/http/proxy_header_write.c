/* proxy_header_write.c: see proxy_header.h. */
#include "proxyd/http/proxy_header.h"

#include <assert.h>
#include <stdint.h>

#include "proxyd/http/writer.h"

static void write_v1(struct writer *, const struct proxy_header *,
    const struct addr *to);
static void write_v2(struct writer *, const struct proxy_header *,
    const struct addr *to);
static struct addr destination(const struct proxy_header *);

size_t
proxy_header_write(char *out, size_t room, enum proxy_version version,
    const struct proxy_header *h)
{
	struct addr to = destination(h);
	struct writer w;

	assert(room >= PROXY_HEADER_OUT);
	writer_init(&w, out, room);
	if (version == PROXY_V1)
		write_v1(&w, h, &to);
	else
		write_v2(&w, h, &to);
	return writer_size(&w);
}

/* Both addresses are of one family.  The client's is what nodes go by, so it
 * stays as it is; of a destination of another family only the port is told. */
static struct addr
destination(const struct proxy_header *h)
{
	struct addr to = h->from;

	if (h->to.len != 0 && h->to.u.sa.sa_family == h->from.u.sa.sa_family)
		return h->to;
	if (to.u.sa.sa_family == AF_INET)
		to.u.in.sin_addr.s_addr = INADDR_ANY;
	else
		to.u.in6.sin6_addr = in6addr_any;
	addr_set_port(&to, h->to.len != 0 ? addr_port(&h->to) : 0);
	return to;
}

static void
write_v1(struct writer *w, const struct proxy_header *h, const struct addr *to)
{
	char from_ip[ADDR_TEXT_MAX], to_ip[ADDR_TEXT_MAX];

	if (h->from.len == 0) {
		PUT(w, "PROXY UNKNOWN\r\n");
		return;
	}
	addr_format_ip(&h->from, from_ip);
	addr_format_ip(to, to_ip);
	put_text(w,
	    h->from.u.sa.sa_family == AF_INET ? "PROXY TCP4 " : "PROXY TCP6 ");
	put_text(w, from_ip);
	PUT(w, " ");
	put_text(w, to_ip);
	PUT(w, " ");
	put_number(w, addr_port(&h->from));
	PUT(w, " ");
	put_number(w, addr_port(to));
	PUT(w, "\r\n");
}

/* --- version 2 */

static void
put_be16(struct writer *w, size_t n)
{
	put(w, (char[]){ (char)(n >> 8), (char)n }, 2);
}

static void
put_addresses(struct writer *w, const struct addr *from, const struct addr *to)
{
	if (from->u.sa.sa_family == AF_INET) {
		put(w, (const char *)&from->u.in.sin_addr, 4);
		put(w, (const char *)&to->u.in.sin_addr, 4);
	} else {
		put(w, (const char *)&from->u.in6.sin6_addr, 16);
		put(w, (const char *)&to->u.in6.sin6_addr, 16);
	}
	put_be16(w, addr_port(from));
	put_be16(w, addr_port(to));
}

static void
put_tlv(struct writer *w, enum proxy_tlv type, struct proxy_text t)
{
	if (t.len == 0 || t.len > PROXY_NAME_MAX)
		return;
	put(w, (char[]){ (char)type }, 1);
	put_be16(w, t.len);
	put(w, t.text, t.len);
}

/* Writes the 16-bit length of what follows its place. */
static void
set_length(struct writer *w, char *place)
{
	size_t n = (size_t)(w->at - place) - 2;

	place[0] = (char)(n >> 8);
	place[1] = (char)n;
}

static void
put_ssl(struct writer *w, const struct proxy_header *h)
{
	char *length;

	put(w, (char[]){ PROXY_TLV_SSL }, 1);
	length = w->at;
	put_be16(w, 0);
	put(w, (char[]){ PROXY_SSL_CLIENT }, 1);
	/* Not zero: no client's certificate was verified. */
	put(w, (char[]){ 0, 0, 0, 1 }, 4);
	put_tlv(w, PROXY_TLV_SSL_VERSION, h->tls_version);
	put_tlv(w, PROXY_TLV_SSL_CIPHER, h->tls_cipher);
	set_length(w, length);
}

/* A client without an IP address goes as LOCAL: what the family "unspecified"
 * is there for, Apache refuses. */
static void
write_v2(struct writer *w, const struct proxy_header *h, const struct addr *to)
{
	bool told = h->from.len != 0;
	bool v4 = h->from.u.sa.sa_family == AF_INET;
	char *length;

	PUT(w, PROXY_V2_SIGNATURE);
	put(w, (char[]){ told ? 0x21 : 0x20 }, 1);
	put(w, (char[]){ !told ? 0x00 : v4 ? 0x11 : 0x21 }, 1);
	length = w->at;
	put_be16(w, 0);
	if (told) {
		put_addresses(w, &h->from, to);
		put_tlv(w, PROXY_TLV_ALPN, h->alpn);
		put_tlv(w, PROXY_TLV_AUTHORITY, h->authority);
		if (h->id.len <= PROXY_ID_MAX)
			put_tlv(w, PROXY_TLV_UNIQUE_ID, h->id);
		if (h->secure)
			put_ssl(w, h);
	}
	set_length(w, length);
}
