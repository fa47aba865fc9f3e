/*
 * progress.h: one line on a terminal that says how far a run is.  It is
 * wiped before anything else is written, and never there in a pipe.
 */
#ifndef CLUSTERCTL_PROGRESS_H
#define CLUSTERCTL_PROGRESS_H

#include <stdbool.h>

#include "common/base/err.h"

/* Whether standard error is a terminal where such a line makes sense. */
bool progress_possible(void);

/* Replaces the line. */
void progress_show(const char *fmt, ...) PRINTF(1, 2);

/* Wipes it, if it is there. */
void progress_clear(void);

#endif
