/*
 * pipe.h: pipes for splice(2): pages go from socket to socket without being
 * copied.  A worker keeps a few large ones; when they are all in use, a flow
 * copies.
 */
#ifndef MUSTER_PIPE_H
#define MUSTER_PIPE_H

#include <stdbool.h>
#include <stddef.h>

#include "proxyd/http/sock.h"

#define PIPE_SIZE (1U << 20)
#define PIPES_MAX 32 /* a worker; the kernel counts their pages by user */

struct pipe {
	struct pipe *next;
	int in, out; /* write end, read end */
	size_t held; /* bytes in it */
	size_t size;
};

struct pipe_pool {
	struct pipe *free;
	unsigned n; /* free or not */
};

/* An empty one, or NULL: copy instead. */
struct pipe *pipe_take(struct pipe_pool *);

/* Gives *p back, if there is one; one with bytes in it is closed. */
void pipe_give(struct pipe_pool *, struct pipe **p);

void pipe_pool_free(struct pipe_pool *);

/* As sock_recv() and sock_send(), through the pipe; max is at most what it
 * holds when it is drained. */
ssize_t pipe_fill(struct pipe *, struct sock *src, size_t max);
ssize_t pipe_drain(struct pipe *, struct sock *dst, size_t max);

#endif
