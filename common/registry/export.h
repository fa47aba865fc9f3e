/*
 * export.h: the registry as one JSON text without secrets, and a registry
 * made to match such a text.
 *
 * The text is canonical (sorted, one object a line), so that two exports of
 * equal registries are equal.  Members: "format", "cluster", "settings",
 * "roles", "nodes", "operators", "sites", "site_certs".
 */
#ifndef MUSTER_EXPORT_H
#define MUSTER_EXPORT_H

#include <stdio.h>

#include "common/registry/registry.h"

#define EXPORT_SIZE_MAX (512L * 1024 * 1024)
#define EXPORT_FORMAT	"muster-registry-1"

int registry_export(struct registry *, FILE *, struct err *);

/*
 * Makes the registry match: all or nothing, one change.  A member that is
 * missing leaves its kind alone; in one that is there, objects that are not
 * listed are removed.  Keys and certificates are never taken from the text: a
 * new node has no agent until it enrolls.  Of a site's certificate the text says
 * which it is; its files must be in custody, or become so.  Each difference is told as a line
 * ("add site a.example", "set node web1 weight 2 (was 1)"); dry_run tells and
 * changes nothing.
 */
int registry_apply(struct registry *, const char *json, size_t size,
    bool dry_run, void (*tell)(const char *line, void *arg), void *arg,
    size_t *n_changes, struct err *);

#endif
