/* io.c: see io.h. */
#include "common/base/io.h"

#include <sys/file.h>
#include <sys/stat.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TMP_PREFIX ".muster-"

static bool claim(int fd);
static void sweep_one(int dir, const char *name);
static int sync_parent(const char *path, struct err *);

ssize_t
io_read_n(int fd, void *buf, size_t n)
{
	size_t got = 0;

	while (got < n) {
		ssize_t r = read(fd, (char *)buf + got, n - got);

		if (r == 0)
			break;
		if (r == -1 && errno == EINTR)
			continue;
		if (r == -1)
			return -1;
		got += (size_t)r;
	}
	return (ssize_t)got;
}

ssize_t
io_pread_n(int fd, void *buf, size_t n, off_t at)
{
	size_t got = 0;

	while (got < n) {
		ssize_t r =
		    pread(fd, (char *)buf + got, n - got, at + (off_t)got);

		if (r == 0)
			break;
		if (r == -1 && errno == EINTR)
			continue;
		if (r == -1)
			return -1;
		got += (size_t)r;
	}
	return (ssize_t)got;
}

int
io_write_n(int fd, const void *buf, size_t n)
{
	size_t put;

	return io_write_upto(fd, buf, n, &put);
}

int
io_write_upto(int fd, const void *buf, size_t n, size_t *put)
{
	*put = 0;
	while (*put < n) {
		ssize_t w = write(fd, (const char *)buf + *put, n - *put);

		if (w == -1 && errno == EINTR)
			continue;
		if (w == -1)
			return -1;
		*put += (size_t)w;
	}
	return 0;
}

int
io_read_file(const char *path, size_t max, char **data, size_t *size,
    struct err *e)
{
	char *buf = NULL;
	struct stat sb;
	ssize_t n;
	int fd, rv = -1;

	/* O_NONBLOCK: a fifo in the file's place must not hang us. */
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd == -1)
		return err_errno(e, ERR_LOCAL, "cannot open %s", path);
	if (fstat(fd, &sb) == -1) {
		err_errno(e, ERR_LOCAL, "cannot stat %s", path);
		goto out;
	}
	if (!S_ISREG(sb.st_mode)) {
		err_set(e, ERR_LOCAL, "%s is not a plain file", path);
		goto out;
	}
	if ((size_t)sb.st_size > max) {
		err_set(e, ERR_CORRUPT, "%s is larger than %zu bytes", path,
		    max);
		goto out;
	}
	if ((buf = malloc((size_t)sb.st_size + 1)) == NULL) {
		err_set(e, ERR_LOCAL, "out of memory for %s", path);
		goto out;
	}
	if ((n = io_read_n(fd, buf, (size_t)sb.st_size)) == -1) {
		err_errno(e, ERR_LOCAL, "cannot read %s", path);
		goto out;
	}
	buf[n] = '\0';
	*data = buf;
	*size = (size_t)n;
	buf = NULL;
	rv = 0;
out:
	free(buf);
	close(fd);
	return rv;
}

/* Where the file system knows no files without a name. */
static int
open_unlinked(const char *dir, struct err *e)
{
	char path[PATH_MAX];
	int fd;

	if (io_path(path, sizeof(path), dir, TMP_PREFIX "XXXXXX", e) == -1)
		return -1;
	if ((fd = mkostemp(path, O_CLOEXEC)) == -1)
		return err_errno(e, ERR_LOCAL,
		    "cannot make a temporary file in %s", dir);
	unlink(path);
	return fd;
}

int
io_unnamed(const char *dir, struct err *e)
{
	int fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC | O_EXCL, 0600);

	return fd != -1 ? fd : open_unlinked(dir, e);
}

int
io_replace_begin(struct io_replacement *f, const char *path, struct err *e)
{
	const char *slash = strrchr(path, '/');
	int dir_len = slash != NULL ? (int)(slash - path) + 1 : 0;

	f->fd = -1;
	if (strlen(path) >= sizeof(f->path) ||
	    (size_t)dir_len + sizeof(TMP_PREFIX "XXXXXX") > sizeof(f->tmp))
		return err_set(e, ERR_LOCAL, "path too long: %s", path);
	memcpy(f->path, path, strlen(path) + 1);
	do {
		io_close(&f->fd);
		snprintf(f->tmp, sizeof(f->tmp), "%.*s%sXXXXXX", dir_len, path,
		    TMP_PREFIX);
		if ((f->fd = mkostemp(f->tmp, O_CLOEXEC)) == -1)
			return err_errno(e, ERR_LOCAL, "cannot create %s",
			    f->tmp);
	} while (!claim(f->fd));
	return 0;
}

/* The lock tells io_sweep() that somebody still writes; a sweep may have come
 * before it. */
static bool
claim(int fd)
{
	struct stat sb;

	return flock(fd, LOCK_EX) == -1 || fstat(fd, &sb) == -1 ||
	    sb.st_nlink > 0;
}

void
io_sweep(const char *path)
{
	struct dirent *d;
	DIR *dir = opendir(path);

	while (dir != NULL && (d = readdir(dir)) != NULL)
		if (strncmp(d->d_name, TMP_PREFIX, strlen(TMP_PREFIX)) == 0)
			sweep_one(dirfd(dir), d->d_name);
	if (dir != NULL)
		closedir(dir);
}

static void
sweep_one(int dir, const char *name)
{
	int fd =
	    openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

	if (fd == -1)
		return;
	if (flock(fd, LOCK_EX | LOCK_NB) == 0)
		unlinkat(dir, name, 0);
	close(fd);
}

int
io_replace_commit(struct io_replacement *f, mode_t mode, struct err *e)
{
	if (fsync(f->fd) == -1) {
		err_errno(e, ERR_LOCAL, "cannot write %s", f->path);
		io_replace_abort(f);
		return -1;
	}
	if (io_replace_quickly(f, mode, e) == -1)
		return -1;
	return sync_parent(f->path, e);
}

int
io_replace_quickly(struct io_replacement *f, mode_t mode, struct err *e)
{
	/* mkostemp made it 0600; a wider mode comes only once it is whole. */
	if (fchmod(f->fd, mode) == -1 || rename(f->tmp, f->path) == -1) {
		err_errno(e, ERR_LOCAL, "cannot write %s", f->path);
		io_replace_abort(f);
		return -1;
	}
	io_close(&f->fd);
	return 0;
}

void
io_replace_abort(struct io_replacement *f)
{
	if (f->fd == -1)
		return;
	io_close(&f->fd);
	unlink(f->tmp);
}

int
io_write_file(const char *path, const void *data, size_t size, mode_t mode,
    struct err *e)
{
	struct io_replacement f;

	if (io_replace_begin(&f, path, e) == -1)
		return -1;
	if (io_write_n(f.fd, data, size) == -1) {
		err_errno(e, ERR_LOCAL, "cannot write %s", path);
		io_replace_abort(&f);
		return -1;
	}
	return io_replace_commit(&f, mode, e);
}

int
io_mkdir(const char *path, mode_t mode, struct err *e)
{
	struct stat sb;

	if (mkdir(path, mode) == 0)
		return 0;
	if (errno == EEXIST && stat(path, &sb) == 0 && S_ISDIR(sb.st_mode))
		return 0;
	return err_errno(e, ERR_LOCAL, "cannot make directory %s", path);
}

void
io_close(int *fd)
{
	if (*fd != -1)
		close(*fd);
	*fd = -1;
}

int
io_path(char *buf, size_t size, const char *dir, const char *file,
    struct err *e)
{
	if ((size_t)snprintf(buf, size, "%s/%s", dir, file) >= size)
		return err_set(e, ERR_LOCAL, "path too long: %s/%s", dir, file);
	return 0;
}

static int
sync_parent(const char *path, struct err *e)
{
	char copy[PATH_MAX];
	int fd;

	snprintf(copy, sizeof(copy), "%s", path);
	fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	/* EINVAL: some file systems cannot sync a directory. */
	if (fd == -1 || (fsync(fd) == -1 && errno != EINVAL)) {
		err_errno(e, ERR_LOCAL, "cannot sync the directory of %s",
		    path);
		io_close(&fd);
		return -1;
	}
	close(fd);
	return 0;
}
