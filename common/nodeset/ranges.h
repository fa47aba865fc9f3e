/*
 * ranges.h: what stands between brackets: 1-3,5,010-020/2.
 */
#ifndef MUSTER_RANGES_H
#define MUSTER_RANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/nodeset/grid.h"

struct range {
	uint64_t lo, hi; /* both within; see number.h */
};

struct ranges {
	struct range *v; /* ascending, apart from each other */
	size_t n;
	size_t size;
	uint64_t count; /* of numbers asked for, those named twice too */
};

/*
 * Adds the numbers of a list.  Both ends of a range must have as many digits
 * if one is padded with zeros, or if `fixed` (a zero stands before the
 * bracket): 8-011 could mean two things.
 */
int ranges_parse(struct ranges *, const char *text, size_t len, bool fixed,
    struct err *);

int ranges_add(struct ranges *, uint64_t lo, uint64_t hi, struct err *);

/* Sorts and joins; after it, v is as said above. */
void ranges_settle(struct ranges *);

/* One more dimension before sub, whose reference it takes.  NULL: out of
 * memory. */
struct grid *ranges_grid(const struct ranges *, struct grid *sub);

void ranges_fini(struct ranges *);

#endif
