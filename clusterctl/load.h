/*
 * load.h: fills a directory from the registry or from a roster.
 */
#ifndef CLUSTERCTL_LOAD_H
#define CLUSTERCTL_LOAD_H

#include "clusterctl/directory.h"
#include "common/registry/registry.h"
#include "common/registry/roster.h"

/* A sealed directory, or NULL. */
struct directory *load_registry(struct registry *, struct err *);
struct directory *load_roster(struct roster *, struct err *);

#endif
