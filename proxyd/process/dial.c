/* dial.c: see dial.h. */
#include "proxyd/process/dial.h"

#include <sys/fsuid.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <errno.h>
#include <grp.h>
#include <netinet/tcp.h>
#include <pwd.h>
#include <string.h>
#include <unistd.h>

#define GROUPS_MAX 256

static int
start(int fd, const struct sockaddr *sa, socklen_t len)
{
	int saved;

	if (connect(fd, sa, len) == 0 || errno == EINPROGRESS)
		return fd;
	saved = errno;
	close(fd);
	errno = saved;
	return -1;
}

int
dial_node(const struct snapshot *s, const struct snap_node *n)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	bool local = n->path.len > 0;
	int fd, one = 1;

	fd = socket(local ? AF_UNIX : n->addr.u.sa.sa_family,
	    SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd == -1)
		return -1;
	if (!local) {
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		return start(fd, &n->addr.u.sa, n->addr.len);
	}
	strncpy(sun.sun_path, snapshot_text(s, n->path),
	    sizeof(sun.sun_path) - 1);
	return start(fd, (struct sockaddr *)&sun, sizeof(sun));
}

static void
end_of(int fd, int (*ask)(int, struct sockaddr *, socklen_t *), struct addr *a)
{
	struct addr got = { .len = sizeof(got.u) };

	a->len = 0;
	if (ask(fd, &got.u.sa, &got.len) == 0)
		addr_from_sockaddr(&got.u.sa, got.len, a);
}

void
dial_ends(int fd, struct addr *ours, struct addr *theirs)
{
	end_of(fd, getsockname, ours);
	if (theirs != NULL)
		end_of(fd, getpeername, theirs);
}

void
dialer_init(struct dialer *d, const char *account)
{
	const struct passwd *pw;

	*d = (struct dialer){ 0, 0 };
	if (geteuid() == 0 && *account != '\0' &&
	    (pw = getpwnam(account)) != NULL)
		*d = (struct dialer){ pw->pw_uid, pw->pw_gid };
}

/* What a path allows is decided by these ids alone, in connect(); with them
 * go the capabilities that override it. */
int
dial_node_as(const struct dialer *d, const struct snapshot *s,
    const struct snap_node *n)
{
	gid_t groups[GROUPS_MAX];
	int fd, saved, n_groups;

	if (d->uid == 0 || n->path.len == 0 ||
	    (n_groups = getgroups(GROUPS_MAX, groups)) == -1 ||
	    setgroups(0, NULL) == -1)
		return dial_node(s, n);
	setfsgid(d->gid);
	setfsuid(d->uid);
	fd = dial_node(s, n);
	saved = errno;
	setfsuid(geteuid());
	setfsgid(getegid());
	setgroups((size_t)n_groups, groups);
	errno = saved;
	return fd;
}
