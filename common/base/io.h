/*
 * io.h: raw reads and writes, whole files.  The one place for read(2) and
 * write(2) on files; EINTR and short counts are settled here.
 *
 * Every descriptor opened here is close-on-exec.
 */
#ifndef MUSTER_IO_H
#define MUSTER_IO_H

#include <sys/types.h>
#include <limits.h>
#include <stddef.h>

#include "common/base/err.h"

#define nitems(a) (sizeof(a) / sizeof((a)[0]))

/* Reads exactly n bytes.  Returns n, less at end of file, -1 on error
 * (errno). */
ssize_t io_read_n(int fd, void *buf, size_t n);
ssize_t io_pread_n(int fd, void *buf, size_t n, off_t at);

/* Writes all n bytes.  Returns 0 or -1 (errno). */
int io_write_n(int fd, const void *buf, size_t n);

/* The same; *put: how many bytes went, also on failure. */
int io_write_upto(int fd, const void *buf, size_t n, size_t *put);

/*
 * Reads a whole file of at most max bytes.  *data is malloc'ed, the caller's,
 * and has a NUL behind its *size bytes.  A larger file is an error.
 */
int io_read_file(const char *path, size_t max, char **data, size_t *size,
    struct err *);

/*
 * A file that takes another's place only once it is whole: a new file beside
 * it (0600 from its first instant), then fsync, rename, fsync of the
 * directory.  End with either; both leave nothing beside it.
 */
struct io_replacement {
	int fd;
	char path[PATH_MAX], tmp[PATH_MAX];
};
int io_replace_begin(struct io_replacement *, const char *path, struct err *);
int io_replace_commit(struct io_replacement *, mode_t mode, struct err *);
/* Without waiting for the disk: for what can be had again.  After a power cut
 * it may be empty. */
int io_replace_quickly(struct io_replacement *, mode_t mode, struct err *);
void io_replace_abort(struct io_replacement *); /* also after a commit */

/* Removes the new files in a directory whose writers were killed; they may
 * hold secrets. */
void io_sweep(const char *dir);

/*
 * Writes a file atomically: a new file beside it (mode from its first
 * instant), fsync, rename, fsync of the directory.  On failure the old file
 * stands untouched and nothing is left beside it.
 */
int io_write_file(const char *path, const void *data, size_t size, mode_t mode,
    struct err *);

/* A new file below a directory that no name leads to: it ends with its last
 * descriptor.  Returns one to read and write it, or -1. */
int io_unnamed(const char *dir, struct err *);

/* mkdir that is content with an existing directory. */
int io_mkdir(const char *path, mode_t mode, struct err *);

/* Closes *fd unless it is -1, and sets it to -1. */
void io_close(int *fd);

/* Joins two path parts into a buffer; -1 when it does not fit. */
int io_path(char *buf, size_t size, const char *dir, const char *file,
    struct err *);

#endif
