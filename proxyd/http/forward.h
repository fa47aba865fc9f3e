/*
 * forward.h: message heads as we send them on, rebuilt from what was parsed.
 *
 * What one connection agreed on (hop-by-hop) stays behind; framing, host,
 * connection and everything about the client is written by us.  Nothing that
 * was not validated gets through.
 */
#ifndef MUSTER_FORWARD_H
#define MUSTER_FORWARD_H

#include <stdbool.h>
#include <stddef.h>

#include "proxyd/http/parse_request.h"
#include "proxyd/http/parse_response.h"

/* More than any head accepted and all that is added to it. */
#define FORWARD_MAX (160U << 10)

#define REQUEST_ID_LEN 32
#define REQUEST_ID_MAX 128 /* of one from a trusted peer */

struct forward_request {
	const struct request *req;
	const char *base;      /* where its head stands */
	const char *peer_ip;   /* who is connected; NULL: a Unix socket */
	const char *client_ip; /* who it is for (forward_client_ip), or NULL */
	const char *proto;     /* "http", "https" */
	const char *host;      /* where the request names none */
	const char *via;       /* our name */
	const char *id;	       /* X-Request-Id */
	size_t id_len;
	bool trusted; /* the peer's X-Forwarded-* are believed */
};

/* Writes the head a node gets.  Its size, or 0: no room. */
size_t forward_request(char *out, size_t room, const struct forward_request *);

enum forward_connection { FORWARD_PERSIST, FORWARD_PERSIST_10, FORWARD_CLOSE };

struct forward_response {
	const struct response *res;
	const char *base;
	const char *date;  /* an IMF-fixdate, if the node sent none */
	const char *extra; /* whole field lines of ours, or "" */
	enum forward_connection connection;
	bool chunked; /* the body goes out in our chunks */
	/* By us: "gzip", NULL: as it came; Vary says that it depends; the
	 * entity tag is weak. */
	const char *coding;
	bool varies, weak;
	bool hsts; /* extra says it; the node's word is dropped */
};

/* Writes the head the client gets; interim (1xx) ones too. */
size_t forward_response(char *out, size_t room,
    const struct forward_response *);

/*
 * The client a request is for: from a trusted peer the rightmost address of
 * X-Forwarded-For that is itself not trusted, else the peer.  buf holds the
 * text where one is taken out; else peer_ip is returned.
 */
struct snapshot;
const char *forward_client_ip(const struct request *, const char *base,
    const struct snapshot *, const char *peer_ip, bool trusted, char *buf,
    size_t size);

/* How often our name is in Via. */
unsigned forward_hops(const struct request *, const char *base,
    const char *via);

#endif
