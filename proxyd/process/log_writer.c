/* log_writer.c: see log_writer.h. */
#include "proxyd/process/log_writer.h"

#include <sys/eventfd.h>
#include <sys/queue.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/io.h"
#include "common/base/log.h"

#define WRITE_EVERY_MS 200
#define FINISH_MS      1000

struct held_ring {
	struct log_ring ring;
	bool dropped; /* its worker is gone: free it once it is empty */
	LIST_ENTRY(held_ring) link;
};

struct log_writer {
	pthread_t thread;
	pthread_mutex_t lock; /* guards all below; never held in a write */
	LIST_HEAD(, held_ring) rings;
	char path[PATH_MAX];
	int fd;	  /* /dev/null: lines are thrown away; see swap_fd() */
	int wake; /* eventfd: a ring fills, or something changed here */
	bool stop, failing;
	_Atomic unsigned file; /* the how manieth that was opened */
	unsigned torn; /* the one whose last line is not whole; 0: none */
};

static void *run(void *);
static void write_all(struct log_writer *);
static void write_ring(struct log_writer *, struct held_ring *);
static int write_lines(struct log_writer *, const char *lines, size_t);
static int swap_fd(struct log_writer *, const char *path, struct err *);
static void free_writer(struct log_writer *);
static void wake(struct log_writer *);

struct log_writer *
log_writer_new(struct err *e)
{
	struct log_writer *w = calloc(1, sizeof(*w));
	sigset_t all, old;
	int rc;

	if (w == NULL) {
		err_set(e, ERR_LOCAL, "out of memory for the access log");
		return NULL;
	}
	LIST_INIT(&w->rings);
	pthread_mutex_init(&w->lock, NULL);
	w->file = 1;
	w->fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
	w->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (w->fd == -1 || w->wake == -1) {
		err_errno(e, ERR_LOCAL, "no descriptor for the access log");
		free_writer(w);
		return NULL;
	}
	/* Signals are the main thread's. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = pthread_create(&w->thread, NULL, run, w);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (rc != 0) {
		errno = rc;
		err_errno(e, ERR_LOCAL, "no thread for the access log");
		free_writer(w);
		return NULL;
	}
	return w;
}

void
log_writer_free(struct log_writer *w)
{
	struct timespec limit;

	if (w == NULL)
		return;
	pthread_mutex_lock(&w->lock);
	w->stop = true;
	pthread_mutex_unlock(&w->lock);
	wake(w);
	clock_gettime(CLOCK_REALTIME, &limit);
	limit.tv_sec += FINISH_MS / 1000;
	/* A thread that hangs in a write keeps its memory; we exit anyway. */
	if (pthread_timedjoin_np(w->thread, NULL, &limit) == 0)
		free_writer(w);
}

int
log_writer_open(struct log_writer *w, const char *path, struct err *e)
{
	if (strcmp(w->path, path) == 0)
		return 0;
	if (swap_fd(w, *path != '\0' ? path : "/dev/null", e) == -1)
		return -1;
	snprintf(w->path, sizeof(w->path), "%s", path);
	return 0;
}

int
log_writer_reopen(struct log_writer *w, struct err *e)
{
	return *w->path == '\0' ? 0 : swap_fd(w, w->path, e);
}

struct log_ring *
log_writer_ring(struct log_writer *w, struct err *e)
{
	struct held_ring *r = calloc(1, sizeof(*r));

	if (r == NULL) {
		err_set(e, ERR_LOCAL, "out of memory for the access log");
		return NULL;
	}
	if (log_ring_create(&r->ring, w->wake, e) == -1) {
		free(r);
		return NULL;
	}
	pthread_mutex_lock(&w->lock);
	LIST_INSERT_HEAD(&w->rings, r, link);
	pthread_mutex_unlock(&w->lock);
	return &r->ring;
}

void
log_writer_drop(struct log_writer *w, struct log_ring *ring)
{
	/* The ring is the first member of what the list holds. */
	struct held_ring *r = (struct held_ring *)ring;

	if (ring == NULL)
		return;
	pthread_mutex_lock(&w->lock);
	r->dropped = true;
	pthread_mutex_unlock(&w->lock);
	wake(w);
}

static void *
run(void *arg)
{
	struct log_writer *w = arg;
	struct pollfd p = { .fd = w->wake, .events = POLLIN };
	eventfd_t ignored;
	bool stop;

	do {
		poll(&p, 1, WRITE_EVERY_MS);
		if (eventfd_read(w->wake, &ignored) == -1)
			ignored = 0; /* the time was up */
		pthread_mutex_lock(&w->lock);
		stop = w->stop;
		pthread_mutex_unlock(&w->lock);
		write_all(w);
	} while (!stop);
	return NULL;
}

/* Only this thread takes rings off the list, so `next` stays good while the
 * lock is open. */
static void
write_all(struct log_writer *w)
{
	struct held_ring *r, *next;

	pthread_mutex_lock(&w->lock);
	for (r = LIST_FIRST(&w->rings); r != NULL; r = next) {
		bool dropped = r->dropped;

		pthread_mutex_unlock(&w->lock);
		write_ring(w, r);
		pthread_mutex_lock(&w->lock);
		next = LIST_NEXT(r, link);
		if (!dropped)
			continue;
		LIST_REMOVE(r, link);
		log_ring_unmap(&r->ring);
		free(r);
	}
	pthread_mutex_unlock(&w->lock);
}

static void
write_ring(struct log_writer *w, struct held_ring *r)
{
	const char *lines;
	size_t size;

	lines = log_ring_get(&r->ring, &size);
	if (size == 0)
		return;
	if (write_lines(w, lines, size) == -1) {
		if (!w->failing)
			log_error("access log %s: cannot write: %s; lines are "
				  "lost until it works again",
			    w->path, strerror(errno));
		w->failing = true;
	} else {
		w->failing = false;
	}
	log_ring_taken(&r->ring, size);
}

/* A disk that gets full takes half a line; the next one begins a line of its
 * own all the same. */
static int
write_lines(struct log_writer *w, const char *lines, size_t size)
{
	unsigned file = atomic_load(&w->file);
	size_t put;

	if (w->torn == file && io_write_n(w->fd, "\n", 1) == -1)
		return -1;
	w->torn = 0;
	if (io_write_upto(w->fd, lines, size, &put) == 0)
		return 0;
	if (put > 0 && lines[put - 1] != '\n')
		w->torn = file;
	return -1;
}

/* The number of the open descriptor never changes: dup3() is atomic, so the
 * thread needs no lock to write to it. */
static int
swap_fd(struct log_writer *w, const char *path, struct err *e)
{
	int rv,
	    fd = open(path,
		O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW |
		    O_NOCTTY,
		0600);

	if (fd == -1)
		return err_errno(e, ERR_LOCAL, "access log %s", path);
	rv = dup3(fd, w->fd, O_CLOEXEC);
	if (rv == -1)
		err_errno(e, ERR_LOCAL, "access log %s", path);
	else
		atomic_fetch_add(&w->file, 1);
	close(fd);
	return rv == -1 ? -1 : 0;
}

static void
free_writer(struct log_writer *w)
{
	struct held_ring *r;

	while ((r = LIST_FIRST(&w->rings)) != NULL) {
		LIST_REMOVE(r, link);
		log_ring_unmap(&r->ring);
		free(r);
	}
	io_close(&w->fd);
	io_close(&w->wake);
	free(w);
}

static void
wake(struct log_writer *w)
{
	if (eventfd_write(w->wake, 1) == -1)
		log_debug("the access log is awake already");
}
