/* proxied.c: see proxied.h. */
#include "proxyd/http/proxied.h"

#include <sys/socket.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/log.h"
#include "proxyd/http/client.h"
#include "proxyd/http/engine_parts.h"
#include "proxyd/http/proxy_header.h"

#define COMPLAIN_MS 10000 /* a log line at most so often */

static bool take(struct client *, const struct proxy_header *, size_t size);

bool
proxied_expected(const struct engine *e, const struct addr *peer)
{
	const struct snap_peers *senders = &e->snap->head->senders;

	return snapshot_has_peers(senders) &&
	    snapshot_is_peer(e->snap, senders, peer);
}

/* Whether a reset came together with the data: a look at the data alone
 * would never find it. */
static bool
broken(struct sock *s)
{
	int error = 0;
	socklen_t len = sizeof(error);

	return s->closed ||
	    (sock_look_again(s) &&
		getsockopt(s->fd, SOL_SOCKET, SO_ERROR, &error, &len) == 0 &&
		error != 0);
}

/* Only looked at until all of it is there: what is read is read. */
bool
proxied_read(struct client *c)
{
	char *bytes = c->e->scratch;
	struct proxy_header h;
	size_t size;
	ssize_t n;

	_Static_assert(sizeof(c->e->scratch) >= PROXY_HEADER_MAX,
	    "room for a header");
	if (!c->s.readable)
		return false;
	do
		n = recv(c->s.fd, bytes, PROXY_HEADER_MAX, MSG_PEEK);
	while (n == -1 && errno == EINTR);
	if (n == -1 && errno == EAGAIN) {
		c->s.readable = false;
		return false;
	}
	if (n <= 0) {
		client_close(c); /* a check that we listen: no complaint */
		return false;
	}
	switch (proxy_header_read(bytes, (size_t)n, &h, &size)) {
	case PROXY_READ_DONE:
		return take(c, &h, size);
	case PROXY_READ_MORE:
		if (!broken(&c->s)) {
			c->s.readable = false;
			return false;
		}
		break;
	case PROXY_READ_BAD:
		break;
	}
	proxied_refuse(c);
	return false;
}

/* What is worth keeping; NULL and true: nothing is. */
static bool
keep(const struct proxy_header *h, struct proxied **out)
{
	size_t id_len = h->id.len;
	size_t host_len =
	    h->authority.len <= PROXY_NAME_MAX ? h->authority.len : 0;
	struct proxied *p;

	*out = NULL;
	if (h->to.len == 0 && id_len + host_len == 0)
		return true;
	if ((p = malloc(sizeof(*p) + id_len + host_len)) == NULL)
		return false;
	p->to = h->to;
	p->id_len = (uint8_t)id_len;
	p->host_len = (uint8_t)host_len;
	if (id_len > 0)
		memcpy(p->text, h->id.text, id_len);
	if (host_len > 0)
		memcpy(p->text + id_len, h->authority.text, host_len);
	*out = p;
	return true;
}

static bool
take(struct client *c, const struct proxy_header *h, size_t size)
{
	if (!keep(h, &c->proxied) ||
	    recv(c->s.fd, c->e->scratch, size, 0) != (ssize_t)size) {
		client_close(c);
		return false;
	}
	if (h->from.len != 0)
		c->peer = h->from;
	c->secure = c->secure || h->secure;
	return true;
}

void
proxied_refuse(struct client *c)
{
	struct engine *e = c->e;
	char ip[ADDR_TEXT_MAX] = "a Unix socket";

	engine_count(&e->row->why[WHY_PROXY_HEADER]);
	e->n_refused++;
	if (e->now_ms >= e->complain_ms) {
		if (c->peer.u.sa.sa_family != AF_UNIX)
			addr_format_ip(&c->peer, ip);
		log_warn("no right PROXY header from %s, which is in "
			 "proxy.proxy_protocol: %u connection(s) closed",
		    ip, e->n_refused);
		e->n_refused = 0;
		e->complain_ms = e->now_ms + COMPLAIN_MS;
	}
	client_close(c);
}
