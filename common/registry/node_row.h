/*
 * node_row.h: a node as a row of the database, for the files of this folder
 * that read or change nodes.
 */
#ifndef MUSTER_NODE_ROW_H
#define MUSTER_NODE_ROW_H

#include "common/registry/db.h"
#include "common/registry/nodes.h"

/* With the newest certificate that is in force, and the roles as
 * "role=port role=port". */
#define NODE_SELECT                                                          \
	"SELECT n.name, n.uuid, n.addr, n.agent_port, n.key, n.state, "      \
	"n.state_since_ms, n.options, c.serial, c.not_after_s, "             \
	"(SELECT group_concat(role || '=' || port, ' ') FROM (SELECT role, " \
	"port FROM node_roles WHERE node_id = n.id ORDER BY role)) "         \
	"FROM nodes n LEFT JOIN certs c ON c.serial = (SELECT max(serial) "  \
	"FROM certs WHERE node_id = n.id AND revoked_ms IS NULL)"

/* The row under the cursor of a NODE_SELECT. */
int row_node(struct rows *, struct node *, struct err *);

/* ERR_USAGE when no other node has the role master. */
int node_check_last_master(struct registry *, const char *name, struct err *);

#endif
