/* listeners.c: see listeners.h. */
#include "proxyd/process/listeners.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <errno.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/addr.h"
#include "common/base/io.h"
#include "common/base/log.h"

#define BACKLOG 4096

static int want_all(struct listeners *, const struct listeners *old,
    const char *list, const char *prefix, unsigned n_workers, struct err *);
static int want_tcp(struct listeners *, const struct listeners *old,
    const char *text, unsigned n_workers, struct err *);
static int want(struct listeners *, const struct listeners *old,
    const char *text, int worker, struct err *);
static int append(struct listeners *, const char *text, int worker, int fd,
    struct err *);
static struct listener *find(const struct listeners *, const char *text,
    int worker);
static unsigned count(const struct listeners *, const char *text);
static bool differ(const struct listeners *, const struct listeners *);
static void steer_all(const struct listeners *, unsigned n_workers);
static void steer(int fd, unsigned n_workers);
static int open_socket(const char *text, bool first, int *fd, struct err *);
static int open_tcp(const char *text, bool first, int *fd, struct err *);
static int bind_tcp(const struct addr *, bool shared, int *fd, struct err *);
static int open_unix(const char *path, mode_t mode, int *fd, struct err *);
static int stale_unix(const struct sockaddr_un *);
static void close_others(struct listeners *, const struct listeners *kept);

int
listeners_apply(struct listeners *l, const char *plain, const char *secure,
    unsigned n_workers, bool *changed, struct err *e)
{
	struct listeners next = { NULL, 0 };

	if (want_all(&next, l, plain, "", n_workers, e) == -1 ||
	    want_all(&next, l, secure, LISTENER_SECURE, n_workers, e) == -1) {
		close_others(&next, l);
		free(next.rows);
		return -1;
	}
	*changed = differ(l, &next);
	steer_all(&next, n_workers);
	close_others(l, &next);
	free(l->rows);
	*l = next;
	return 0;
}

/* The address, behind what says how it is spoken there. */
static const char *
address(const char *text)
{
	size_t len = strlen(LISTENER_SECURE);

	return strncmp(text, LISTENER_SECURE, len) == 0 ? text + len : text;
}

/* The path of a Unix socket, or NULL: it is another one. */
static const char *
unix_path(const char *text)
{
	const char *at = address(text);
	size_t len = strlen("unix:");

	return strncmp(at, "unix:", len) == 0 ? at + len : NULL;
}

enum listener_kind
listener_kind(const struct listener *l)
{
	return address(l->text) == l->text ? LISTENER_PLAIN : LISTENER_TLS;
}

bool
listener_is_for(const struct listener *l, unsigned position, unsigned n_workers)
{
	return l->worker == LISTENER_ALL ||
	    (unsigned)l->worker % n_workers == position;
}

int
listeners_take(struct listeners *l, const char *text, int worker, int fd,
    struct err *e)
{
	if (append(l, text, worker, fd, e) == 0)
		return 0;
	close(fd);
	return -1;
}

void
listeners_close(struct listeners *l)
{
	for (size_t i = 0; i < l->n; i++)
		close(l->rows[i].fd);
	free(l->rows);
	*l = (struct listeners){ NULL, 0 };
}

static int
want_all(struct listeners *l, const struct listeners *old, const char *list,
    const char *prefix, unsigned n_workers, struct err *e)
{
	char text[LISTENER_TEXT_MAX];

	for (const char *p = list; *p != '\0';) {
		size_t len = strcspn(p, " ");

		if (len + strlen(prefix) >= sizeof(text))
			return err_set(e, ERR_USAGE, "address too long: %.60s",
			    p);
		snprintf(text, sizeof(text), "%s%.*s", prefix, (int)len, p);
		p += len + (p[len] == ' ');
		if ((unix_path(text) != NULL ?
			    want(l, old, text, LISTENER_ALL, e) :
			    want_tcp(l, old, text, n_workers, e)) == -1)
			return -1;
	}
	return 0;
}

static int
want_tcp(struct listeners *l, const struct listeners *old, const char *text,
    unsigned n_workers, struct err *e)
{
	unsigned had = count(old, text), n = had > n_workers ? had : n_workers;

	for (unsigned i = 0; i < n; i++)
		if (want(l, old, text, (int)i, e) == -1)
			return -1;
	return 0;
}

/* Adds a row: the socket of `old` if it has it, else a new one. */
static int
want(struct listeners *l, const struct listeners *old, const char *text,
    int worker, struct err *e)
{
	const struct listener *have = find(old, text, worker);
	bool first = count(old, text) + count(l, text) == 0;
	int fd;

	if (find(l, text, worker) != NULL)
		return 0; /* said twice */
	if (have != NULL)
		return append(l, text, worker, have->fd, e);
	if (open_socket(text, first, &fd, e) == -1)
		return -1;
	return listeners_take(l, text, worker, fd, e);
}

static int
append(struct listeners *l, const char *text, int worker, int fd, struct err *e)
{
	struct listener *rows = reallocarray(l->rows, l->n + 1, sizeof(*rows));

	if (rows == NULL)
		return err_set(e, ERR_LOCAL, "out of memory for listeners");
	l->rows = rows;
	snprintf(rows[l->n].text, LISTENER_TEXT_MAX, "%s", text);
	rows[l->n].worker = worker;
	rows[l->n++].fd = fd;
	return 0;
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

static unsigned
count(const struct listeners *l, const char *text)
{
	unsigned n = 0;

	for (size_t i = 0; i < l->n; i++)
		n += strcmp(l->rows[i].text, text) == 0;
	return n;
}

static bool
differ(const struct listeners *a, const struct listeners *b)
{
	for (size_t i = 0; i < b->n && a->n == b->n; i++)
		if (find(a, b->rows[i].text, b->rows[i].worker) == NULL)
			return true;
	return a->n != b->n;
}

static void
steer_all(const struct listeners *l, unsigned n_workers)
{
	for (size_t i = 0; i < l->n; i++)
		if (l->rows[i].worker == 0)
			steer(l->rows[i].fd, n_workers);
}

/* Connections go at random to the first sockets of an address, in the order
 * in which they began to listen, which is that of `worker`.  Without it they
 * go to all of them, which a worker serves, too. */
static void
steer(int fd, unsigned n_workers)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
		    (uint32_t)(SKF_AD_OFF + SKF_AD_RANDOM)),
		BPF_STMT(BPF_ALU | BPF_MOD | BPF_K, n_workers),
		BPF_STMT(BPF_RET | BPF_A, 0),
	};
	struct sock_fprog program = { nitems(code), code };

	if (setsockopt(fd, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &program,
		sizeof(program)) == -1)
		log_debug("listeners cannot be steered: %s", strerror(errno));
}

static int
open_socket(const char *text, bool first, int *fd, struct err *e)
{
	const char *path = unix_path(text);
	int rv = path != NULL ? open_unix(path, 0666, fd, e) :
				open_tcp(address(text), first, fd, e);

	return rv == -1 ? err_wrap(e, "listen on %s", address(text)) : 0;
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
	for (size_t i = 0; i < l->n; i++) {
		const struct listener *row = &l->rows[i];

		if (find(kept, row->text, row->worker) != NULL)
			continue;
		if (row->worker == LISTENER_ALL)
			unlink(unix_path(row->text));
		close(row->fd);
	}
}
