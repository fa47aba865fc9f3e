/* child.c: see child.h. */
#include "proxyd/process/child.h"

#include <sys/wait.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/base/daemon.h"
#include "proxyd/process/ipc.h"

static void run(const char *program, const char *const *args, int fd)
    __attribute__((noreturn));

int
child_start(const char *program, const char *const *args, pid_t *pid, int *fd,
    struct err *e)
{
	int fds[2];
	pid_t child;

	if (ipc_pair(fds, e) == -1)
		return -1;
	if ((child = fork()) == 0)
		run(program != NULL ? program : "/proc/self/exe", args, fds[1]);
	close(fds[1]);
	if (child == -1) {
		close(fds[0]);
		return err_errno(e, ERR_LOCAL, "cannot fork");
	}
	*pid = child;
	*fd = fds[0];
	return 0;
}

void
child_describe(int wait_status, char *buf, size_t size)
{
	if (WIFSIGNALED(wait_status))
		snprintf(buf, size, "was killed by signal %d (%s)",
		    WTERMSIG(wait_status), strsignal(WTERMSIG(wait_status)));
	else
		snprintf(buf, size, "exited with status %d",
		    WEXITSTATUS(wait_status));
}

/* In the child: everything but 0-2 and the socket is close-on-exec. */
static void
run(const char *program, const char *const *args, int fd)
{
	daemon_child_signals();
	/* Ctrl-C, say, reaches the whole group: the master obeys and ends us
	 * in good order.  Whoever wants them otherwise says so. */
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	if (fd != IPC_CHILD_FD && dup2(fd, IPC_CHILD_FD) == -1)
		_exit(127);
	fcntl(IPC_CHILD_FD, F_SETFD, 0);
	execv(program, (char *const *)(uintptr_t)args);
	_exit(127);
}
