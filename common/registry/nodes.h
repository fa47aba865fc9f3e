/*
 * nodes.h: the machines of the cluster.  A node's identity is its key and
 * UUID; its name is a label.  Nothing passes from a removed node to a later
 * one of the same name.
 *
 * The same struct node comes from the registry and from a roster (roster.h).
 */
#ifndef MUSTER_NODES_H
#define MUSTER_NODES_H

#include "common/base/addr.h"
#include "common/base/name.h"
#include "common/base/secret.h"
#include "common/base/uuid.h"
#include "common/registry/option.h"
#include "common/registry/registry.h"

#define NODE_ROLES_MAX	 24
#define NODE_VERSION_LEN 31

enum node_state { NODE_UP, NODE_DRAIN, NODE_MAINTENANCE };

struct node_role {
	char name[NAME_MAX_LEN + 1];
	uint16_t port; /* of this node for this role; 0: the role's own */
};

struct node {
	char name[NAME_MAX_LEN + 1];
	char uuid[UUID_LEN + 1];
	/* IP without port; "unix:/PATH" of a plain backend on each machine
	 * with a proxy. */
	char addr[ADDR_PLACE_MAX];
	uint16_t agent_port;   /* 0: no agent, a plain backend */
	bool has_key;	       /* enrolled; then key and serial count */
	uint8_t key[KEY_SIZE]; /* X25519 */
	uint64_t serial;       /* of its newest certificate */
	int64_t cert_not_after_s;
	enum node_state state;
	int64_t state_since_ms;
	int64_t weight, maxconn; /* maxconn 0: the role's own */
	size_t n_roles;
	struct node_role roles[NODE_ROLES_MAX];
};

/* weight, maxconn: what `node set` takes beside addresses and ports. */
extern const struct option_table node_options;

const char *node_state_name(enum node_state); /* "up", "drain" ... */
int node_state_parse(const char *, enum node_state *, struct err *);
const struct node_role *node_find_role(const struct node *,
    const char *role); /* or NULL */

bool node_is_unix(const struct node *);

/* A new node with defaults: a fresh UUID, up, weight 1, no roles. */
void node_init(struct node *, const char *name);

/* Returns non-zero to stop; the caller of the walk gets that. */
typedef int node_fn(const struct node *, void *arg);

/* By name.  ERR_NO_TARGET with a "did you mean". */
int nodes_get(struct registry *, const char *name, struct node *, struct err *);
int nodes_get_key(struct registry *, const uint8_t key[KEY_SIZE], struct node *,
    struct err *);
int nodes_each(struct registry *, node_fn *, void *arg, struct err *);

/* Each is one change.  ERR_CONFLICT: the name, key or address:port is taken;
 * ERR_USAGE: a broken rule; ERR_NO_TARGET: no such node or role. */
int nodes_add(struct registry *, const struct node *, struct err *);
/* Takes its roles, revokes every certificate of it. */
int nodes_remove(struct registry *, const char *name, struct err *);
int nodes_rename(struct registry *, const char *name, const char *to,
    struct err *);
int nodes_set_state(struct registry *, const char *name, enum node_state,
    struct err *);
/* "weight", "maxconn" (node_options), "address", "agent_port". */
int nodes_set(struct registry *, const char *name, const char *option,
    const char *value, struct err *);
int nodes_set_port(struct registry *, const char *name, const char *role,
    uint16_t port, struct err *); /* 0: the role's own again */
int nodes_add_role(struct registry *, const char *name, const char *role,
    struct err *);
int nodes_remove_role(struct registry *, const char *name, const char *role,
    struct err *);

/* ---- what was seen: kept, but no change of the registry's revision ---- */

struct node_sight {
	char name[NAME_MAX_LEN + 1];
	int64_t at_ms, skew_ms;
	char version[NODE_VERSION_LEN + 1];
};
int nodes_saw(struct registry *, const struct node_sight *, struct err *);
int nodes_sights(struct registry *,
    int (*fn)(const struct node_sight *, void *arg), void *arg, struct err *);

#endif
