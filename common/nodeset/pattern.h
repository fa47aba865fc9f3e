/*
 * pattern.h: names with their numbers taken out.
 *
 * rack1-node07 is the pattern rack#-node# with the tuple (1, 07), where # is
 * the byte PATTERN_NUMBER.  Names of one pattern make a grid (grid.h).  IP
 * addresses of version 6 are left whole, and so are numbers of more than
 * NUMBER_DIGITS digits and those behind the first NODESET_DIMS.
 *
 * A range that touches digits, x[22-23]0, keeps them in its pattern, x#0: it
 * is shown as it was written.  The plain form of the same names is x# with
 * (220) and (230); sets that mix both are made plain first.
 */
#ifndef MUSTER_PATTERN_H
#define MUSTER_PATTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/nodeset/grid.h"
#include "common/nodeset/nodeset.h"

#define PATTERN_NUMBER '\1'

/* Of one name or one name with ranges, without operators.  The grid is the
 * caller's. */
int pattern_parse(const char *text, size_t len,
    char pattern[NODESET_NAME_MAX + 1], struct grid **, struct err *);

/* Whether a range touches digits. */
bool pattern_touches(const char *pattern);

/* The pattern of the same names in plain form. */
void pattern_plain(const char *pattern, char plain[NODESET_NAME_MAX + 1]);

/* The grid of the same names under the plain pattern.  -1: out of memory. */
int pattern_plain_grid(const char *pattern, const struct grid *,
    struct grid **);

/* The tuple with which a pattern makes this name; false: none. */
bool pattern_match(const char *pattern, const char *name,
    uint64_t tuple[NODESET_DIMS]);

/* The name, with a NUL. */
void pattern_name(const char *pattern, const uint64_t *tuple,
    char name[NODESET_NAME_MAX + 1]);

#endif
