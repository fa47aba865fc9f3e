/*
 * slurp.h: a whole file that an operator names, or standard input.
 */
#ifndef CLUSTERCTL_SLURP_H
#define CLUSTERCTL_SLURP_H

#include <stddef.h>

#include "common/base/err.h"

/* "-" is standard input; pipes and the like are read to their end.  *text has
 * a NUL behind its *size bytes; free() it.  More than max bytes is an
 * error. */
int slurp(const char *path, size_t max, char **text, size_t *size,
    struct err *);

#endif
