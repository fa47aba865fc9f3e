/*
 * compile.h: the registry or roster into a snapshot: names become indexes,
 * settings numbers, nodes and sites rows of the scoreboard.
 */
#ifndef MUSTER_COMPILE_H
#define MUSTER_COMPILE_H

#include <stdint.h>

#include "common/base/err.h"
#include "common/registry/settings.h"
#include "proxyd/process/row_use.h"
#include "proxyd/process/scoreboard.h"
#include "proxyd/process/source.h"

/* *fd: a sealed memfd for snapshot_map(), the caller's. */
int compile_snapshot(struct source *, struct scoreboard *, struct row_use *,
    int64_t revision, struct settings *, int *fd, struct err *);

/* The key of a thing that has only a name or UUID: positive, stable. */
int64_t compile_id(const char *text);

#endif
