/*
 * audit_line.h: one line of an audit log, parsed and chained; what append and
 * verify share.
 */
#ifndef MUSTER_AUDIT_LINE_H
#define MUSTER_AUDIT_LINE_H

#include <stddef.h>
#include <stdint.h>

#include <sodium.h>

#include "common/audit/audit.h"

#define AUDIT_HASH_HEX (2 * crypto_generichash_BYTES)

/* "prev" of the first line. */
extern const char audit_no_hash[AUDIT_HASH_HEX + 1];

/* The hash of a line without its newline, in hexadecimal. */
void audit_hash(const char *line, size_t len, char hex[AUDIT_HASH_HEX + 1]);

/* The object of a line with its "seq" and "prev" (borrowed from it), the
 * caller's.  NULL when it is no audit line. */
json_t *audit_parse(const char *line, size_t len, uint64_t *seq,
    const char **prev);

/*
 * Lines of a file from its beginning, without their newline.  A line longer
 * than AUDIT_LINE_MAX comes in pieces.
 */
struct audit_reader {
	int fd;
	size_t have, used;
	char buf[AUDIT_LINE_MAX + 1];
};

/* 1, 0 at the end, -1 (errno).  *whole: the newline was there. */
int audit_next(struct audit_reader *, const char **line, size_t *len,
    bool *whole);

/* Opens a log: a plain file, ours, that nobody else may write.  write: for
 * appending, made when missing.  Returns the locked descriptor (shared or
 * exclusive), -1 on failure, -2 when it is missing. */
int audit_open(const char *path, bool write, struct err *);

#endif
