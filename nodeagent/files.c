/* files.c: see files.h. */
#include "nodeagent/files.h"

#include <sys/stat.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>
#include <sodium.h>

#include "common/base/io.h"
#include "common/net/proto.h"

#define CHUNK (64 * 1024)

/* Where a pushed thing goes: its directory, opened once, so that nobody can
 * move the ground under us, and a name beside the last one. */
struct place {
	int dir_fd;
	char name[NAME_MAX + 1];
	char beside[64]; /* of the file while it is being written */
};

struct hashing {
	crypto_generichash_state state;
	int64_t size;
};

static int look(const struct file_spec *, json_t **answer, struct err *);
static int take(const struct file_spec *, json_t **answer, struct err *);
static int give(const struct file_spec *, json_t **answer, struct err *);
static int run(int (*fn)(const struct file_spec *, json_t **, struct err *),
    const struct file_spec *, int report);

static int place_open(const struct file_spec *, struct place *, struct err *);
static int take_file(const struct file_spec *, const struct place *,
    uint8_t hash[FILES_HASH_SIZE], struct err *);
static int check_old(const struct file_spec *, const struct place *,
    struct err *);
static int take_bytes(const struct file_spec *, int fd,
    uint8_t hash[FILES_HASH_SIZE], struct err *);
static int dress(const struct file_spec *, const struct place *, int fd,
    struct err *);
static int settle(const struct file_spec *, const struct place *, int fd,
    struct err *);
static int take_directory(const struct file_spec *, const struct place *,
    struct err *);
static int take_link(const struct file_spec *, const struct place *,
    struct err *);
static int open_plain(const char *path, struct stat *, struct err *);
static int hash_file(int fd, int out, struct hashing *, struct err *);
static void hash_hex(struct hashing *, char hex[2 * FILES_HASH_SIZE + 1]);

int
files_have(const void *arg, int report)
{
	return run(look, arg, report);
}

int
files_push(const void *arg, int report)
{
	return run(take, arg, report);
}

int
files_pull(const void *arg, int report)
{
	return run(give, arg, report);
}

static int
run(int (*fn)(const struct file_spec *, json_t **, struct err *),
    const struct file_spec *f, int report)
{
	char text[PROTO_ERROR_MAX];
	json_t *answer = NULL;
	struct err e;

	umask(0); /* modes are what was asked for */
	/* When it is to stop its input ends: time to clean up. */
	signal(SIGTERM, SIG_IGN);
	if (fn(f, &answer, &e) == -1)
		io_write_n(report, text, proto_format_error(&e, text));
	else
		json_dumpfd(answer, report, JSON_COMPACT);
	json_decref(answer);
	return 0;
}

static int
look(const struct file_spec *f, json_t **answer, struct err *e)
{
	char hex[2 * FILES_HASH_SIZE + 1], want[2 * FILES_HASH_SIZE + 1];
	struct hashing h;
	struct stat sb;
	int fd;

	if (stat(f->path, &sb) == -1) {
		if (errno != ENOENT && errno != ENOTDIR)
			return err_errno(e, ERR_LOCAL, "cannot look at %s",
			    f->path);
		*answer = json_pack("{s:s}", "type", "none");
		return 0;
	}
	*answer = json_pack("{s:s, s:I, s:i, s:b}", "type",
	    S_ISREG(sb.st_mode)	    ? "file" :
		S_ISDIR(sb.st_mode) ? "dir" :
				      "other",
	    "size", (json_int_t)sb.st_size, "mode", sb.st_mode & 07777, "same",
	    0);
	if (!f->has_hash || !S_ISREG(sb.st_mode))
		return 0;
	if ((fd = open_plain(f->path, &sb, e)) == -1)
		return -1;
	if (hash_file(fd, -1, &h, e) == -1) {
		close(fd);
		return -1;
	}
	close(fd);
	hash_hex(&h, hex);
	sodium_bin2hex(want, sizeof(want), f->hash, sizeof(f->hash));
	json_object_set_new(*answer, "same",
	    json_boolean(strcmp(hex, want) == 0));
	return 0;
}

static int
take(const struct file_spec *f, json_t **answer, struct err *e)
{
	char hex[2 * FILES_HASH_SIZE + 1] = "";
	uint8_t hash[FILES_HASH_SIZE];
	struct place p;
	int rv = -1;

	if (place_open(f, &p, e) == -1)
		return -1;
	switch (f->type) {
	case FILE_PLAIN:
		if ((rv = take_file(f, &p, hash, e)) == 0)
			sodium_bin2hex(hex, sizeof(hex), hash, sizeof(hash));
		break;
	case FILE_DIRECTORY:
		rv = take_directory(f, &p, e);
		break;
	case FILE_LINK:
		rv = take_link(f, &p, e);
		break;
	}
	close(p.dir_fd);
	if (rv == 0)
		*answer = json_pack("{s:s}", "hash", hex);
	return rv;
}

static int
give(const struct file_spec *f, json_t **answer, struct err *e)
{
	char hex[2 * FILES_HASH_SIZE + 1];
	struct hashing h;
	struct stat sb;
	int fd, rv;

	if ((fd = open_plain(f->path, &sb, e)) == -1)
		return -1;
	rv = hash_file(fd, STDOUT_FILENO, &h, e);
	close(fd);
	if (rv == -1)
		return err_wrap(e, "%s", f->path);
	hash_hex(&h, hex);
	*answer = json_pack("{s:I, s:i, s:I, s:s}", "size", (json_int_t)h.size,
	    "mode", sb.st_mode & 07777, "mtime", (json_int_t)sb.st_mtim.tv_sec,
	    "hash", hex);
	return 0;
}

static int
place_open(const struct file_spec *f, struct place *p, struct err *e)
{
	char dir[PATH_MAX], base[PATH_MAX], *name;
	uint8_t random[8];
	char hex[2 * sizeof(random) + 1];

	snprintf(dir, sizeof(dir), "%s", f->path);
	snprintf(base, sizeof(base), "%s", f->path);
	name = basename(base);
	if (strcmp(name, "/") == 0 || strcmp(name, ".") == 0 ||
	    strcmp(name, "..") == 0)
		return err_set(e, ERR_USAGE, "%s does not name a file",
		    f->path);
	if ((size_t)snprintf(p->name, sizeof(p->name), "%s", name) >=
	    sizeof(p->name))
		return err_set(e, ERR_USAGE, "the name %s is too long", name);
	randombytes_buf(random, sizeof(random));
	sodium_bin2hex(hex, sizeof(hex), random, sizeof(random));
	snprintf(p->beside, sizeof(p->beside), ".muster-%s", hex);
	p->dir_fd = open(dirname(dir), O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (p->dir_fd == -1)
		return err_errno(e,
		    errno == ENOENT || errno == ENOTDIR ? ERR_USAGE : ERR_LOCAL,
		    "cannot enter the directory of %s", f->path);
	return 0;
}

/*
 * The bytes go into a file without a name (O_TMPFILE), which vanishes with
 * this process however it ends.  Only once it is whole it gets a name beside
 * the old file, and takes its place in one step.
 */
static int
take_file(const struct file_spec *f, const struct place *p,
    uint8_t hash[FILES_HASH_SIZE], struct err *e)
{
	char here[64];
	bool named = false;
	int fd, rv = -1;

	if (check_old(f, p, e) == -1)
		return -1;
	snprintf(here, sizeof(here), "/proc/self/fd/%d", p->dir_fd);
	fd = open(here, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (fd == -1 && (errno == EOPNOTSUPP || errno == EISDIR)) {
		fd = openat(p->dir_fd, p->beside,
		    O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
		named = fd != -1;
	}
	if (fd == -1)
		return err_errno(e, ERR_LOCAL, "cannot write beside %s",
		    f->path);
	if (take_bytes(f, fd, hash, e) == 0 && dress(f, p, fd, e) == 0) {
		snprintf(here, sizeof(here), "/proc/self/fd/%d", fd);
		if (!named &&
		    linkat(AT_FDCWD, here, p->dir_fd, p->beside,
			AT_SYMLINK_FOLLOW) == -1)
			err_errno(e, ERR_LOCAL, "cannot name %s", f->path);
		else {
			named = true;
			rv = settle(f, p, fd, e);
		}
	}
	if (rv == -1 && named)
		unlinkat(p->dir_fd, p->beside, 0);
	close(fd);
	return rv;
}

/* A rename would put a plain file in the place of /dev/null, too. */
static int
check_old(const struct file_spec *f, const struct place *p, struct err *e)
{
	struct stat sb;

	if (fstatat(p->dir_fd, p->name, &sb, AT_SYMLINK_NOFOLLOW) == -1 ||
	    S_ISREG(sb.st_mode) || S_ISLNK(sb.st_mode))
		return 0;
	return err_set(e, ERR_USAGE, "%s is a %s", f->path,
	    S_ISDIR(sb.st_mode) ? "directory" :
				  "device, pipe or socket, which stays");
}

static int
take_bytes(const struct file_spec *f, int fd, uint8_t hash[FILES_HASH_SIZE],
    struct err *e)
{
	struct hashing h;
	char hex[2 * FILES_HASH_SIZE + 1];
	size_t n;

	if (hash_file(STDIN_FILENO, fd, &h, e) == -1)
		return err_wrap(e, "%s", f->path);
	if (h.size != f->size)
		return err_set(e, ERR_PROTOCOL,
		    "%s: %lld of %lld bytes came; the old file stands", f->path,
		    (long long)h.size, (long long)f->size);
	hash_hex(&h, hex);
	sodium_hex2bin(hash, FILES_HASH_SIZE, hex, sizeof(hex) - 1, NULL, &n,
	    NULL);
	if (f->has_hash && memcmp(hash, f->hash, FILES_HASH_SIZE) != 0)
		return err_set(e, ERR_PROTOCOL,
		    "%s: the bytes that came have another hash; the old file "
		    "stands",
		    f->path);
	return 0;
}

/* Owner as before where there was a file (as cp keeps it), then mode and
 * time. */
static int
dress(const struct file_spec *f, const struct place *p, int fd, struct err *e)
{
	struct timespec times[2] = { { .tv_nsec = UTIME_OMIT },
		{ .tv_sec = f->mtime_s } };
	struct stat sb;

	if (fstatat(p->dir_fd, p->name, &sb, AT_SYMLINK_NOFOLLOW) == 0 &&
	    S_ISREG(sb.st_mode) && fchown(fd, sb.st_uid, sb.st_gid) == -1 &&
	    errno != EPERM)
		return err_errno(e, ERR_LOCAL, "cannot set the owner of %s",
		    f->path);
	if (fchmod(fd, f->mode) == -1)
		return err_errno(e, ERR_LOCAL, "cannot set the mode of %s",
		    f->path);
	if (f->mtime_s != -1 && futimens(fd, times) == -1)
		return err_errno(e, ERR_LOCAL, "cannot set the time of %s",
		    f->path);
	if (fsync(fd) == -1)
		return err_errno(e, ERR_LOCAL, "cannot write %s", f->path);
	return 0;
}

static int
settle(const struct file_spec *f, const struct place *p, int fd, struct err *e)
{
	char here[64];
	int dir;

	(void)fd;
	if (renameat(p->dir_fd, p->beside, p->dir_fd, p->name) == -1)
		return err_errno(e, ERR_LOCAL, "cannot replace %s", f->path);
	/* An O_PATH descriptor cannot be synced. */
	snprintf(here, sizeof(here), "/proc/self/fd/%d", p->dir_fd);
	if ((dir = open(here, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) != -1) {
		fsync(dir);
		close(dir);
	}
	return 0;
}

static int
take_directory(const struct file_spec *f, const struct place *p, struct err *e)
{
	struct stat sb;

	if (mkdirat(p->dir_fd, p->name, f->mode) == 0)
		return 0;
	/* A link to a directory is one, as for cp -r. */
	if (errno == EEXIST && fstatat(p->dir_fd, p->name, &sb, 0) == 0 &&
	    S_ISDIR(sb.st_mode))
		return 0;
	return err_errno(e, ERR_LOCAL, "cannot make directory %s", f->path);
}

static int
take_link(const struct file_spec *f, const struct place *p, struct err *e)
{
	if (f->target[0] == '\0')
		return err_set(e, ERR_USAGE, "a link needs a target");
	if (check_old(f, p, e) == -1)
		return -1;
	if (symlinkat(f->target, p->dir_fd, p->beside) == -1)
		return err_errno(e, ERR_LOCAL, "cannot make the link %s",
		    f->path);
	if (settle(f, p, -1, e) == 0)
		return 0;
	unlinkat(p->dir_fd, p->beside, 0);
	return -1;
}

/* O_NONBLOCK: a fifo in the file's place is told, not waited for. */
static int
open_plain(const char *path, struct stat *sb, struct err *e)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd == -1)
		return err_errno(e, errno == ENOENT ? ERR_USAGE : ERR_LOCAL,
		    "cannot open %s", path);
	if (fstat(fd, sb) == -1)
		err_errno(e, ERR_LOCAL, "cannot look at %s", path);
	else if (S_ISREG(sb->st_mode))
		return fd;
	else
		err_set(e, ERR_USAGE, "%s is %s", path,
		    S_ISDIR(sb->st_mode) ? "a directory" : "not a plain file");
	close(fd);
	return -1;
}

/* Reads to the end, hashes, and copies to `out` unless that is -1. */
static int
hash_file(int fd, int out, struct hashing *h, struct err *e)
{
	static uint8_t buf[CHUNK];
	ssize_t n;

	crypto_generichash_init(&h->state, NULL, 0, FILES_HASH_SIZE);
	h->size = 0;
	while ((n = io_read_n(fd, buf, sizeof(buf))) > 0) {
		crypto_generichash_update(&h->state, buf, (size_t)n);
		h->size += n;
		if (out != -1 && io_write_n(out, buf, (size_t)n) == -1)
			return err_errno(e, ERR_LOCAL, "cannot write");
	}
	if (n == -1)
		return err_errno(e, ERR_LOCAL, "cannot read");
	return 0;
}

static void
hash_hex(struct hashing *h, char hex[2 * FILES_HASH_SIZE + 1])
{
	uint8_t hash[FILES_HASH_SIZE];

	crypto_generichash_final(&h->state, hash, sizeof(hash));
	sodium_bin2hex(hex, 2 * FILES_HASH_SIZE + 1, hash, sizeof(hash));
}
