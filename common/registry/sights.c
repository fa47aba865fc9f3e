/* sights.c: when a node was last seen; see nodes.h. */
#include <string.h>

#include "common/registry/db.h"
#include "common/registry/nodes.h"

int
nodes_saw(struct registry *r, const struct node_sight *s, struct err *e)
{
	static const char sql[] =
	    "INSERT INTO sights (node_id, at_ms, skew_ms, version) "
	    "SELECT id, ?2, ?3, ?4 FROM nodes WHERE name = ?1 "
	    "ON CONFLICT (node_id) DO UPDATE SET at_ms = ?2, skew_ms = ?3, "
	    "version = ?4";
	int rv;

	if (registry_begin_note(r, e) == -1)
		return -1;
	rv = db_run(r, e, sql, TEXT(s->name), INT(s->at_ms), INT(s->skew_ms),
	    TEXT(s->version));
	return registry_end(r, rv, e);
}

int
nodes_sights(struct registry *r,
    int (*fn)(const struct node_sight *, void *arg), void *arg, struct err *e)
{
	static const char sql[] =
	    "SELECT name, at_ms, skew_ms, version FROM sights "
	    "JOIN nodes ON id = node_id ORDER BY name";
	struct node_sight s;
	struct rows q;
	int rv;

	if (rows_open(&q, r, e, sql) == -1)
		return -1;
	while ((rv = rows_next(&q, e)) == 1) {
		row_text(&q, s.name, sizeof(s.name));
		s.at_ms = row_int(&q);
		s.skew_ms = row_int(&q);
		row_text(&q, s.version, sizeof(s.version));
		if ((rv = fn(&s, arg)) != 0)
			break;
	}
	rows_close(&q);
	return rv;
}
