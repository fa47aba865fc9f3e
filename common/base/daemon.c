/* daemon.c: see daemon.h. */
#include "common/base/daemon.h"

#include <sys/file.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/io.h"
#include "common/base/log.h"

static int write_pid(int fd);

void
daemon_prepare(void)
{
	struct rlimit files;
	int fd;

	signal(SIGPIPE, SIG_IGN);
	umask(077);
	/* A socket must never land on a closed 0, 1 or 2. */
	do
		fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	while (fd >= 0 && fd <= 2 && fcntl(fd, F_SETFD, 0) == 0);
	io_close(&fd);
	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
}

void
daemon_child_signals(void)
{
	sigset_t none;

	for (int sig = 1; sig < NSIG; sig++)
		signal(sig, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

int
daemon_lock(const char *path, int *fd, struct err *e)
{
	char pid[32] = "";
	int f;

	f = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (f == -1)
		return err_errno(e, ERR_LOCAL, "cannot open lock %s", path);
	if (flock(f, LOCK_EX | LOCK_NB) == -1) {
		ssize_t n = io_read_n(f, pid, sizeof(pid) - 1);

		pid[n > 0 ? n : 0] = '\0';
		pid[strcspn(pid, "\n")] = '\0';
		close(f);
		return err_set(e, ERR_BUSY,
		    "already running as pid %s (lock %s)", pid, path);
	}
	if (write_pid(f) == -1) {
		err_errno(e, ERR_LOCAL, "cannot write lock %s", path);
		close(f);
		return -1;
	}
	*fd = f;
	return 0;
}

void
daemon_lock_pid(int fd)
{
	if (write_pid(fd) == -1)
		log_warn("cannot write our pid into the lock file");
}

void
daemon_main_pid(void)
{
	char text[32];

	snprintf(text, sizeof(text), "MAINPID=%d", (int)getpid());
	daemon_notify(text);
}

void
daemon_notify(const char *state)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	socklen_t len;
	int fd;

	if (path == NULL || strlen(path) >= sizeof(sun.sun_path) ||
	    (*path != '/' && *path != '@'))
		return;
	memcpy(sun.sun_path, path, strlen(path));
	if (*path == '@')
		sun.sun_path[0] = '\0';
	len =
	    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path));
	if ((fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) == -1)
		return;
	sendto(fd, state, strlen(state), MSG_NOSIGNAL, (struct sockaddr *)&sun,
	    len);
	close(fd);
}

void
daemon_ready(int ready_fd)
{
	daemon_notify("READY=1");
	if (ready_fd == -1)
		return;
	io_write_n(ready_fd, "ready\n", 6);
	close(ready_fd);
}

/* Written before the rest is cut off: whoever reads meanwhile finds one pid or
 * the other, never none. */
static int
write_pid(int fd)
{
	char pid[32];
	int n = snprintf(pid, sizeof(pid), "%d\n", (int)getpid());

	return pwrite(fd, pid, (size_t)n, 0) != n || ftruncate(fd, n) == -1 ?
	    -1 :
	    0;
}
