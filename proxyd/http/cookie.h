/*
 * cookie.h: cookies that bear on the choice of a node.
 */
#ifndef MUSTER_COOKIE_H
#define MUSTER_COOKIE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proxyd/http/fields.h"
#include "proxyd/process/snapshot.h"

#define COOKIE_NODE_LEN	  16
#define COOKIE_NODE_FIELD 160 /* bytes of a whole Set-Cookie line */

/* The value of cookie `name`; untouched and false when it is not there. */
bool cookie_find(const struct fields *, const char *base, const char *name,
    const char **value, size_t *len);

/* The node of the role (index) that its sticky cookie names, or SNAP_NONE. */
uint32_t cookie_node(const struct fields *, const char *base,
    const struct snapshot *, const struct snap_role *);

/* Writes the Set-Cookie line that names a node.  The value tells nothing
 * about the node. */
void cookie_set_node(char line[COOKIE_NODE_FIELD], const struct snapshot *,
    const struct snap_role *, const struct snap_node *);

#endif
