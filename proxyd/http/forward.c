/* forward.c: see forward.h. */
#include "proxyd/http/forward.h"

#include <stdio.h>

#include "proxyd/http/writer.h"
#include "proxyd/process/snapshot.h"

/* What becomes of a field.  DROP: of one hop only, or never believed; OURS:
 * written anew below, if at all. */
enum policy { PASS, DROP, OURS };

static const unsigned char request_policy[FIELD_N] = {
	[FIELD_HOST] = OURS,
	[FIELD_CONNECTION] = OURS,
	[FIELD_CONTENT_LENGTH] = OURS,
	[FIELD_TRANSFER_ENCODING] = OURS,
	[FIELD_EXPECT] = OURS,
	[FIELD_UPGRADE] = OURS,
	[FIELD_X_FORWARDED_FOR] = OURS,
	[FIELD_X_FORWARDED_PROTO] = OURS,
	[FIELD_X_FORWARDED_HOST] = OURS,
	[FIELD_FORWARDED] = OURS,
	[FIELD_X_REAL_IP] = OURS,
	[FIELD_X_REQUEST_ID] = OURS,
	[FIELD_MAX_FORWARDS] = OURS,
	[FIELD_KEEP_ALIVE] = DROP,
	[FIELD_PROXY_CONNECTION] = DROP,
	[FIELD_PROXY] = DROP, /* becomes HTTP_PROXY in CGI: CVE-2016-5385 */
	[FIELD_TE] = DROP,
	[FIELD_TRAILER] = DROP, /* trailers are not passed on */
	[FIELD_HTTP2_SETTINGS] = DROP,
	[FIELD_X_MUSTER_WHY] = DROP,
};

/* clang-format off */
#define RESPONSE_POLICY                    \
	[FIELD_CONNECTION] = OURS,         \
	[FIELD_CONTENT_LENGTH] = OURS,     \
	[FIELD_TRANSFER_ENCODING] = OURS,  \
	[FIELD_UPGRADE] = OURS,            \
	[FIELD_KEEP_ALIVE] = DROP,         \
	[FIELD_PROXY_CONNECTION] = DROP,   \
	[FIELD_TE] = DROP,                 \
	[FIELD_TRAILER] = DROP,            \
	[FIELD_X_MUSTER_WHY] = DROP,       \
	/* For us: see may_put_away(). */  \
	[FIELD_X_ACCEL_BUFFERING] = DROP
/* clang-format on */

static const unsigned char response_policy[FIELD_N] = { RESPONSE_POLICY };

/* Of one that goes out compressed for some. */
static const unsigned char varying_policy[FIELD_N] = {
	RESPONSE_POLICY,
	[FIELD_ACCEPT_RANGES] = OURS,
	[FIELD_ETAG] = OURS,
	[FIELD_VARY] = OURS,
};

/* What decides whether a field goes on. */
struct passing {
	const unsigned char *policy;
	const struct connection *connection;
	bool believed; /* X-Forwarded-* of any kind */
	bool hsts;     /* is ours to say */
};

static void put_fields(struct writer *, const struct fields *, const char *base,
    const struct passing *);
static void put_target(struct writer *, const struct request *,
    const char *base);
static void put_request_framing(struct writer *, const struct request *,
    const char *base);
static void put_client(struct writer *, const struct forward_request *);
static void put_variant(struct writer *, const struct forward_response *);
static void put_response_framing(struct writer *,
    const struct forward_response *);

static void
put_span(struct writer *w, const char *base, struct span s)
{
	put(w, base + s.off, s.len);
}

static void
put_value(struct writer *w, const char *base, const struct field *f)
{
	put(w, base + f->value, f->value_len);
}

size_t
forward_request(char *out, size_t room, const struct forward_request *fr)
{
	const struct request *r = fr->req;
	struct writer w;

	writer_init(&w, out, room);
	put_span(&w, fr->base, r->method_name);
	PUT(&w, " ");
	put_target(&w, r, fr->base);
	PUT(&w, " HTTP/1.1\r\nHost: ");
	if (r->authority.len > 0)
		put_span(&w, fr->base, r->authority);
	else
		put_text(&w, fr->host);
	PUT(&w, "\r\n");
	put_fields(&w, &r->fields, fr->base,
	    &(struct passing){ request_policy, &r->connection, fr->trusted,
		false });
	put_request_framing(&w, r, fr->base);
	put_client(&w, fr);
	PUT(&w, "Via: 1.");
	put(&w, r->minor == 0 ? "0 " : "1 ", 2);
	put_text(&w, fr->via);
	PUT(&w, "\r\nX-Request-Id: ");
	put(&w, fr->id, fr->id_len);
	PUT(&w, "\r\n\r\n");
	return writer_size(&w);
}

size_t
forward_response(char *out, size_t room, const struct forward_response *fr)
{
	const struct response *r = fr->res;
	struct writer w;

	writer_init(&w, out, room);
	PUT(&w, "HTTP/1.1 ");
	put_number(&w, r->status);
	PUT(&w, " ");
	put_span(&w, fr->base, r->reason);
	PUT(&w, "\r\n");
	put_fields(&w, &r->fields, fr->base,
	    &(struct passing){ fr->varies ? varying_policy : response_policy,
		&r->connection, true, fr->hsts });
	if (fr->varies)
		put_variant(&w, fr);
	if (r->status >= 200 || r->status == 101)
		put_response_framing(&w, fr);
	PUT(&w, "\r\n");
	return writer_size(&w);
}

/* --- fields */

static bool
same_word(const char *a, const char *b, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if ((a[i] | 0x20) != (b[i] | 0x20))
			return false;
	return true;
}

static bool
nominated(const struct fields *fs, const char *base, const struct field *it)
{
	const struct field *f = NULL;
	struct member m;

	while ((f = fields_find(fs, FIELD_CONNECTION, f)) != NULL) {
		const char *at = base + f->value, *end = at + f->value_len;

		while (field_member(&at, end, &m))
			if (m.len == it->name_len &&
			    same_word(m.text, base + it->name, m.len))
				return true;
	}
	return false;
}

/* X-Forwarded-Port and its like: frameworks believe them as they do those
 * that are written anew here. */
static bool
claims_forwarding(const struct field *f, const char *base)
{
	static const char prefix[] = "x-forwarded-";

	return f->id == FIELD_OTHER && f->name_len >= sizeof(prefix) - 1 &&
	    same_word(base + f->name, prefix, sizeof(prefix) - 1);
}

static bool
is_hsts(const struct field *f, const char *base)
{
	return f->id == FIELD_OTHER &&
	    field_is(base + f->name, f->name_len, "strict-transport-security");
}

/* Lines that are already what we would write, one behind the other, are
 * copied as one. */
static void
put_fields(struct writer *w, const struct fields *fs, const char *base,
    const struct passing *p)
{
	uint32_t from = 0, to = 0;

	for (uint32_t i = 0; i < fs->n; i++) {
		const struct field *f = &fs->list[i];

		if (p->policy[f->id] != PASS || (f->flags & FIELD_UNDERSCORE) ||
		    (!p->believed && claims_forwarding(f, base)) ||
		    (p->hsts && is_hsts(f, base)) ||
		    (p->connection->names_fields && nominated(fs, base, f)))
			continue;
		if ((f->flags & FIELD_CANONICAL) && f->name == to) {
			to = f->value + f->value_len + 2;
			continue;
		}
		put(w, base + from, to - from);
		if (f->flags & FIELD_CANONICAL) {
			from = f->name;
			to = f->value + f->value_len + 2;
			continue;
		}
		put(w, base + f->name, f->name_len);
		PUT(w, ": ");
		put_value(w, base, f);
		PUT(w, "\r\n");
		from = to = 0;
	}
	put(w, base + from, to - from);
}

/* --- a request's own lines */

static void
put_target(struct writer *w, const struct request *r, const char *base)
{
	if (r->target.star) {
		PUT(w, "*");
		return;
	}
	if (r->target.slash)
		PUT(w, "/");
	put_span(w, base, r->target.path);
}

static void
put_request_framing(struct writer *w, const struct request *r, const char *base)
{
	const struct field *f;

	if (r->body.kind == FRAMING_LENGTH) {
		PUT(w, "Content-Length: ");
		put_number(w, r->body.length);
		PUT(w, "\r\n");
	} else if (r->body.kind == FRAMING_CHUNKED) {
		PUT(w, "Transfer-Encoding: chunked\r\n");
	}
	if (r->expect)
		PUT(w, "Expect: 100-continue\r\n");
	if (r->upgrade != UPGRADE_NONE) {
		f = fields_find(&r->fields, FIELD_UPGRADE, NULL);
		PUT(w, "Connection: Upgrade\r\nUpgrade: ");
		put_value(w, base, f);
		PUT(w, "\r\n");
	}
	f = fields_find(&r->fields, FIELD_MAX_FORWARDS, NULL);
	if (f != NULL && r->method == METHOD_OPTIONS && f->value_len <= 9) {
		uint64_t n = 0;

		for (uint32_t i = 0; i < f->value_len; i++)
			n = n * 10 + (uint64_t)(base[f->value + i] - '0');
		PUT(w, "Max-Forwards: ");
		put_number(w, n > 0 ? n - 1 : 0);
		PUT(w, "\r\n");
	}
}

/* All values of a list field, joined; behind them a ", ". */
static void
put_list(struct writer *w, const struct fields *fs, const char *base,
    enum field_id id)
{
	const struct field *f = NULL;

	while ((f = fields_find(fs, id, f)) != NULL)
		if (f->value_len > 0) {
			put_value(w, base, f);
			PUT(w, ", ");
		}
}

/* A peer without an address is a word (RFC 7239, section 6.2), but behind
 * others it would only hide them: they are read from the right. */
static const char *
peer_or_word(const struct forward_request *fr)
{
	return fr->peer_ip != NULL ? fr->peer_ip : "unknown";
}

static void
put_forwarded(struct writer *w, const struct forward_request *fr)
{
	bool v6 = strchr(peer_or_word(fr), ':') != NULL;

	PUT(w, "Forwarded: ");
	put_list(w, &fr->req->fields, fr->base, FIELD_FORWARDED);
	put_text(w, v6 ? "for=\"[" : "for=");
	put_text(w, peer_or_word(fr));
	put_text(w, v6 ? "]\"\r\n" : "\r\n");
}

static void
put_forwarded_for(struct writer *w, const struct forward_request *fr)
{
	const char *start;

	PUT(w, "X-Forwarded-For: ");
	start = w->at;
	if (fr->trusted)
		put_list(w, &fr->req->fields, fr->base, FIELD_X_FORWARDED_FOR);
	if (fr->peer_ip == NULL && w->at > start)
		w->at -= 2; /* the ", " for the next one */
	else
		put_text(w, peer_or_word(fr));
	PUT(w, "\r\n");
}

/* The client, its scheme and the host it asked for. */
static void
put_client(struct writer *w, const struct forward_request *fr)
{
	const struct request *r = fr->req;
	const struct field *proto = NULL, *host = NULL;

	put_forwarded_for(w, fr);
	if (fr->trusted) {
		proto = fields_find(&r->fields, FIELD_X_FORWARDED_PROTO, NULL);
		host = fields_find(&r->fields, FIELD_X_FORWARDED_HOST, NULL);
	}
	PUT(w, "X-Forwarded-Proto: ");
	if (proto != NULL &&
	    field_is_token(fr->base + proto->value, proto->value_len))
		put_value(w, fr->base, proto);
	else
		put_text(w, fr->proto);
	PUT(w, "\r\nX-Forwarded-Host: ");
	if (host != NULL)
		put_value(w, fr->base, host);
	else if (r->authority.len > 0)
		put_span(w, fr->base, r->authority);
	else
		put_text(w, fr->host);
	PUT(w, "\r\nX-Real-IP: ");
	put_text(w, fr->client_ip != NULL ? fr->client_ip : "unknown");
	PUT(w, "\r\n");
	if (fr->trusted && fields_have(&r->fields, FIELD_FORWARDED))
		put_forwarded(w, fr);
}

/* --- a response's own lines */

static void
put_named(struct writer *w, const struct fields *fs, const char *base,
    enum field_id id, const char *name)
{
	const struct field *f = fields_find(fs, id, NULL);

	if (f == NULL)
		return;
	put_text(w, name);
	put_value(w, base, f);
	PUT(w, "\r\n");
}

/* In one line, as some caches read but one.  "*" says more than any name. */
static void
put_vary(struct writer *w, const struct fields *fs, const char *base)
{
	const struct field *f = NULL;
	struct member m;

	PUT(w, "Vary: ");
	if (fields_list(fs, base, FIELD_VARY, "*")) {
		PUT(w, "*\r\n");
		return;
	}
	while ((f = fields_find(fs, FIELD_VARY, f)) != NULL) {
		const char *at = base + f->value, *end = at + f->value_len;

		while (field_member(&at, end, &m)) {
			if (field_is(m.text, m.len, "accept-encoding"))
				continue;
			put(w, m.text, m.len);
			PUT(w, ", ");
		}
	}
	PUT(w, "Accept-Encoding\r\n");
}

/* A compressed body cannot be asked for in parts: its bytes may be others
 * next time.  So its tag is weak, too. */
static void
put_variant(struct writer *w, const struct forward_response *fr)
{
	const struct fields *fs = &fr->res->fields;
	const struct field *tag = fields_find(fs, FIELD_ETAG, NULL);
	bool strong =
	    tag != NULL && tag->value_len > 0 && fr->base[tag->value] == '"';

	if (fr->coding == NULL) {
		put_named(w, fs, fr->base, FIELD_ACCEPT_RANGES,
		    "Accept-Ranges: ");
	} else {
		PUT(w, "Content-Encoding: ");
		put_text(w, fr->coding);
		PUT(w, "\r\n");
	}
	put_named(w, fs, fr->base, FIELD_ETAG,
	    fr->weak && strong ? "ETag: W/" : "ETag: ");
	put_vary(w, fs, fr->base);
}

static void
put_response_framing(struct writer *w, const struct forward_response *fr)
{
	static const char *const connections[] = {
		[FORWARD_PERSIST] = "",
		[FORWARD_PERSIST_10] = "Connection: keep-alive\r\n",
		[FORWARD_CLOSE] = "Connection: close\r\n",
	};
	const struct response *r = fr->res;
	const struct field *f;

	if (r->status == 101) {
		f = fields_find(&r->fields, FIELD_UPGRADE, NULL);
		PUT(w, "Connection: Upgrade\r\nUpgrade: ");
		put_value(w, fr->base, f);
		PUT(w, "\r\n");
		return;
	}
	if (fr->chunked) {
		PUT(w, "Transfer-Encoding: chunked\r\n");
	} else if (fr->coding == NULL &&
	    (r->body.kind == FRAMING_LENGTH ||
		(r->length_seen && r->status != 204))) {
		PUT(w, "Content-Length: ");
		put_number(w, r->body.length);
		PUT(w, "\r\n");
	}
	if (!fields_have(&r->fields, FIELD_DATE)) {
		PUT(w, "Date: ");
		put_text(w, fr->date);
		PUT(w, "\r\n");
	}
	put_text(w, connections[fr->connection]);
	put_text(w, fr->extra);
}

/* --- who and how often */

/* The last member of a list that ends at *end; *end moves before it. */
static bool
last_member(const char *start, const char **end, struct member *m)
{
	const char *p = *end, *comma;

	while (p > start && (p[-1] == ' ' || p[-1] == '\t' || p[-1] == ','))
		p--;
	if (p == start)
		return false;
	comma = memrchr(start, ',', (size_t)(p - start));
	m->text = comma == NULL ? start : comma + 1;
	while (*m->text == ' ' || *m->text == '\t')
		m->text++;
	m->len = (size_t)(p - m->text);
	*end = comma == NULL ? start : comma;
	return true;
}

const char *
forward_client_ip(const struct request *r, const char *base,
    const struct snapshot *snap, const char *peer_ip, bool trusted, char *buf,
    size_t size)
{
	const char *found = peer_ip;

	if (!trusted || !fields_have(&r->fields, FIELD_X_FORWARDED_FOR))
		return peer_ip;
	for (uint32_t i = r->fields.n; i-- > 0;) {
		const struct field *f = &r->fields.list[i];
		const char *start = base + f->value,
			   *end = start + f->value_len;
		struct member m;

		if (f->id != FIELD_X_FORWARDED_FOR)
			continue;
		while (last_member(start, &end, &m)) {
			struct addr a;
			struct err e;

			if (m.len >= size)
				return found;
			memcpy(buf, m.text, m.len);
			buf[m.len] = '\0';
			if (addr_parse(buf, 0, &a, &e) == -1)
				return peer_ip;
			addr_format_ip(&a, buf);
			found = buf;
			if (!snapshot_trusts(snap, &a))
				return buf;
		}
	}
	return found;
}

unsigned
forward_hops(const struct request *r, const char *base, const char *via)
{
	const struct field *f = NULL;
	size_t len = strlen(via);
	unsigned n = 0;
	struct member m;

	while ((f = fields_find(&r->fields, FIELD_VIA, f)) != NULL) {
		const char *at = base + f->value, *end = at + f->value_len;

		while (field_member(&at, end, &m)) {
			const char *by = memchr(m.text, ' ', m.len);

			/* "1.1 name", perhaps with a comment behind. */
			if (by != NULL &&
			    (size_t)(m.text + m.len - ++by) >= len &&
			    memcmp(by, via, len) == 0 &&
			    (by + len == m.text + m.len || by[len] == ' '))
				n++;
		}
	}
	return n;
}
