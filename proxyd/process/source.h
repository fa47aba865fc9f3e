/*
 * source.h: where the proxy's knowledge comes from: the registry on a
 * master, the signed roster on any other machine.
 */
#ifndef MUSTER_SOURCE_H
#define MUSTER_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/base/state.h"
#include "common/registry/nodes.h"
#include "common/registry/roles.h"
#include "common/registry/settings.h"
#include "common/registry/site_certs.h"
#include "common/registry/sites.h"

struct source;

struct source *source_new(const struct state *, struct err *);
void source_free(struct source *);

/*
 * The present revision; opens what is closed and reopens a file that was
 * replaced.  Cheap: fit for a poll.
 */
int source_revision(struct source *, int64_t *revision, struct err *);

/* Whether it is the registry itself. */
bool source_is_registry(const struct source *);

/* Reads of one state: between begin and end nothing changes. */
int source_begin(struct source *, struct err *);
void source_end(struct source *);
int source_settings(struct source *, struct settings *, struct err *);
int source_each_role(struct source *, role_fn *, void *arg, struct err *);
int source_each_node(struct source *, node_fn *, void *arg, struct err *);
int source_each_site(struct source *, site_fn *, void *arg, struct err *);
int source_each_site_cert(struct source *, site_cert_fn *, void *arg,
    struct err *);

#endif
