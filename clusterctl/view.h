/*
 * view.h: what the cluster looks like from here: the registry on a master,
 * the signed roster anywhere else.  After context_need(NEEDS_VIEW).
 */
#ifndef CLUSTERCTL_VIEW_H
#define CLUSTERCTL_VIEW_H

#include "clusterctl/context.h"
#include "common/registry/nodes.h"
#include "common/registry/operators.h"
#include "common/registry/roles.h"
#include "common/registry/settings.h"
#include "common/registry/site_certs.h"
#include "common/registry/sites.h"

const char *view_cluster_name(const struct context *);
int view_revision(const struct context *, int64_t *revision, struct err *);

/* Walks: fn returns non-zero to stop, and the walk returns that. */
int view_each_node(const struct context *, node_fn *, void *arg, struct err *);
int view_each_role(const struct context *, role_fn *, void *arg, struct err *);
int view_each_site(const struct context *, site_fn *, void *arg, struct err *);
/* By site; site NULL: of all. */
int view_each_site_cert(const struct context *, const char *site,
    site_cert_fn *, void *arg, struct err *);
int view_each_operator(const struct context *, operator_fn *, void *arg,
    struct err *);

/* One; ERR_NO_TARGET with a "did you mean". */
int view_node(const struct context *, const char *name, struct node *,
    struct err *);
int view_role(const struct context *, const char *name, struct role *,
    struct err *);
/* By main name or alias; site_fini() it. */
int view_site(const struct context *, const char *host, struct site *,
    struct err *);

int view_settings(const struct context *, struct settings *, struct err *);

#endif
