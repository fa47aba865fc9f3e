/*
 * lines.h: the lines of two texts, and which of them differ.
 */
#ifndef MUSTER_LINES_H
#define MUSTER_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

struct line {
	const char *text; /* borrowed; with its newline, if it has one */
	size_t len;
	uint32_t id;  /* equal for equal lines, of both texts */
	bool changed; /* not in the other text */
};

struct lines {
	struct line *v;
	size_t n;
};

/* Splits; ids are 0 and nothing is changed.  -1: out of memory. */
int lines_split(struct lines *, const char *text, size_t size);
void lines_fini(struct lines *);

/*
 * Marks the lines that a shortest edit from `a` to `b` removes and adds
 * (Myers' O(ND)).  Texts that differ in more than LINES_EDITS lines are
 * marked as different all through, but for what they begin and end with in
 * common: so time and memory are bounded.
 */
#define LINES_EDITS 1000
int lines_compare(struct lines *a, struct lines *b);

#endif
