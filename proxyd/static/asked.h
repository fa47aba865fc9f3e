/*
 * asked.h: the fields of a request that decide how a file is answered.
 */
#ifndef MUSTER_STATIC_ASKED_H
#define MUSTER_STATIC_ASKED_H

#include <stdbool.h>
#include <stddef.h>

#include "proxyd/http/fields.h"

enum asked_field {
	ASKED_IF_MATCH,
	ASKED_IF_NONE_MATCH,
	ASKED_IF_MODIFIED_SINCE,
	ASKED_IF_UNMODIFIED_SINCE,
	ASKED_IF_RANGE,
	ASKED_RANGE,
	ASKED_ACCEPT_ENCODING,
	ASKED_N
};

struct asked {
	struct member fields[ASKED_N]; /* text NULL: not there */
};

/* False when one comes twice: what that means is left to the node. */
bool asked_find(struct asked *, const struct fields *, const char *base);

#endif
