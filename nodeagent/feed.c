/* feed.c: see feed.h. */
#include "nodeagent/feed.h"

#include <sys/ioctl.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <event2/buffer.h>

#include "common/base/io.h"
#include "common/base/log.h"

static void on_writable(evutil_socket_t, short, void *);
static void write_kept(struct feed *);
static void keep_rest(struct feed *);

void
feed_init(struct feed *f)
{
	memset(f, 0, sizeof(*f));
	f->state = FEED_CLOSED;
	f->fd = f->rest = -1;
}

int
feed_open(struct feed *f, struct event_base *base, int fd, bool terminal,
    void (*taken)(void *arg), void *arg, struct err *e)
{
	f->fd = fd;
	f->terminal = terminal;
	f->taken = taken;
	f->arg = arg;
	f->kept = evbuffer_new();
	f->writable = event_new(base, fd, EV_WRITE, on_writable, f);
	if (f->kept == NULL || f->writable == NULL)
		return err_set(e, ERR_LOCAL, "out of memory for an input");
	f->state = FEED_OPEN;
	return 0;
}

void
feed_fini(struct feed *f)
{
	feed_close(f);
	if (f->kept != NULL)
		evbuffer_free(f->kept);
	f->kept = NULL;
	io_close(&f->rest);
}

void
feed_write(struct feed *f, const void *bytes, size_t size)
{
	if (f->state != FEED_OPEN)
		return;
	if (evbuffer_add(f->kept, bytes, size) == -1) {
		log_warn("out of memory for the input of an order");
		feed_close(f);
		return;
	}
	write_kept(f);
}

size_t
feed_kept(const struct feed *f)
{
	return f->kept != NULL ? evbuffer_get_length(f->kept) : 0;
}

void
feed_end(struct feed *f)
{
	static const char end_of_file = 4; /* ^D: a terminal has no end */

	if (f->state != FEED_OPEN)
		return;
	if (f->terminal) {
		feed_write(f, &end_of_file, 1);
		return;
	}
	f->state = FEED_ENDING;
	write_kept(f);
}

void
feed_close(struct feed *f)
{
	f->state = FEED_CLOSED;
	if (f->writable != NULL)
		event_free(f->writable);
	f->writable = NULL;
	if (f->kept != NULL)
		evbuffer_drain(f->kept, evbuffer_get_length(f->kept));
	io_close(&f->fd);
}

uint64_t
feed_used(const struct feed *f)
{
	int fd = f->fd != -1 ? f->fd : f->rest;
	int unread = 0;

	if (f->terminal || fd == -1 || ioctl(fd, FIONREAD, &unread) == -1)
		return f->written;
	return f->written - (uint64_t)unread;
}

static void
on_writable(evutil_socket_t fd, short what, void *arg)
{
	struct feed *f = arg;

	(void)fd;
	(void)what;
	write_kept(f);
	f->taken(f->arg);
}

static void
write_kept(struct feed *f)
{
	int n;

	while (evbuffer_get_length(f->kept) > 0) {
		n = evbuffer_write(f->kept, f->fd);
		if (n > 0) {
			f->written += (uint64_t)n;
			continue;
		}
		if (n == -1 && errno == EINTR)
			continue;
		if (n == -1 && errno != EAGAIN) {
			/* EPIPE: it reads no more, which is its affair. */
			feed_close(f);
			return;
		}
		event_add(f->writable, NULL);
		return;
	}
	if (f->state == FEED_ENDING) {
		keep_rest(f);
		feed_close(f);
	}
}

/* The end of input is the close of our end; through another one we see, once
 * the process has ended, what it left unread. */
static void
keep_rest(struct feed *f)
{
	char path[32];

	if (f->terminal || f->written == 0)
		return;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", f->fd);
	f->rest = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
}
