/* proctree.c: see proctree.h. */
#include "nodeagent/proctree.h"

#include <sys/prctl.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/io.h"

#define DEPTH_MAX 32 /* of sessions below sessions */

static size_t signal_session(pid_t session, int sig);
static size_t signal_adopted(pid_t session, const char *mark, int sig);
static bool has_mark(pid_t, const char *mark);
static FILE *open_children(pid_t);
static size_t signal_one(pid_t, int sig);
static size_t signal_below(pid_t parent, pid_t session, int sig, int depth);

void
proctree_adopt(void)
{
	prctl(PR_SET_CHILD_SUBREAPER, 1);
}

size_t
proctree_signal(pid_t session, const char *mark, int sig)
{
	return signal_session(session, sig) +
	    signal_adopted(session, mark, sig);
}

static size_t
signal_session(pid_t session, int sig)
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

/* Who left the session and then lost its parent is known by nothing but what
 * it inherited. */
static size_t
signal_adopted(pid_t session, const char *mark, int sig)
{
	size_t n = 0;
	pid_t pid;
	FILE *f;

	if (*mark == '\0' || (f = open_children(getpid())) == NULL)
		return 0;
	while (fscanf(f, "%d", &pid) == 1)
		if (getsid(pid) != session && has_mark(pid, mark)) {
			n += signal_below(pid, session, sig, DEPTH_MAX);
			n += signal_one(pid, sig);
		}
	fclose(f);
	return n;
}

static bool
has_mark(pid_t pid, const char *mark)
{
	char path[64], *variable = NULL;
	bool found = false;
	size_t room = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
	if ((f = fopen(path, "re")) == NULL)
		return false;
	while (!found && getdelim(&variable, &room, '\0', f) != -1)
		found = strcmp(variable, mark) == 0;
	free(variable);
	fclose(f);
	return found;
}

static FILE *
open_children(pid_t pid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)pid,
	    (int)pid);
	return fopen(path, "re");
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
	size_t n = 0;
	pid_t pid;
	FILE *f;

	if (depth == 0 || (f = open_children(parent)) == NULL)
		return 0;
	while (fscanf(f, "%d", &pid) == 1) {
		if (getsid(pid) == session)
			continue;
		n += signal_below(pid, session, sig, depth - 1);
		n += signal_one(pid, sig);
	}
	fclose(f);
	return n;
}
