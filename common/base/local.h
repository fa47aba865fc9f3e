/*
 * local.h: Unix stream sockets between programs of one machine.  A path may
 * be of any length, also beyond the 107 bytes of a socket address.
 */
#ifndef MUSTER_LOCAL_H
#define MUSTER_LOCAL_H

#include <sys/types.h>
#include <stddef.h>

#include "common/base/err.h"

/*
 * Listens (non-blocking, 0600 from its first instant).  A socket of a dead
 * process is replaced; that of a live one is ERR_BUSY.  -1 on failure.
 */
int local_listen(const char *path, struct err *);

/* Connects (blocking, close-on-exec).  ERR_UNREACHABLE: nobody listens.
 * Returns the descriptor, or -1. */
int local_connect(const char *path, struct err *);

/* The same for an event loop: the descriptor does not block, and neither
 * does the call.  ERR_BUSY: it has no room for another connection now. */
int local_connect_now(const char *path, struct err *);

/*
 * A question and its answer, a line each, of a program that listens there:
 * one of ours.  *answer is malloc'ed, the caller's, without the newline and
 * of at most max bytes.  ERR_UNREACHABLE: nobody listens; ERR_TIMEOUT: it is
 * silent for so many seconds; ERR_PROTOCOL: the answer has no end.
 */
int local_ask(const char *path, const char *question, int silence_s, size_t max,
    char **answer, size_t *size, struct err *);

/* The user at the other end of a connection.  0 or -1. */
int local_peer_uid(int fd, uid_t *uid, struct err *);

#endif
