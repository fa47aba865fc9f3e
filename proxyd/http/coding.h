/*
 * coding.h: the content codings we know, and which of them a client would
 * have (Accept-Encoding, RFC 9110, section 12.5.3).
 */
#ifndef MUSTER_CODING_H
#define MUSTER_CODING_H

#include <stddef.h>
#include <stdint.h>

enum coding { CODING_NONE, CODING_GZIP, CODING_BR, CODING_N };

/* What it takes, the first the dearest; CODING_NONE: no more. */
struct coding_wish {
	enum coding order[CODING_N - 1];
};

/* The names, and the endings of files, by enum coding: "gzip", ".gz". */
extern const char *const coding_names[CODING_N], *const coding_ends[CODING_N];

struct coding_wish coding_parse(const char *text, size_t len);

/* The dearest of it that is among `codings`: bit 1 << (coding - 1) each. */
enum coding coding_choose(struct coding_wish, uint32_t codings);

#endif
