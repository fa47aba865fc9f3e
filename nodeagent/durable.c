/* durable.c: see durable.h. */
#include "nodeagent/durable.h"

#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <linux/aio_abi.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/io.h"

struct durable {
	aio_context_t context;
	int event_fd;
	struct event *told;
	int fd; /* that is being synced; -1: none */
	struct iocb request;
	void (*done)(const struct err *why, void *arg);
	void *arg;
};

static void on_told(evutil_socket_t, short, void *);

struct durable *
durable_new(struct event_base *base,
    void (*done)(const struct err *why, void *arg), void *arg, struct err *e)
{
	struct durable *d = calloc(1, sizeof(*d));

	if (d == NULL) {
		err_set(e, ERR_LOCAL, "out of memory for syncing");
		return NULL;
	}
	d->fd = -1;
	d->done = done;
	d->arg = arg;
	d->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (d->event_fd == -1 || syscall(SYS_io_setup, 1, &d->context) == -1) {
		err_errno(e, ERR_LOCAL, "cannot sync in the background");
		goto fail;
	}
	d->told =
	    event_new(base, d->event_fd, EV_READ | EV_PERSIST, on_told, d);
	if (d->told != NULL && event_add(d->told, NULL) == 0)
		return d;
	err_set(e, ERR_LOCAL, "out of memory for syncing");
fail:
	durable_free(d);
	return NULL;
}

void
durable_free(struct durable *d)
{
	if (d == NULL)
		return;
	/* io_destroy(2) waits for the request. */
	if (d->context != 0)
		syscall(SYS_io_destroy, d->context);
	if (d->told != NULL)
		event_free(d->told);
	io_close(&d->event_fd);
	io_close(&d->fd);
	free(d);
}

int
durable_begin(struct durable *d, const char *path, struct err *e)
{
	struct iocb *requests[] = { &d->request };

	d->fd = open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (d->fd == -1)
		return err_errno(e, ERR_LOCAL, "cannot open %s", path);
	memset(&d->request, 0, sizeof(d->request));
	d->request.aio_lio_opcode = IOCB_CMD_FDSYNC;
	d->request.aio_fildes = (uint32_t)d->fd;
	d->request.aio_flags = IOCB_FLAG_RESFD;
	d->request.aio_resfd = (uint32_t)d->event_fd;
	if (syscall(SYS_io_submit, d->context, 1, requests) == 1)
		return 0;
	err_errno(e, ERR_LOCAL, "cannot sync %s", path);
	io_close(&d->fd);
	return -1;
}

bool
durable_is_busy(const struct durable *d)
{
	return d->fd != -1;
}

static void
on_told(evutil_socket_t fd, short what, void *arg)
{
	struct timespec at_once = { 0, 0 };
	struct durable *d = arg;
	struct io_event event;
	uint64_t count;
	struct err e;

	(void)what;
	if (io_read_n(fd, &count, sizeof(count)) == -1 ||
	    syscall(SYS_io_getevents, d->context, 1, 1, &event, &at_once) != 1)
		return;
	io_close(&d->fd);
	if (event.res >= 0) {
		d->done(NULL, d->arg);
		return;
	}
	errno = (int)-event.res;
	err_errno(&e, ERR_LOCAL, "cannot sync");
	d->done(&e, d->arg);
}
