/*
 * check.h: what a health check says to a node, and what the answers mean.
 * No sockets, no clock: health.c has them.
 */
#ifndef MUSTER_CHECK_H
#define MUSTER_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proxyd/process/snapshot.h"
#include "proxyd/process/why.h"

struct proxy_header;

#define CHECK_SAY_MAX	 3072
#define CHECK_HEAR_MAX	 512
#define CHECK_DETAIL_MAX 96

/* A check under way. */
struct check {
	const struct snapshot *snap; /* borrowed, like what follows */
	const struct snap_role *role;
	const struct snap_node *node;
	uint8_t n_heard;   /* whole messages so far */
	size_t heard_size; /* what came and is not understood yet */
	char heard[CHECK_HEAR_MAX];
	/* The node's own words on why it is not well, or "". */
	char detail[CHECK_DETAIL_MAX];
};

/* What is to be said now; size 0: nothing. */
struct check_say {
	size_t size;
	char bytes[CHECK_SAY_MAX];
};

/*
 * Connected.  WHY_CHECK_OK: that is all; WHY_NONE: it goes on.  `ends` are
 * those of the connection, for a node that wants to know whose it is.
 */
enum why check_begin(struct check *, const struct proxy_header *ends,
    struct check_say *);

/* More has come into `heard`.  As above; anything else: the node is down. */
enum why check_goes_on(struct check *, struct check_say *);

/* The status of a response that begins like this: 100-599; 0: more bytes are
 * needed; -1: not HTTP. */
int check_status(const char *bytes, size_t n);

#endif
