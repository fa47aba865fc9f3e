/*
 * sink.h: where output of nodes goes: a descriptor, and whether a person's
 * terminal is at its other end.
 *
 * On a terminal, bytes that came from a node are made harmless: control
 * bytes and escapes show as ^[ and the like, bytes that are not UTF-8 as
 * U+FFFD.  Elsewhere every byte goes out as it came.  A reader that went
 * away (EPIPE) is no error: the sink is closed, and swallows the rest.
 */
#ifndef MUSTER_SINK_H
#define MUSTER_SINK_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/err.h"

struct sink {
	int fd; /* borrowed */
	bool terminal;
	bool closed; /* the reader went away */
	char *buf;   /* held back */
	size_t len;
};

/* Asks isatty(3); a test sets ->terminal itself. */
void sink_init(struct sink *, int fd);
void sink_fini(struct sink *);

/* Our own words. */
int sink_printf(struct sink *, struct err *, const char *fmt, ...) PRINTF(3, 4);

/* Bytes of a node. */
int sink_put(struct sink *, const void *bytes, size_t n, struct err *);

/* Writes out what is held back.  Blocks while the reader is slow. */
int sink_flush(struct sink *, struct err *);

/*
 * The same bytes as valid UTF-8 (invalid ones: U+FFFD), for JSON; with
 * `harmless`, control bytes are made visible too.  malloc'ed, with a NUL
 * behind *len bytes; NULL when out of memory.
 */
char *sink_text(const void *bytes, size_t n, bool harmless, size_t *len);

#endif
