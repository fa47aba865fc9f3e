/*
 * snapshot_plan.h: builds the image of snapshot.h.  Add settings, roles,
 * nodes and sites in any order, then write.
 *
 * Texts are copied; numbers are the caller's to have checked.  Whoever reads
 * the registry or the roster is above this; this knows neither.
 */
#ifndef MUSTER_SNAPSHOT_PLAN_H
#define MUSTER_SNAPSHOT_PLAN_H

#include "proxyd/process/snapshot.h"

struct snapshot_plan;

/* Texts of the records of snapshot.h; NULL: none. */
struct plan_node {
	const char *name, *path;
	struct snap_node n; /* its texts are ignored */
};

struct plan_role {
	const char *name, *cookie, *check_text;
	struct snap_role r; /* texts and node slice are ignored */
};

struct plan_site {
	const char *name, *owner, *home;
	const char *static_ext, *cache_control, *charset, *compress_types;
	struct snap_site s; /* texts are ignored, but for the pages */
};

struct snapshot_plan *plan_new(int64_t revision, struct err *);
void plan_free(struct snapshot_plan *);

/* The defaults of every setting. */
void plan_default_settings(struct snap_settings *);

/* Without it: the defaults, "muster". */
int plan_settings(struct snapshot_plan *, const struct snap_settings *,
    const char *via, struct err *);

enum plan_peers { PLAN_TRUSTED, PLAN_SENDERS, PLAN_PEERS };

/* Adds a range to one of these; NULL: the peers of Unix sockets. */
int plan_peer(struct snapshot_plan *, enum plan_peers, const struct cidr *,
    struct err *);

/* A text that several records share, for their field. */
int plan_text(struct snapshot_plan *, const char *, struct snap_text *,
    struct err *);

/* *index is the record's in the image, as far as others name it. */
int plan_role(struct snapshot_plan *, const struct plan_role *, uint32_t *index,
    struct err *);
int plan_node(struct snapshot_plan *, uint32_t role, const struct plan_node *,
    struct err *);
int plan_site(struct snapshot_plan *, const struct plan_site *, uint32_t *index,
    struct err *);

/* A host name or "*.name" of a site.  Of a name given twice the first one
 * stands (the registry does not let that happen). */
int plan_host(struct snapshot_plan *, uint32_t site, const char *pattern,
    struct err *);
void plan_default_site(struct snapshot_plan *, uint32_t site);

/* Writes a sealed memfd, the caller's. */
int plan_write(struct snapshot_plan *, int *fd, struct err *);

#endif
