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
#include "proxyd/tls/cert_image.h"

/* What the master could not do; "" where all is well. */
struct notices {
	char settings[sizeof(((struct err *)0)->text)];
	char upgrade[sizeof(((struct err *)0)->text)];
	uint32_t n_upgrades; /* that failed */
};

/* Borrowed, all of it. */
struct report {
	const struct scoreboard *board;
	const struct snapshot *snapshot;
	const struct cert_image *certs; /* NULL: none */
	const struct rates *rates;
	const struct notices *notices;
	int64_t now_ms; /* monotonic */
};

/* The revision that every worker which takes requests has. */
int64_t report_revision(const struct report *);

/* Arrays of objects, the caller's; NULL: out of memory. */
json_t *report_nodes(const struct report *);
json_t *report_workers(const struct report *);
/* How often each reason of why.h was one, in all workers. */
json_t *report_reasons(const struct report *);
/* The `top` sites (0: all) with most requests, or likewise their owners; and
 * the sum over all others, which has no name, in *rest unless that is NULL. */
json_t *report_sites(const struct report *, size_t top, bool owners,
    json_t **rest);

/* What uses the limits of a site now, and how often each was hit. */
json_t *report_limits(const struct report *, const struct snap_site *);

/* The state of a node in a role as one word, and why. */
const char *report_state(const struct report *, const struct snap_node *,
    enum why *);

#endif
