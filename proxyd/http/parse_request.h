/*
 * parse_request.h: a request head, parsed strictly and in one pass, however
 * it arrives in pieces.  What it does not understand it refuses; it never
 * repairs.  The head stays where it was read; the request names places in it.
 */
#ifndef MUSTER_PARSE_REQUEST_H
#define MUSTER_PARSE_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proxyd/http/fields.h"
#include "proxyd/http/framing.h"
#include "proxyd/http/target.h"
#include "proxyd/process/why.h"

#define METHOD_LEN_MAX 24

enum method {
	METHOD_OTHER,
	METHOD_GET,
	METHOD_HEAD,
	METHOD_POST,
	METHOD_PUT,
	METHOD_DELETE,
	METHOD_OPTIONS,
	METHOD_CONNECT,
	METHOD_TRACE,
};

enum upgrade { UPGRADE_NONE, UPGRADE_WEBSOCKET, UPGRADE_OTHER };

struct head_limits {
	uint32_t target_size, fields_size, fields_max;
};

struct request {
	/* How far the parser came. */
	uint8_t state;
	uint8_t blank;	/* empty lines before the request */
	uint32_t line;	/* the line being read begins here */
	uint32_t scan;	/* no LF before here */
	uint32_t first; /* the first field's line */

	/* What it says. */
	uint8_t minor;	 /* of HTTP/1.x: 0, or 1 for all above */
	uint8_t method;	 /* enum method */
	uint8_t upgrade; /* enum upgrade */
	bool keep_alive; /* the client wants to go on */
	struct connection connection;
	bool expect; /* 100-continue */
	uint8_t host_len;
	struct span method_name, target_text, version;
	struct span authority; /* host and port as sent; len 0: none */
	struct target target;
	struct body_framing body;
	uint32_t head_len; /* bytes up to and with the empty line */
	struct fields fields;
	char host[HOST_MAX_LEN + 1]; /* lower case, no port */
};

enum parse_result { PARSE_MORE, PARSE_DONE, PARSE_BAD };

void request_init(struct request *);

/*
 * Goes on with buf[0, len), which begins with what was there last time.
 * PARSE_BAD: *why says which answer it gets.  PARSE_DONE: head_len is set and
 * everything is checked but what needs the site.
 */
enum parse_result parse_request(struct request *, const char *buf, size_t len,
    const struct head_limits *, enum why *);

/* Whether a method may be sent twice (RFC 9110, section 9.2.2). */
bool method_idempotent(enum method);

#endif
