/* pipe.c: see pipe.h. */
#include "proxyd/http/pipe.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

static struct pipe *
pipe_new(void)
{
	struct pipe *p = malloc(sizeof(*p));
	int fds[2], size;

	if (p == NULL)
		return NULL;
	if (pipe2(fds, O_NONBLOCK | O_CLOEXEC) == -1) {
		free(p);
		return NULL;
	}
	/* Beyond a user's share the kernel says no; a small pipe will do. */
	size = fcntl(fds[1], F_SETPIPE_SZ, PIPE_SIZE);
	if (size == -1)
		size = fcntl(fds[1], F_GETPIPE_SZ);
	p->out = fds[0];
	p->in = fds[1];
	p->held = 0;
	p->size = size > 0 ? (size_t)size : 4096;
	return p;
}

static void
pipe_free(struct pipe *p)
{
	close(p->in);
	close(p->out);
	free(p);
}

struct pipe *
pipe_take(struct pipe_pool *pool)
{
	struct pipe *p = pool->free;

	if (p != NULL) {
		pool->free = p->next;
		return p;
	}
	if (pool->n >= PIPES_MAX || (p = pipe_new()) == NULL)
		return NULL;
	pool->n++;
	return p;
}

void
pipe_give(struct pipe_pool *pool, struct pipe **pp)
{
	struct pipe *p = *pp;

	if (p == NULL)
		return;
	*pp = NULL;
	if (p->held > 0) {
		pool->n--;
		pipe_free(p);
		return;
	}
	p->next = pool->free;
	pool->free = p;
}

void
pipe_pool_free(struct pipe_pool *pool)
{
	while (pool->free != NULL) {
		struct pipe *p = pool->free;

		pool->free = p->next;
		pipe_free(p);
	}
	pool->n = 0;
}

ssize_t
pipe_fill(struct pipe *p, struct sock *src, size_t max)
{
	ssize_t n;

	do
		n = splice(src->fd, NULL, p->in, NULL, max,
		    SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
	while (n == -1 && errno == EINTR);
	if (n > 0) {
		p->held += (size_t)n;
		return n;
	}
	if (n == 0) {
		src->closed = true;
		src->readable = false;
		return SOCK_EOF;
	}
	/* EAGAIN of a pipe that still holds bytes may be the pipe's own. */
	if (errno != EAGAIN || p->held == 0)
		src->readable = false;
	return errno == EAGAIN ? SOCK_AGAIN : SOCK_ERROR;
}

ssize_t
pipe_drain(struct pipe *p, struct sock *dst, size_t max)
{
	ssize_t n;

	do
		n = splice(p->out, NULL, dst->fd, NULL, max,
		    SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
	while (n == -1 && errno == EINTR);
	if (n == -1) {
		dst->writable = false;
		return errno == EAGAIN ? 0 : SOCK_ERROR;
	}
	dst->writable = (size_t)n == max;
	p->held -= (size_t)n;
	return n;
}
