/*
 * apply.h: what the two halves of registry_apply() share, apply.c (settings,
 * roles, operators) and apply_objects.c (nodes and sites); private to this
 * folder.
 */
#ifndef MUSTER_APPLY_H
#define MUSTER_APPLY_H

#include <jansson.h>

#include "common/registry/option.h"
#include "common/registry/registry.h"

struct apply {
	struct registry *r;
	void (*tell)(const char *line, void *arg);
	void *arg;
	size_t n_changes;
};

/* One difference. */
void apply_tell(struct apply *, const char *fmt, ...) PRINTF(2, 3);

/* Sets each option that differs. */
int apply_options(struct apply *, const struct option_table *, const char *what,
    const char *name, const void *have, const void *want,
    int (*set)(struct registry *, const char *name, const char *option,
	const char *value, struct err *),
    struct err *);

/* The names of the registry's objects that a list lacks. */
struct apply_gone {
	json_t *index; /* {name: its record} of the list */
	json_t *names;
	struct err *e;
};
int apply_note(struct apply_gone *, const char *name);

/* One kind of object: how to know those of the registry, and to remove
 * one. */
struct apply_kind {
	const char *what;
	/* Calls apply_note() with the name of each. */
	int (*walk)(struct registry *, struct apply_gone *, struct err *);
	int (*remove)(struct registry *, const char *name, struct err *);
};

/* Removes what is not in the list.  ERR_USAGE for a list that is none, or
 * names an object twice. */
int apply_prune(struct apply *, const struct apply_kind *, const json_t *list,
    struct err *);

int apply_nodes(struct apply *, const json_t *list, struct err *);
int apply_sites(struct apply *, const json_t *list, struct err *);
/* apply_site_certs.c */
int apply_site_certs(struct apply *, const json_t *list, struct err *);

#endif
