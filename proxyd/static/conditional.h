/*
 * conditional.h: preconditions of a GET or HEAD (RFC 9110, section 13): what
 * the client has already, and what it will have only if nothing changed.
 */
#ifndef MUSTER_STATIC_CONDITIONAL_H
#define MUSTER_STATIC_CONDITIONAL_H

#include <stdbool.h>
#include <stdint.h>

#include "proxyd/static/asked.h"
#include "proxyd/http/coding.h"

#define ETAG_MAX 64 /* with its NUL */

/* What a file is told apart by. */
struct validators {
	int64_t modified_s;  /* wall time; as Last-Modified says it */
	char etag[ETAG_MAX]; /* strong, with its quotes */
};

enum precondition {
	PRECONDITION_NONE,	/* serve it */
	PRECONDITION_WHOLE,	/* serve it, but no part: If-Range failed */
	PRECONDITION_UNCHANGED, /* 304 */
	PRECONDITION_FAILED,	/* 412 */
};

/* Of size and time of change; a compressed form has its own. */
void etag_format(char out[ETAG_MAX], uint64_t size, int64_t s, uint32_t ns,
    enum coding);

/* In the order of section 13.2.2.  now_s: wall time. */
enum precondition precondition(const struct asked *, const struct validators *,
    int64_t now_s);

#endif
