/*
 * labels.h: live output, "node: line" as the lines come.
 *
 * Only whole lines go out, so lines of two nodes never mix.  With labels, a
 * last line that lacks its newline gets one; without, the bytes of a node are
 * exact.  A line longer than LABEL_PIECE goes out in pieces, each labelled.
 */
#ifndef MUSTER_LABELS_H
#define MUSTER_LABELS_H

#include "clusterctl/sink.h"

#define LABEL_PIECE 65536

/* One stream of one node.  An idle one holds no buffer. */
struct label {
	struct sink *sink; /* borrowed */
	const char *node;  /* borrowed; NULL: no label */
	char *held;	   /* the line that has begun */
	size_t len;
};

void label_init(struct label *, struct sink *, const char *node);

/* Takes up n bytes and writes the lines that are whole. */
int label_put(struct label *, const void *bytes, size_t n, struct err *);

/* The stream has ended: writes what is left.  Frees the buffer. */
int label_end(struct label *, struct err *);

/* Frees without writing. */
void label_fini(struct label *);

#endif
