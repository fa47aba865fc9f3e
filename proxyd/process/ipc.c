/* ipc.c: see ipc.h. */
#include "proxyd/process/ipc.h"

#include <sys/socket.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "common/base/io.h"

struct ipc_head {
	uint32_t type, unused;
	int64_t number;
};

/* Room for one descriptor, aligned as cmsg(3) wants it. */
union ipc_control {
	struct cmsghdr align;
	char space[CMSG_SPACE(sizeof(int))];
};

static int not_sent(struct err *);
static int take_fd(struct msghdr *);

int
ipc_pair(int fds[2], struct err *e)
{
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) == -1)
		return err_errno(e, ERR_LOCAL, "cannot make a socket pair");
	if (fcntl(fds[0], F_SETFL, O_NONBLOCK) == -1) {
		close(fds[0]);
		close(fds[1]);
		return err_errno(e, ERR_LOCAL, "cannot set up a socket pair");
	}
	return 0;
}

int
ipc_send(int fd, enum ipc_type type, int64_t number, int pass_fd,
    const char *text, struct err *e)
{
	struct ipc_head head = { .type = type, .number = number };
	struct iovec iov[2] = { { &head, sizeof(head) },
		{ (void *)(uintptr_t)text, text != NULL ? strlen(text) : 0 } };
	struct msghdr m = { .msg_iov = iov, .msg_iovlen = 2 };
	union ipc_control control;
	struct cmsghdr *c;

	if (iov[1].iov_len >= IPC_TEXT_MAX)
		return err_set(e, ERR_LOCAL,
		    "a message between processes is "
		    "too long (%zu bytes)",
		    iov[1].iov_len);
	if (pass_fd != -1) {
		memset(&control, 0, sizeof(control));
		m.msg_control = &control;
		m.msg_controllen = sizeof(control);
		c = CMSG_FIRSTHDR(&m);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &pass_fd, sizeof(int));
	}
	return sendmsg(fd, &m, MSG_NOSIGNAL) != -1 ? 0 : not_sent(e);
}

static int
not_sent(struct err *e)
{
	int code = errno == EAGAIN ? ERR_BUSY : ERR_LOCAL;

	/* The second: it went without reading all that we had sent. */
	if (errno == EPIPE || errno == ECONNRESET)
		code = ERR_UNREACHABLE;
	return err_errno(e, code,
	    "cannot send to another process of the proxy");
}

int
ipc_recv(int fd, struct ipc_message *out, struct err *e)
{
	struct ipc_head head;
	struct iovec iov[2] = { { &head, sizeof(head) },
		{ out->text, sizeof(out->text) - 1 } };
	union ipc_control control;
	struct msghdr m = {
		.msg_iov = iov,
		.msg_iovlen = 2,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	ssize_t n;

	do
		n = recvmsg(fd, &m, MSG_CMSG_CLOEXEC);
	while (n == -1 && errno == EINTR);
	if (n == 0 || (n == -1 && errno == ECONNRESET))
		return 0;
	if (n == -1)
		return err_errno(e, errno == EAGAIN ? ERR_BUSY : ERR_LOCAL,
		    "cannot read from another process of the proxy");
	out->fd = take_fd(&m);
	if ((size_t)n < sizeof(head) || head.type >= IPC_N_TYPES ||
	    (m.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) {
		io_close(&out->fd);
		return err_set(e, ERR_PROTOCOL,
		    "a message between processes "
		    "of the proxy is damaged");
	}
	out->type = head.type;
	out->number = head.number;
	out->text[(size_t)n - sizeof(head)] = '\0';
	return 1;
}

bool
ipc_has_ended(int fd, int wait_ms)
{
	struct pollfd p = { .fd = fd };

	return poll(&p, 1, wait_ms) > 0 && (p.revents & POLLHUP) != 0;
}

static int
take_fd(struct msghdr *m)
{
	struct cmsghdr *c = CMSG_FIRSTHDR(m);
	int fd;

	if (c == NULL || c->cmsg_level != SOL_SOCKET ||
	    c->cmsg_type != SCM_RIGHTS || c->cmsg_len != CMSG_LEN(sizeof(int)))
		return -1;
	memcpy(&fd, CMSG_DATA(c), sizeof(int));
	return fd;
}
