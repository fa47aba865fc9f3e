/* listeners.c: see listeners.h. */
#include "proxyd/process/listeners.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/addr.h"
#include "common/base/io.h"

#define BACKLOG 4096

static int want(struct listeners *, const struct listeners *old,
    const char *text, int worker, struct err *);
static struct listener *find(const struct listeners *, const char *text,
    int worker);
static bool has_address(const struct listeners *, const char *text);
static int open_socket(const char *text, bool first, int *fd, struct err *);
static int open_tcp(const char *text, bool first, int *fd, struct err *);
static int bind_tcp(const struct addr *, bool shared, int *fd, struct err *);
static int open_unix(const char *path, mode_t mode, int *fd, struct err *);
static int stale_unix(const struct sockaddr_un *);
static void close_others(struct listeners *, const struct listeners *kept);

int
listeners_apply(struct listeners *l, const char *list, unsigned n_workers,
    struct err *e)
{
	char text[LISTENER_TEXT_MAX];
	struct listeners next = { NULL, 0 };

	for (const char *p = list; *p != '\0';) {
		size_t len = strcspn(p, " ");

		if (len >= sizeof(text)) {
			err_set(e, ERR_USAGE, "address too long: %.60s", p);
			goto fail;
		}
		memcpy(text, p, len);
		text[len] = '\0';
		p += len + (p[len] == ' ');
		if (strncmp(text, "unix:", 5) == 0) {
			if (want(&next, l, text, LISTENER_ALL, e) == -1)
				goto fail;
			continue;
		}
		for (unsigned i = 0; i < n_workers; i++)
			if (want(&next, l, text, (int)i, e) == -1)
				goto fail;
	}
	close_others(l, &next);
	free(l->rows);
	*l = next;
	return 0;
fail:
	close_others(&next, l);
	free(next.rows);
	return -1;
}

int
listeners_take(struct listeners *l, const char *text, int worker, int fd,
    struct err *e)
{
	struct listener *rows = reallocarray(l->rows, l->n + 1, sizeof(*rows));

	if (rows == NULL) {
		close(fd);
		return err_set(e, ERR_LOCAL, "out of memory for listeners");
	}
	l->rows = rows;
	snprintf(rows[l->n].text, LISTENER_TEXT_MAX, "%s", text);
	rows[l->n].worker = worker;
	rows[l->n++].fd = fd;
	return 0;
}

void
listeners_close(struct listeners *l)
{
	for (size_t i = 0; i < l->n; i++)
		close(l->rows[i].fd);
	free(l->rows);
	*l = (struct listeners){ NULL, 0 };
}

int
listener_open_private(const char *path, int *fd, struct err *e)
{
	return open_unix(path, 0600, fd, e) == -1 ?
	    err_wrap(e, "socket %s", path) :
	    0;
}

/* Adds a row: the socket of `old` if it has it, else a new one. */
static int
want(struct listeners *l, const struct listeners *old, const char *text,
    int worker, struct err *e)
{
	const struct listener *have = find(old, text, worker);
	int fd;

	if (find(l, text, worker) != NULL)
		return 0; /* said twice */
	if (have != NULL) {
		fd = have->fd;
	} else {
		bool first = !has_address(old, text) && !has_address(l, text);

		if (open_socket(text, first, &fd, e) == -1)
			return -1;
	}
	return listeners_take(l, text, worker, fd, e);
}

static struct listener *
find(const struct listeners *l, const char *text, int worker)
{
	for (size_t i = 0; i < l->n; i++)
		if (l->rows[i].worker == worker &&
		    strcmp(l->rows[i].text, text) == 0)
			return &l->rows[i];
	return NULL;
}

static bool
has_address(const struct listeners *l, const char *text)
{
	for (size_t i = 0; i < l->n; i++)
		if (strcmp(l->rows[i].text, text) == 0)
			return true;
	return false;
}

static int
open_socket(const char *text, bool first, int *fd, struct err *e)
{
	int rv = strncmp(text, "unix:", 5) == 0 ?
	    open_unix(text + 5, 0666, fd, e) :
	    open_tcp(text, first, fd, e);

	return rv == -1 ? err_wrap(e, "listen on %s", text) : 0;
}

/* SO_REUSEPORT would let two proxies share an address unawares: the first
 * socket of one is bound without it, to see that the address is free. */
static int
open_tcp(const char *text, bool first, int *fd, struct err *e)
{
	struct addr a;
	int probe;

	if (addr_parse(text, 80, &a, e) == -1)
		return -1;
	if (first) {
		if (bind_tcp(&a, false, &probe, e) == -1)
			return -1;
		close(probe);
	}
	return bind_tcp(&a, true, fd, e);
}

static int
bind_tcp(const struct addr *a, bool shared, int *fd, struct err *e)
{
	static const int on = 1, defer_s = 1;
	int f;

	f = socket(a->u.sa.sa_family,
	    SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (f == -1)
		return err_errno(e, ERR_LOCAL, "no socket");
	setsockopt(f, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (shared)
		setsockopt(f, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on));
	if (a->u.sa.sa_family == AF_INET6)
		setsockopt(f, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
	/* Inherited by accepted sockets; and a connection without a byte does
	 * not wake a worker. */
	setsockopt(f, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	setsockopt(f, IPPROTO_TCP, TCP_DEFER_ACCEPT, &defer_s, sizeof(defer_s));
	if (bind(f, &a->u.sa, a->len) == -1 ||
	    (shared && listen(f, BACKLOG) == -1)) {
		err_errno(e, ERR_LOCAL,
		    errno == EADDRINUSE ? "another program has it" :
					  "cannot bind");
		close(f);
		return -1;
	}
	*fd = f;
	return 0;
}

/* A live socket is never taken away from its owner. */
static int
open_unix(const char *path, mode_t mode, int *fd, struct err *e)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	int f;

	if (*path != '/' || strlen(path) >= sizeof(sun.sun_path))
		return err_set(e, ERR_USAGE,
		    "a socket's path is absolute and shorter than %zu bytes",
		    sizeof(sun.sun_path));
	strncpy(sun.sun_path, path, sizeof(sun.sun_path) - 1);
	if (!stale_unix(&sun))
		return err_set(e, ERR_BUSY, "another program has it");
	f = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (f == -1)
		return err_errno(e, ERR_LOCAL, "no socket");
	unlink(path);
	if (bind(f, (struct sockaddr *)&sun, sizeof(sun)) == -1 ||
	    chmod(path, mode) == -1 || listen(f, BACKLOG) == -1) {
		err_errno(e, ERR_LOCAL, "cannot bind");
		close(f);
		return -1;
	}
	*fd = f;
	return 0;
}

/* Whether the path is free or a socket that nobody answers. */
static int
stale_unix(const struct sockaddr_un *sun)
{
	struct stat sb;
	int f, answered;

	if (lstat(sun->sun_path, &sb) == -1)
		return errno == ENOENT;
	if (!S_ISSOCK(sb.st_mode))
		return 0;
	f = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	answered = connect(f, (const struct sockaddr *)sun, sizeof(*sun)) == 0;
	io_close(&f);
	return !answered;
}

static void
close_others(struct listeners *l, const struct listeners *kept)
{
	for (size_t i = 0; i < l->n; i++)
		if (find(kept, l->rows[i].text, l->rows[i].worker) == NULL)
			close(l->rows[i].fd);
}
