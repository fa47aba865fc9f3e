/*
 * slow_disk.c: a preloaded library that makes a disk slow, for files whose
 * size or name says so: their pages are never in memory, each read takes its
 * time, and names with "stuck" take a long time to be opened.  The opener
 * reads with pread(); a worker that copies has been told that all is in
 * memory, and does it with preadv2(), which takes no time.
 */
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#define SLOW_SIZE 3000001
#define READ_MS	  50
#define STUCK_MS  30000

static bool
is_slow(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && st.st_size == SLOW_SIZE;
}

ssize_t
preadv2(int fd, const struct iovec *iov, int n, off_t at, int flags)
{
	ssize_t (*real)(int, const struct iovec *, int, off_t, int) =
	    dlsym(RTLD_NEXT, "preadv2");

	if ((flags & RWF_NOWAIT) == 0 || !is_slow(fd))
		return real(fd, iov, n, at, flags);
	errno = EAGAIN;
	return -1;
}

ssize_t
pread(int fd, void *buf, size_t size, off_t at)
{
	ssize_t (*real)(int, void *, size_t, off_t) = dlsym(RTLD_NEXT, "pread");

	if (is_slow(fd))
		poll(NULL, 0, READ_MS);
	return real(fd, buf, size, at);
}

long
syscall(long number, ...)
{
	long (*real)(long, ...) = dlsym(RTLD_NEXT, "syscall");
	long a[6];
	va_list args;

	va_start(args, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(args, long);
	va_end(args);
	if (number == SYS_openat2 &&
	    strstr((const char *)a[1], "stuck") != NULL)
		poll(NULL, 0, STUCK_MS);
	return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
