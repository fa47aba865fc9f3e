/* log_ring.c: see log_ring.h. */
#include "proxyd/process/log_ring.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <stdalign.h>
#include <unistd.h>

#include "common/base/io.h"

#define HEAD_SIZE 4096U /* a page, so that the data can be mapped again */

_Static_assert(sizeof(struct log_ring_head) <= HEAD_SIZE, "head fits a page");

int
log_ring_create(struct log_ring *r, int wake, struct err *e)
{
	int fd = memfd_create("muster-log", MFD_CLOEXEC);

	if (fd == -1 || ftruncate(fd, HEAD_SIZE + LOG_RING_SIZE) == -1) {
		err_errno(e, ERR_LOCAL, "cannot make a log ring");
		io_close(&fd);
		return -1;
	}
	return log_ring_map(r, fd, wake, e);
}

/* One reservation holds the head and the data twice, so that what begins near
 * the end of the ring goes on in one piece. */
int
log_ring_map(struct log_ring *r, int fd, int wake, struct err *e)
{
	size_t whole = HEAD_SIZE + 2UL * LOG_RING_SIZE;
	struct stat sb;
	char *p;

	p = mmap(NULL, whole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED || fstat(fd, &sb) == -1 ||
	    sb.st_size != HEAD_SIZE + LOG_RING_SIZE ||
	    mmap(p, HEAD_SIZE + LOG_RING_SIZE, PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED ||
	    mmap(p + HEAD_SIZE + LOG_RING_SIZE, LOG_RING_SIZE,
		PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd,
		HEAD_SIZE) == MAP_FAILED) {
		err_errno(e, ERR_LOCAL, "cannot map a log ring");
		if (p != MAP_FAILED)
			munmap(p, whole);
		close(fd);
		return -1;
	}
	r->shared = (void *)p;
	r->data = p + HEAD_SIZE;
	r->fd = fd;
	r->wake = wake;
	return 0;
}

void
log_ring_unmap(struct log_ring *r)
{
	if (r->shared != NULL)
		munmap(r->shared, HEAD_SIZE + 2UL * LOG_RING_SIZE);
	r->shared = NULL;
	io_close(&r->fd);
}

char *
log_ring_room(struct log_ring *r, size_t size)
{
	uint64_t head =
	    atomic_load_explicit(&r->shared->head, memory_order_relaxed);
	uint64_t tail =
	    atomic_load_explicit(&r->shared->tail, memory_order_acquire);

	if (head - tail + size > LOG_RING_SIZE)
		return NULL;
	return r->data + (head & (LOG_RING_SIZE - 1));
}

void
log_ring_put(struct log_ring *r, size_t size)
{
	static const uint64_t one = 1;
	uint64_t head =
	    atomic_load_explicit(&r->shared->head, memory_order_relaxed);
	uint64_t quarter = LOG_RING_SIZE / 4;

	atomic_store_explicit(&r->shared->head, head + size,
	    memory_order_release);
	if (r->wake != -1 && head / quarter != (head + size) / quarter)
		io_write_n(r->wake, &one, sizeof(one));
}

const char *
log_ring_get(struct log_ring *r, size_t *size)
{
	uint64_t tail =
	    atomic_load_explicit(&r->shared->tail, memory_order_relaxed);
	uint64_t head =
	    atomic_load_explicit(&r->shared->head, memory_order_acquire);
	uint64_t n = head - tail;

	/* A worker can be made to write anything here: never read past. */
	*size = n <= LOG_RING_SIZE ? (size_t)n : 0;
	return r->data + (tail & (LOG_RING_SIZE - 1));
}

void
log_ring_taken(struct log_ring *r, size_t size)
{
	uint64_t tail =
	    atomic_load_explicit(&r->shared->tail, memory_order_relaxed);

	atomic_store_explicit(&r->shared->tail, tail + size,
	    memory_order_release);
}
