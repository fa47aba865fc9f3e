/*
 * node_row.h: a node as a row of the database, for the files of this folder
 * that read or change nodes.
 */
#ifndef MUSTER_NODE_ROW_H
#define MUSTER_NODE_ROW_H

#include "common/registry/db.h"
#include "common/registry/nodes.h"

/*
 * A row for each role and each certificate in force of a node, one node's
 * rows after another's; plain joins, because what SQLite does for a subquery
 * a node costs more than all else.  NODE_SELECT, a WHERE or nothing,
 * NODE_ORDER.
 */
#define NODE_SELECT                                                      \
	"SELECT n.id, r.role, r.port, c.serial, c.not_after_s, n.name, " \
	"n.uuid, n.addr, n.agent_port, n.key, n.state, "                 \
	"n.state_since_ms, n.options FROM nodes n "                      \
	"LEFT JOIN node_roles r ON r.node_id = n.id "                    \
	"LEFT JOIN certs c ON c.node_id = n.id AND c.revoked_ms IS NULL "
#define NODE_ORDER " ORDER BY n.name, r.role, c.serial"

/*
 * The node under the cursor, of all its rows.  1: the cursor is on the next
 * node, 0: there is none and the rows are closed, -1.
 */
int row_node(struct rows *, struct node *, struct err *);

/* ERR_USAGE when no other node has the role master. */
int node_check_last_master(struct registry *, const char *name, struct err *);

#endif
