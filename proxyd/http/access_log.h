/*
 * access_log.h: one line a request, in one of three formats.
 *
 * Everything a client or node could choose is escaped (\xHH, in JSON
 * \u00HH), so that no value can end a line or a quoted string.
 */
#ifndef MUSTER_ACCESS_LOG_H
#define MUSTER_ACCESS_LOG_H

#include <stddef.h>
#include <stdint.h>

#include "proxyd/process/snapshot.h"
#include "proxyd/process/why.h"

/* A piece of text that is not NUL-terminated; len 0: none. */
struct log_text {
	const char *at;
	size_t len;
};

struct access_log_entry {
	union {
		struct {
			struct log_text client, host, site, method, target;
			struct log_text version, referer, agent, request_id;
			struct log_text node, tls, cipher;
		};
		struct log_text texts[12]; /* the same */
	};
	int status;
	enum why why;
	uint64_t bytes_in, bytes_out; /* body bytes from and to the client */
	int64_t wall_ms;	      /* when the request came */
	int64_t total_us, queue_us, connect_us, node_us; /* -1: not so far */
	unsigned attempts;
};

/* Writes a line, LF included, of at most `room` bytes: long values are cut.
 * Returns its size (0: the format is off). */
size_t access_log_format(char *out, size_t room, enum snap_log_format,
    const struct access_log_entry *);

/* A copy with its texts, in one piece, to be freed; NULL: no memory. */
struct access_log_entry *access_log_keep(const struct access_log_entry *);

#endif
