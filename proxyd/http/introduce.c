/* introduce.c: see introduce.h. */
#include "proxyd/http/introduce.h"

#include <sys/socket.h>
#include <string.h>

#include "proxyd/http/exchange.h"
#include "proxyd/http/node_conn.h"
#include "proxyd/http/proxied.h"
#include "proxyd/http/proxy_header.h"
#include "proxyd/process/dial.h"
#include "proxyd/tls/conn.h"

static const enum proxy_version versions[] = {
	[SNAP_PROXY_OFF] = PROXY_OFF,
	[SNAP_PROXY_V1] = PROXY_V1,
	[SNAP_PROXY_V2] = PROXY_V2,
};

static struct addr source(const struct exchange *);
static struct addr destination(const struct client *);
static void tell_tls(const struct client *, struct proxy_header *);

uint64_t
introduce_key(const struct exchange *x)
{
	if (x->role->proxy == SNAP_PROXY_OFF)
		return 0;
	return balance_hash(x->client_ip, strlen(x->client_ip)) | 1;
}

size_t
introduce_write(const struct exchange *x, char *out, size_t room)
{
	struct proxy_header h;

	if (x->role->proxy == SNAP_PROXY_OFF || x->node->reused)
		return 0;
	h = (struct proxy_header){ .secure = x->client->secure };
	h.from = source(x);
	h.to = destination(x->client);
	/* The same to a node as "unknown", which Apache does not take. */
	if (h.from.len == 0 && x->role->proxy == SNAP_PROXY_V1)
		dial_ends(x->node->s.fd, &h.from, &h.to);
	tell_tls(x->client, &h);
	return proxy_header_write(out, room, versions[x->role->proxy], &h);
}

/* Whom the request is for.  Of somebody behind a trusted peer the port is not
 * known; and what comes over a Unix socket has no address. */
static struct addr
source(const struct exchange *x)
{
	struct addr a = { .len = 0 };
	struct err ignored;

	if (x->client_ip != x->client->ip)
		addr_parse(x->client_ip, 0, &a, &ignored);
	else if (x->client->peer.u.sa.sa_family != AF_UNIX)
		a = x->client->peer;
	return a;
}

/* Where it had connected. */
static struct addr
destination(const struct client *c)
{
	struct addr ours;

	if (c->proxied != NULL && c->proxied->to.len != 0)
		return c->proxied->to;
	dial_ends(c->s.fd, &ours, NULL);
	return ours;
}

static struct proxy_text
text(const char *s)
{
	return (struct proxy_text){ s, s == NULL ? 0 : strlen(s) };
}

/* Of TLS that ended before us only what we were told. */
static void
tell_tls(const struct client *c, struct proxy_header *h)
{
	const struct tls_conn *t = c->s.tls;

	if (t == NULL) {
		if (c->proxied != NULL)
			h->authority = (struct proxy_text){ c->proxied->text +
				    c->proxied->id_len,
				c->proxied->host_len };
		return;
	}
	h->alpn.len = tls_alpn(t, &h->alpn.text);
	h->authority = text(tls_server_name(t));
	h->tls_version = text(tls_version(t));
	h->tls_cipher = text(tls_cipher(t));
}
