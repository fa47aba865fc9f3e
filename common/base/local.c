/* local.c: see local.h. */
#include "common/base/local.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/io.h"

#define BACKLOG 16

static int connect_to(const char *path, int flags, struct err *);
static int read_line(int fd, size_t max, char **line, size_t *size,
    struct err *);
static int address_of(const char *path, struct sockaddr_un *, int *dir_fd,
    struct err *);

int
local_listen(const char *path, struct err *e)
{
	struct sockaddr_un sun;
	struct err nobody;
	int dir_fd = -1, fd, live;
	mode_t before;

	if ((live = local_connect(path, &nobody)) != -1) {
		close(live);
		return err_set(e, ERR_BUSY, "another process listens on %s",
		    path);
	}
	if (address_of(path, &sun, &dir_fd, e) == -1)
		return -1;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	unlink(sun.sun_path);
	before = umask(0177);
	if (fd == -1 || bind(fd, (struct sockaddr *)&sun, sizeof(sun)) == -1 ||
	    listen(fd, BACKLOG) == -1) {
		err_errno(e, ERR_LOCAL, "cannot listen on %s", path);
		io_close(&fd);
	}
	umask(before);
	close(dir_fd);
	return fd;
}

int
local_connect(const char *path, struct err *e)
{
	return connect_to(path, 0, e);
}

int
local_connect_now(const char *path, struct err *e)
{
	return connect_to(path, SOCK_NONBLOCK, e);
}

int
local_ask(const char *path, const char *question, int silence_s, size_t max,
    char **answer, size_t *size, struct err *e)
{
	const struct timeval limit = { .tv_sec = silence_s };
	int fd = local_connect(path, e), rv;

	if (fd == -1)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	if (io_write_n(fd, question, strlen(question)) == -1 ||
	    io_write_n(fd, "\n", 1) == -1)
		rv = err_errno(e, ERR_TIMEOUT, "cannot ask on %s", path);
	else
		rv = read_line(fd, max, answer, size, e);
	close(fd);
	return rv;
}

int
local_peer_uid(int fd, uid_t *uid, struct err *e)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == -1)
		return err_errno(e, ERR_LOCAL, "cannot tell who connects");
	*uid = peer.uid;
	return 0;
}

static int
connect_to(const char *path, int flags, struct err *e)
{
	struct sockaddr_un sun;
	int dir_fd = -1, fd;

	if (address_of(path, &sun, &dir_fd, e) == -1)
		return -1;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);
	if (fd == -1)
		err_errno(e, ERR_LOCAL, "cannot make a socket");
	else if (connect(fd, (struct sockaddr *)&sun, sizeof(sun)) == -1) {
		err_errno(e, errno == EAGAIN ? ERR_BUSY : ERR_UNREACHABLE,
		    "nobody answers on %s", path);
		io_close(&fd);
	}
	close(dir_fd);
	return fd;
}

static int
read_line(int fd, size_t max, char **line, size_t *size, struct err *e)
{
	char buf[65536], *text = NULL, *more;
	size_t n = 0, room = 0;
	ssize_t got;

	while ((got = read(fd, buf, sizeof(buf))) > 0) {
		if ((size_t)got > max - n) {
			err_set(e, ERR_PROTOCOL,
			    "an answer is longer than %zu bytes", max);
			goto fail;
		}
		if (room - n < (size_t)got) {
			room = (n + (size_t)got) * 2;
			if ((more = realloc(text, room)) == NULL) {
				err_set(e, ERR_LOCAL,
				    "out of memory for an answer");
				goto fail;
			}
			text = more;
		}
		memcpy(text + n, buf, (size_t)got);
		n += (size_t)got;
		if (text[n - 1] == '\n') {
			*line = text;
			*size = n - 1;
			return 0;
		}
	}
	if (got == -1)
		err_errno(e, ERR_TIMEOUT, "no answer");
	else
		err_set(e, ERR_PROTOCOL, "the answer was broken off");
fail:
	free(text);
	return -1;
}

/* By way of a descriptor of its directory, which makes any path short.  The
 * address is good while *dir_fd is open. */
static int
address_of(const char *path, struct sockaddr_un *sun, int *dir_fd,
    struct err *e)
{
	const char *slash = strrchr(path, '/');
	char dir[4096] = ".";
	int n;

	if (slash != NULL)
		snprintf(dir, sizeof(dir), "%.*s",
		    slash == path ? 1 : (int)(slash - path), path);
	*dir_fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (*dir_fd == -1)
		return err_errno(e,
		    errno == ENOENT ? ERR_UNREACHABLE : ERR_LOCAL,
		    "cannot open directory %s", dir);
	memset(sun, 0, sizeof(*sun));
	sun->sun_family = AF_UNIX;
	n = snprintf(sun->sun_path, sizeof(sun->sun_path),
	    "/proc/self/fd/%d/%s", *dir_fd, slash != NULL ? slash + 1 : path);
	if ((size_t)n < sizeof(sun->sun_path))
		return 0;
	io_close(dir_fd);
	return err_set(e, ERR_LOCAL, "the name of the socket %s is too long",
	    path);
}
