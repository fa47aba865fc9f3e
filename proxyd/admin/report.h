/*
 * report.h: what the scoreboard and the snapshot say, as JSON: the answers
 * of the admin socket and of /status.json.  The fields are documented in
 * proxyd(8).
 */
#ifndef MUSTER_REPORT_H
#define MUSTER_REPORT_H

#include <jansson.h>

#include "proxyd/admin/rates.h"
#include "proxyd/process/scoreboard.h"
#include "proxyd/process/snapshot.h"

/* Borrowed, all of it. */
struct report {
	const struct scoreboard *board;
	const struct snapshot *snapshot;
	const struct rates *rates;
	int64_t now_ms; /* monotonic */
};

/* Arrays of objects, the caller's; NULL: out of memory. */
json_t *report_nodes(const struct report *);
json_t *report_workers(const struct report *);
/* The `top` sites with most requests (0: all), and likewise their owners. */
json_t *report_sites(const struct report *, size_t top);
json_t *report_owners(const struct report *, size_t top);

/* The state of a node in a role as one word, and why. */
const char *report_state(const struct report *, const struct snap_node *,
    enum why *);

#endif
