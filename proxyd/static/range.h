/*
 * range.h: the Range field: which parts of a file are asked for (RFC 9110,
 * section 14).
 */
#ifndef MUSTER_STATIC_RANGE_H
#define MUSTER_STATIC_RANGE_H

#include <stddef.h>
#include <stdint.h>

#define RANGES_MAX 8

struct range {
	uint64_t first, size; /* size > 0 */
};

enum range_result {
	RANGE_WHOLE,	     /* nothing we serve in parts: the whole */
	RANGE_PARTS,	     /* those in the set */
	RANGE_UNSATISFIABLE, /* 416 */
};

struct range_set {
	unsigned n;
	struct range parts[RANGES_MAX];
};

/*
 * Of a file of `size` bytes.  What is not formed as it must be, another unit
 * than bytes, more than RANGES_MAX parts and parts that overlap are answered
 * with the whole: the field is a wish, and those are how servers are made to
 * send a file many times over (CVE-2011-3192).
 */
enum range_result range_parse(const char *text, size_t len, uint64_t size,
    struct range_set *);

#endif
