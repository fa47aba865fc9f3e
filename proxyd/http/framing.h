/*
 * framing.h: where a body ends.  The one place where Content-Length and
 * Transfer-Encoding are understood, for requests and for responses: what two
 * parties read differently here is how requests are smuggled.
 */
#ifndef MUSTER_FRAMING_H
#define MUSTER_FRAMING_H

#include <stdbool.h>
#include <stdint.h>

#include "proxyd/http/fields.h"
#include "proxyd/process/why.h"

enum framing {
	FRAMING_NONE,	/* no body */
	FRAMING_LENGTH, /* so many bytes */
	FRAMING_CHUNKED,
	FRAMING_CLOSE, /* until the connection ends; responses only */
};

struct body_framing {
	enum framing kind;
	uint64_t length; /* FRAMING_LENGTH */
};

/* Of a request.  WHY_NONE, or why it is refused. */
enum why framing_of_request(const struct fields *, const char *base,
    unsigned minor, struct body_framing *);

/*
 * Of a final response.  `bodiless`: it answers HEAD, or its status is one
 * without a body; its length is then kept for the client to see, the kind is
 * FRAMING_NONE.  WHY_NONE or WHY_NODE_GARBAGE.
 */
enum why framing_of_response(const struct fields *, const char *base,
    unsigned minor, bool bodiless, struct body_framing *);

#endif
