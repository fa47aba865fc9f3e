/*
 * parted.c: a preloaded library that makes the race between a message and
 * the end of whom it is for happen, at will.
 *
 * While the file $MUSTER_PARTED/JOB-start exists (JOB: a row of jobs[]), such
 * a process waits before its first step until the other end of its descriptor
 * 3 is gone; while JOB-send does, before each message to another process of
 * the proxy until that one is.  JOB-held has its pid meanwhile.
 */
#include <sys/socket.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHILD_FD      3
#define LOOK_EVERY_MS 10
#define N_JOBS	      ((int)(sizeof(jobs) / sizeof(jobs[0])))

static char wait_to_send[4096], held[4096];

/* The last word of these in its command line says what a proxyd is. */
static const struct {
	const char *word, *job;
	bool opens_files; /* also later on */
} jobs[] = {
	{ "run", "master", true },
	{ "--upgrade", "successor", true },
	{ "follower", "follower", true },
	{ "worker", "worker", false },
};

static int
find_job(void)
{
	char line[4096];
	int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC), found = -1;
	ssize_t n = read(fd, line, sizeof(line) - 1);

	close(fd);
	line[n > 0 ? n : 0] = '\0';
	if (strcmp(basename(line), "proxyd") != 0)
		return -1;
	for (char *word = line; word < line + n; word += strlen(word) + 1)
		for (int i = 0; i < N_JOBS; i++)
			if (strcmp(word, jobs[i].word) == 0)
				found = i;
	return found;
}

static void
wait_for_end(int fd, const char *order)
{
	struct pollfd p = { .fd = fd };
	FILE *f = fopen(held, "we");

	if (f == NULL)
		abort();
	fprintf(f, "%d", (int)getpid());
	fclose(f);
	while (access(order, F_OK) == 0 && poll(&p, 1, LOOK_EVERY_MS) == 0)
		continue;
	unlink(held);
}

__attribute__((constructor)) static void
begin(void)
{
	const char *dir = getenv("MUSTER_PARTED");
	char wait_to_start[4096];
	int i = find_job();

	if (dir == NULL || i == -1)
		return;
	snprintf(held, sizeof(held), "%s/%s-held", dir, jobs[i].job);
	if (jobs[i].opens_files)
		snprintf(wait_to_send, sizeof(wait_to_send), "%s/%s-send", dir,
		    jobs[i].job);
	snprintf(wait_to_start, sizeof(wait_to_start), "%s/%s-start", dir,
	    jobs[i].job);
	if (access(wait_to_start, F_OK) == 0)
		wait_for_end(CHILD_FD, wait_to_start);
}

ssize_t
sendmsg(int fd, const struct msghdr *m, int flags)
{
	ssize_t (*real)(int, const struct msghdr *, int) =
	    dlsym(RTLD_NEXT, "sendmsg");
	int type = 0;
	socklen_t size = sizeof(type);

	if (*wait_to_send != '\0' && access(wait_to_send, F_OK) == 0 &&
	    getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 &&
	    type == SOCK_SEQPACKET)
		wait_for_end(fd, wait_to_send);
	return real(fd, m, flags);
}
