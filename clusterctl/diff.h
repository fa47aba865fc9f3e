/*
 * diff.h: how the output of nodes differs: a unified diff of each group
 * against the largest (exec --diff).
 */
#ifndef MUSTER_DIFF_H
#define MUSTER_DIFF_H

#include "clusterctl/gather.h"

#define DIFF_SIZE_MAX (16u << 20) /* larger output is not compared */

/* Prints nothing when all nodes gave the same. */
int diff_print(struct gather *, struct sink *, struct err *);

/* One unified diff, three lines of context: "--- old", "+++ new", hunks.
 * Nothing when the texts are equal. */
int diff_texts(const char *old_label, const char *old, size_t old_size,
    const char *new_label, const char *new, size_t new_size, struct sink *,
    struct err *);

#endif
