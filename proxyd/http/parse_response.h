/*
 * parse_response.h: a node's response head, interim ones (1xx) included.
 * As strict as with requests but for one repair that RFC 9112 demands: white
 * space before a field's colon is taken off.
 */
#ifndef MUSTER_PARSE_RESPONSE_H
#define MUSTER_PARSE_RESPONSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proxyd/http/fields.h"
#include "proxyd/http/framing.h"
#include "proxyd/http/parse_request.h"

struct response {
	/* How far the parser came. */
	uint8_t state;
	uint32_t line, scan, first;

	/* What it says. */
	uint8_t minor;
	bool keep_alive; /* the node wants to go on */
	struct connection connection;
	bool length_seen; /* body.length was said, body or not */
	uint16_t status;  /* 100..599 */
	struct span reason;
	struct body_framing body;
	uint32_t head_len;
	struct fields fields;
};

void response_init(struct response *);

/*
 * As parse_request(); `head` tells that the request was a HEAD.  PARSE_BAD is
 * always WHY_NODE_GARBAGE.  A 1xx is PARSE_DONE too: its body is
 * FRAMING_NONE, and another response follows it (but after a 101).
 */
enum parse_result parse_response(struct response *, const char *buf, size_t len,
    const struct head_limits *, bool head);

#endif
