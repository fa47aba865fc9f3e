/*
 * timed.c: runs a command and writes what it took, as one JSON object, to a
 * file.  A small parent matters: the peak memory of a child counts the pages
 * of whoever forked it.
 *
 * usage: timed FILE COMMAND [ARGUMENT]...
 *
 * The command's output is read, counted and dropped.
 */
#include <sys/resource.h>
#include <sys/wait.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

struct taken {
	int64_t wall_us;
	uint64_t bytes;
	int status;
	struct rusage usage;
};

static int64_t now_us(void);
static pid_t start(char **argv, int *output);
static uint64_t drain(int output);
static int report(const char *path, const struct taken *);

int
main(int argc, char **argv)
{
	struct taken t;
	int64_t begin = now_us();
	int output;
	pid_t pid;

	if (argc < 3) {
		fputs("usage: timed FILE COMMAND [ARGUMENT]...\n", stderr);
		return 2;
	}
	if ((pid = start(argv + 2, &output)) == -1) {
		perror(argv[2]);
		return 126;
	}
	t.bytes = drain(output);
	if (wait4(pid, &t.status, 0, &t.usage) == -1)
		return 126;
	t.wall_us = now_us() - begin;
	return report(argv[1], &t);
}

static pid_t
start(char **argv, int *output)
{
	int fds[2];
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC) == -1 || (pid = fork()) == -1)
		return -1;
	if (pid == 0) {
		dup2(fds[1], STDOUT_FILENO);
		execvp(argv[0], argv);
		perror(argv[0]);
		_exit(127);
	}
	close(fds[1]);
	*output = fds[0];
	return pid;
}

static uint64_t
drain(int output)
{
	char buf[65536];
	uint64_t bytes = 0;
	ssize_t n;

	while ((n = read(output, buf, sizeof(buf))) > 0)
		bytes += (uint64_t)n;
	close(output);
	return bytes;
}

static int64_t
now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

static int
report(const char *path, const struct taken *t)
{
	bool exited = WIFEXITED(t->status);
	FILE *f = fopen(path, "we");

	if (f == NULL) {
		perror(path);
		return 126;
	}
	fprintf(f,
	    "{\"wall\": %.6f, \"cpu\": %.6f, \"peak_kb\": %ld, \"bytes\": "
	    "%" PRIu64 ", \"status\": %d}\n",
	    (double)t->wall_us / 1e6,
	    (double)(t->usage.ru_utime.tv_sec + t->usage.ru_stime.tv_sec) +
		(double)(t->usage.ru_utime.tv_usec +
		    t->usage.ru_stime.tv_usec) /
		    1e6,
	    t->usage.ru_maxrss, t->bytes,
	    exited ? WEXITSTATUS(t->status) : -WTERMSIG(t->status));
	return fclose(f) == 0 ? 0 : 126;
}
