/*
 * audit.h: an append-only log of orders, one JSON object a line, chained by
 * hashes (muster-audit(5)): a line that was changed, removed or inserted
 * breaks the chain.
 *
 * Each line has "seq", "time" (UTC) and "prev" (BLAKE2b-256 of the line
 * before, without its newline), then the caller's fields.  Several processes
 * may append to one log.
 */
#ifndef MUSTER_AUDIT_H
#define MUSTER_AUDIT_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "common/base/err.h"

#define AUDIT_LINE_MAX 16384

/*
 * Appends one event.  Takes `fields` (an object; also on failure); fields
 * that do not fit are cut, and named in "cut".  A torn end (power cut) is
 * left where it is, and a line behind it says so.  The line is on disk when
 * this returns 0.  The file is made 0600; one that others may write, or that
 * is not ours, is refused.
 */
int audit_append(const char *path, json_t *fields, struct err *);

/* The same without waiting for the disk, for logs in the path of an order;
 * audit_sync() makes everything appended so far durable. */
int audit_append_soon(const char *path, json_t *fields, struct err *);
int audit_sync(const char *path, struct err *);

/* The outcome of a check. */
struct audit_report {
	uint64_t n_lines;
	uint64_t n_healed; /* torn ends that a later line accounts for */
	uint64_t bad_line; /* the first bad one, from 1; 0: none */
	bool torn_tail;	   /* the last line is cut: an append died */
	char why[160];	   /* for bad_line */
	char head_hex[65]; /* hash of the last good line: note it elsewhere */
};

/* Reads the whole log.  -1 only when it cannot be read; an empty or missing
 * log is sound. */
int audit_verify(const char *path, struct audit_report *, struct err *);

/* The events from line `first` on (1: all), oldest first.  Stops when fn
 * returns non-zero, and returns that. */
int audit_each(const char *path, uint64_t first,
    int (*fn)(uint64_t line, const json_t *event, void *arg), void *arg,
    struct err *);

#endif
