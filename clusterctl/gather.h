/*
 * gather.h: the output of many nodes, folded: equal output is shown once,
 * under the set of nodes that gave it (exec -g).
 *
 * Bytes are kept in memory up to a bound, then in an unlinked temporary file
 * of $TMPDIR.  Equal means equal bytes (by BLAKE2b).
 */
#ifndef MUSTER_GATHER_H
#define MUSTER_GATHER_H

#include <sys/types.h>
#include <stdint.h>

#include "clusterctl/sink.h"

#define GATHER_MEMORY (8u << 20)

struct gather;

struct gather_group {
	const size_t *nodes; /* indexes, ascending */
	size_t n_nodes;
	uint64_t size; /* bytes of output; the same for all */
	char *label;   /* "web[1-3] (3)"; "web1" for a single node */
	char *set;     /* "web[1-3]" */
};

enum gather_style {
	GATHER_HEADER, /* dashes, label, dashes, text */
	GATHER_PREFIX, /* "web[1-3]: " before each line */
	GATHER_BARE    /* text only */
};

/* names[n] are borrowed, in the order that decides "lowest index". */
struct gather *gather_new(const char *const *names, size_t n, size_t memory_max,
    struct err *);
void gather_free(struct gather *);

/* More output of node names[node].  n may be 0: it has answered, with
 * nothing so far.  A node never named here belongs to no group. */
int gather_put(struct gather *, size_t node, const void *bytes, size_t n,
    struct err *);

/* Largest group first, then the one with the lowest node.  Borrowed until
 * the next gather_put or gather_free. */
int gather_groups(struct gather *, const struct gather_group **, size_t *n,
    struct err *);

/* Up to n bytes at an offset of a group's output: how many, 0 at its end,
 * -1 on error. */
ssize_t gather_read(struct gather *, const struct gather_group *,
    uint64_t offset, void *buf, size_t n, struct err *);

/* All groups that have output. */
int gather_print(struct gather *, enum gather_style, struct sink *,
    struct err *);

#endif
