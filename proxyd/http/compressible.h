/*
 * compressible.h: whether a node's response goes out compressed, and what
 * its head then says.  Decided by the two heads alone; nothing is compressed
 * here.
 */
#ifndef MUSTER_COMPRESSIBLE_H
#define MUSTER_COMPRESSIBLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proxyd/http/coding.h"
#include "proxyd/http/parse_request.h"
#include "proxyd/http/parse_response.h"

/* X(name, word): the word stands in X-Muster-Why. */
#define COMPRESS_WHY_TABLE(X)                                           \
	X(OFF, "off") /* for this site */                               \
	X(YES, "yes")                                                   \
	X(STATUS, "status")	     /* of no such body */              \
	X(ENCODED, "encoded")	     /* already */                      \
	X(RANGE, "range")	     /* a part is of the plain body */  \
	X(TRANSFORM, "no_transform") /* the node, or client, forbids */ \
	X(DIGEST, "digest")	     /* which would be wrong */         \
	X(TYPE, "type")		     /* none of the site's types */     \
	X(SMALL, "small")                                               \
	X(HTTP10, "http10") /* knows no chunks */                       \
	X(ACCEPT, "not_accepted")                                       \
	X(MEMORY, "memory") /* proxy.compress_memory */

enum compress_why {
#define X(name, word) COMPRESS_##name,
	COMPRESS_WHY_TABLE(X)
#undef X
};

const char *compress_why_word(enum compress_why);

/* What a site wants. */
struct compress_rules {
	uint32_t codings;  /* bit 1 << (enum coding - 1) each */
	uint64_t min;	   /* a known length below goes out as it is */
	const char *types; /* media types, a space between; "": our table */
};

struct compressible {
	enum compress_why why;
	enum coding coding; /* of COMPRESS_YES */
	bool varies;	    /* other clients may get another coding */
	bool weak;	    /* the node's entity tag goes out as a weak one */
};

/* Identifies the fields that it looks at (fields_identify_rest()). */
void compressible_judge(struct compressible *, const struct compress_rules *,
    struct request *, const char *request_base, struct response *,
    const char *response_base);

/* Whether a site's list of types has this one (without its parameters). */
bool compressible_type(const char *list, const char *type, size_t len);

#endif
