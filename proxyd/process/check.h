/*
 * check.h: what a health check says to a node, and what the answer means.
 * No sockets, no clock: health.c has them.
 */
#ifndef MUSTER_CHECK_H
#define MUSTER_CHECK_H

#include <stdbool.h>
#include <stddef.h>

#include "proxyd/process/snapshot.h"
#include "proxyd/process/why.h"

struct proxy_header;

#define CHECK_HELLO_MAX	 3072 /* what is said at most */
#define CHECK_ANSWER_MAX 12   /* that much of an answer decides */

/* What is said once connected: its size, 0: nothing.  `ends` are those of the
 * connection, if the node wants to know whose it is. */
size_t check_hello(const struct snapshot *, const struct snap_role *,
    const struct snap_node *, const struct proxy_header *ends,
    char out[CHECK_HELLO_MAX]);

/* Whether an answer must follow. */
bool check_awaits(const struct snap_role *);

/* What the answer means so far; WHY_NONE: more of it is needed. */
enum why check_answer(const struct snap_role *, const char *bytes, size_t n);

/* The status of a response that begins like this: 100-599; 0: more bytes are
 * needed; -1: not HTTP. */
int check_status(const char *bytes, size_t n);

#endif
