/* wire.c: see wire.h. */
#include "proxyd/static/wire.h"

#include <sys/socket.h>
#include <errno.h>
#include <string.h>

/* Room for one descriptor, aligned as cmsg(3) wants it. */
union control {
	struct cmsghdr align;
	char space[CMSG_SPACE(sizeof(int))];
};

int
wire_send(int socket, const struct iovec *iov, int n, int fd)
{
	struct msghdr m = { .msg_iov = (struct iovec *)(uintptr_t)iov,
		.msg_iovlen = (size_t)n };
	union control control;
	struct cmsghdr *c;
	ssize_t sent;

	if (fd != -1) {
		memset(&control, 0, sizeof(control));
		m.msg_control = &control;
		m.msg_controllen = sizeof(control);
		c = CMSG_FIRSTHDR(&m);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &fd, sizeof(int));
	}
	do
		sent = sendmsg(socket, &m, MSG_NOSIGNAL);
	while (sent == -1 && errno == EINTR);
	return sent == -1 ? -1 : 0;
}

ssize_t
wire_recv(int socket, const struct iovec *iov, int n, int *fd)
{
	union control control;
	struct msghdr m = {
		.msg_iov = (struct iovec *)(uintptr_t)iov,
		.msg_iovlen = (size_t)n,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *c;
	ssize_t got;

	*fd = -1;
	do
		got = recvmsg(socket, &m, MSG_CMSG_CLOEXEC);
	while (got == -1 && errno == EINTR);
	if (got <= 0)
		return got;
	c = CMSG_FIRSTHDR(&m);
	if (c != NULL && c->cmsg_level == SOL_SOCKET &&
	    c->cmsg_type == SCM_RIGHTS && c->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(fd, CMSG_DATA(c), sizeof(int));
	return got;
}
