/*
 * variants.h: the compressed forms of files that have none beside them: made
 * when first asked for, and kept for as long as the file stays as it is.
 *
 * The opener's, for all its threads.  A form is a file in memory, which goes
 * to the worker as any other: with a known size, an entity tag of its own,
 * ranges.  Bounded: the least recently used goes.
 */
#ifndef MUSTER_STATIC_VARIANTS_H
#define MUSTER_STATIC_VARIANTS_H

#include <stdbool.h>
#include <stdint.h>

#include "proxyd/http/coding.h"
#include "proxyd/static/lookup.h"

#define VARIANT_FILE_MAX (4U << 20)  /* larger files go out as they are */
#define VARIANTS_SIZE	 (32U << 20) /* of all forms together */
#define VARIANTS_MAX	 512

struct variants;

struct variants *variants_new(void);
void variants_free(struct variants *);

/*
 * Puts the compressed form in the place of a file that was found: its
 * descriptor, size and coding.  Nothing changes when it would be no smaller,
 * or cannot be had.  now_s: wall time.
 */
void variants_apply(struct variants *, struct lookup *, enum coding,
    unsigned level, int64_t now_s);

#endif
