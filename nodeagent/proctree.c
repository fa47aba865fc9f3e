/* proctree.c: see proctree.h. */
#include "nodeagent/proctree.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/io.h"

#define DEPTH_MAX 32 /* of sessions below sessions */

static size_t signal_one(pid_t, int sig);
static size_t signal_below(pid_t parent, pid_t session, int sig, int depth);

size_t
proctree_signal(pid_t session, int sig)
{
	struct dirent *d;
	size_t n = 0;
	DIR *proc;

	if ((proc = opendir("/proc")) == NULL)
		return 0;
	while ((d = readdir(proc)) != NULL) {
		pid_t pid = (pid_t)strtol(d->d_name, NULL, 10);

		/* getsid(2) costs a fraction of reading /proc/PID/stat. */
		if (pid <= 0 || getsid(pid) != session)
			continue;
		/* Children first: once their parent is gone nothing tells
		 * that they belonged to it. */
		n += signal_below(pid, session, sig, DEPTH_MAX);
		n += signal_one(pid, sig);
	}
	closedir(proc);
	return n;
}

/* Returns 1, or 0 for a zombie. */
static size_t
signal_one(pid_t pid, int sig)
{
	char path[64], stat[512], *state;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	if ((fd = open(path, O_RDONLY | O_CLOEXEC)) == -1)
		return 0;
	n = io_read_n(fd, stat, sizeof(stat) - 1);
	close(fd);
	stat[n > 0 ? n : 0] = '\0';
	/* "PID (NAME) STATE ...", and a name may hold anything. */
	state = strrchr(stat, ')');
	if (state == NULL || strncmp(state, ") Z", 3) == 0)
		return 0;
	if (sig != 0)
		kill(pid, sig);
	return 1;
}

/* The children of `parent` that left the session, and all below them. */
static size_t
signal_below(pid_t parent, pid_t session, int sig, int depth)
{
	char path[64], list[4096], *p = list, *end;
	size_t n = 0;
	ssize_t got;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)parent,
	    (int)parent);
	if (depth == 0 || (fd = open(path, O_RDONLY | O_CLOEXEC)) == -1)
		return 0;
	got = io_read_n(fd, list, sizeof(list) - 1);
	close(fd);
	list[got > 0 ? got : 0] = '\0';
	for (;; p = end) {
		pid_t pid = (pid_t)strtol(p, &end, 10);

		if (end == p)
			break;
		if (getsid(pid) == session)
			continue;
		n += signal_below(pid, session, sig, depth - 1);
		n += signal_one(pid, sig);
	}
	return n;
}
