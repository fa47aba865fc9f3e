/*
 * directory.h: the nodes and roles of the cluster in memory, whether they
 * came from the registry (on a master) or from the signed roster.  Feeds the
 * resolver of node sets; never changes once it is loaded.
 */
#ifndef CLUSTERCTL_DIRECTORY_H
#define CLUSTERCTL_DIRECTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/addr.h"
#include "common/base/err.h"
#include "common/nodeset/nodeset.h"
#include "common/registry/nodes.h"

struct dir_node {
	char *name, *uuid;
	struct addr addr; /* of its agent, with the port; len 0: no IP */
	char *place;	  /* where it is instead; NULL with an IP */
	bool has_agent;	  /* else a plain backend: no key, takes no orders */
	uint8_t key[KEY_SIZE];
	int64_t cert_not_after_s;
	enum node_state state;
	const char **roles; /* borrowed from the directory; sorted */
	size_t n_roles;
};

struct directory;

struct directory *directory_new(void);
void directory_free(struct directory *);

/* Loading: roles first, then nodes; everything is copied. */
void directory_add_role(struct directory *, const char *name);
int directory_add_node(struct directory *, const struct node *, struct err *);
/* After the last node: sorts by name as bytes. */
void directory_seal(struct directory *);

size_t directory_n_nodes(const struct directory *);
const struct dir_node *directory_at(const struct directory *, size_t i);
size_t directory_n_roles(const struct directory *);
const char *directory_role_at(const struct directory *, size_t i);

/* NULL when unknown. */
const struct dir_node *directory_find(const struct directory *,
    const char *name);
/* The same, with ERR_NO_TARGET and "did you mean". */
const struct dir_node *directory_get(const struct directory *, const char *name,
    struct err *);
int directory_check_role(const struct directory *, const char *role,
    struct err *);
/* Where its agent listens; the IP or socket of a node without one. */
void directory_node_address(const struct dir_node *, char buf[ADDR_PLACE_MAX]);
bool directory_node_has_role(const struct dir_node *, const char *role);

/* For nodeset_parse(); valid as long as the directory. */
struct nodeset_resolver directory_resolver(const struct directory *);

#endif
