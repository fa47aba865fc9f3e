/* custody.c: see custody.h. */
#include "common/custody/custody.h"

#include <sys/file.h>
#include <sys/stat.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sodium.h>

#include "common/base/io.h"
#include "common/custody/pkcs8.h"

static bool hash_content(const uint8_t *, size_t, uint8_t hash[CUSTODY_HASH]);

static const struct {
	const char *suffix, *what;
	/* Its name; false: it cannot have one. */
	bool (*hash)(const uint8_t *, size_t, uint8_t hash[CUSTODY_HASH]);
} kinds[] = {
	[CUSTODY_KEY] = { ".key", "key", pkcs8_public_hash },
	[CUSTODY_CHAIN] = { ".chain", "certificate chain", hash_content },
	[CUSTODY_STAPLE] = { ".ocsp", "OCSP staple", hash_content },
};

_Static_assert(nitems(kinds) == CUSTODY_KINDS, "a row per kind");

static int check_directory(const struct custody *, struct err *);
static int open_file(const struct custody *, enum custody_kind,
    const char *name, struct stat *, struct err *);
static int check_file(const struct custody *, const char *name,
    const struct stat *, struct err *);
static int read_all(int fd, const char *name, const struct stat *,
    struct custody_bytes *, struct err *);
static int check_content(enum custody_kind, const uint8_t *hash,
    const void *bytes, size_t size, struct err *);

int
custody_open(struct custody *c, const struct state *st, struct err *e)
{
	c->dir = -1;
	state_path(st, STATE_TLS, c->path);
	if (io_mkdir(c->path, 0700, e) == -1)
		return -1;
	c->dir = open(c->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (c->dir == -1)
		return err_errno(e, ERR_LOCAL, "cannot open %s", c->path);
	if (check_directory(c, e) == -1) {
		custody_close(c);
		return -1;
	}
	return 0;
}

void
custody_close(struct custody *c)
{
	io_close(&c->dir);
}

int
custody_lock(struct custody *c, struct err *e)
{
	int rv;

	do
		rv = flock(c->dir, LOCK_EX);
	while (rv == -1 && errno == EINTR);
	return rv == 0 ? 0 : err_errno(e, ERR_LOCAL, "cannot lock %s", c->path);
}

int
custody_read(const struct custody *c, enum custody_kind kind,
    const uint8_t hash[CUSTODY_HASH], struct custody_bytes *out, struct err *e)
{
	struct custody_bytes b = { NULL, 0 };
	char name[CUSTODY_NAME_MAX];
	struct stat sb;
	int fd, rv;

	custody_name(kind, hash, name);
	if ((fd = open_file(c, kind, name, &sb, e)) == -1)
		return -1;
	rv = read_all(fd, name, &sb, &b, e);
	close(fd);
	if (rv == 0)
		rv = check_content(kind, hash, b.at, b.size, e);
	if (rv == 0)
		*out = b;
	else
		custody_wipe(&b);
	return rv;
}

void
custody_wipe(struct custody_bytes *b)
{
	if (b->at != NULL)
		sodium_memzero(b->at, b->size);
	free(b->at);
	b->at = NULL;
	b->size = 0;
}

int
custody_write(const struct custody *c, enum custody_kind kind,
    const uint8_t hash[CUSTODY_HASH], const void *bytes, size_t size,
    bool durable, struct err *e)
{
	char name[CUSTODY_NAME_MAX], path[PATH_MAX];
	struct io_replacement f;

	if (size == 0 || size > CUSTODY_SIZE_MAX)
		return err_set(e, ERR_USAGE,
		    "a %s is 1 to %d bytes long, not %zu", kinds[kind].what,
		    CUSTODY_SIZE_MAX, size);
	custody_name(kind, hash, name);
	if (check_content(kind, hash, bytes, size, e) == -1 ||
	    io_path(path, sizeof(path), c->path, name, e) == -1)
		return -1;
	if (durable)
		return io_write_file(path, bytes, size, 0600, e);
	if (io_replace_begin(&f, path, e) == -1)
		return -1;
	if (io_write_n(f.fd, bytes, size) == -1) {
		err_errno(e, ERR_LOCAL, "cannot write %s", path);
		io_replace_abort(&f);
		return -1;
	}
	return io_replace_quickly(&f, 0600, e);
}

bool
custody_has(const struct custody *c, enum custody_kind kind,
    const uint8_t hash[CUSTODY_HASH])
{
	char name[CUSTODY_NAME_MAX];
	struct stat sb;

	custody_name(kind, hash, name);
	return fstatat(c->dir, name, &sb, AT_SYMLINK_NOFOLLOW) == 0 &&
	    S_ISREG(sb.st_mode) && sb.st_size > 0;
}

int
custody_sweep(const struct custody *c, custody_keep_fn *keep, void *arg,
    struct err *e)
{
	uint8_t hash[CUSTODY_HASH];
	enum custody_kind kind;
	struct dirent *d;
	DIR *dir = opendir(c->path);
	int rv = 0;

	if (dir == NULL)
		return err_errno(e, ERR_LOCAL, "cannot read %s", c->path);
	while ((d = readdir(dir)) != NULL)
		if (custody_parse(d->d_name, &kind, hash) &&
		    !keep(kind, hash, arg) &&
		    unlinkat(c->dir, d->d_name, 0) == -1 && errno != ENOENT)
			rv = err_errno(e, ERR_LOCAL, "cannot remove %s/%s",
			    c->path, d->d_name);
	closedir(dir);
	io_sweep(c->path);
	return rv;
}

struct timespec
custody_changed(const struct custody *c)
{
	struct stat sb = { 0 };

	if (fstat(c->dir, &sb) == -1)
		sb.st_mtim.tv_sec = 0;
	return sb.st_mtim;
}

void
custody_name(enum custody_kind kind, const uint8_t hash[CUSTODY_HASH],
    char name[CUSTODY_NAME_MAX])
{
	sodium_bin2hex(name, 2 * CUSTODY_HASH + 1, hash, CUSTODY_HASH);
	snprintf(name + 2L * CUSTODY_HASH, CUSTODY_NAME_MAX - 2 * CUSTODY_HASH,
	    "%s", kinds[kind].suffix);
}

bool
custody_parse(const char *name, enum custody_kind *kind,
    uint8_t hash[CUSTODY_HASH])
{
	char again[CUSTODY_NAME_MAX];
	size_t n;

	if (strlen(name) <= 2L * CUSTODY_HASH ||
	    sodium_hex2bin(hash, CUSTODY_HASH, name, 2L * CUSTODY_HASH, NULL,
		&n, NULL) == -1 ||
	    n != CUSTODY_HASH)
		return false;
	for (size_t i = 0; i < nitems(kinds); i++) {
		/* Written again, since hex2bin takes capitals, too. */
		custody_name((enum custody_kind)i, hash, again);
		if (strcmp(again, name) == 0) {
			*kind = (enum custody_kind)i;
			return true;
		}
	}
	return false;
}

static int
check_directory(const struct custody *c, struct err *e)
{
	struct stat sb;

	if (fstat(c->dir, &sb) == -1)
		return err_errno(e, ERR_LOCAL, "cannot stat %s", c->path);
	if (sb.st_uid != geteuid())
		return err_set(e, ERR_LOCAL,
		    "%s belongs to uid %d, not to uid %d (chown it)", c->path,
		    (int)sb.st_uid, (int)geteuid());
	if ((sb.st_mode & 0077) != 0)
		return err_set(e, ERR_LOCAL,
		    "%s is open to others (mode %04o); chmod 700 it, and "
		    "renew the certificates if somebody may have read their "
		    "keys",
		    c->path, (unsigned)sb.st_mode & 07777);
	return 0;
}

static int
open_file(const struct custody *c, enum custody_kind kind, const char *name,
    struct stat *sb, struct err *e)
{
	int fd = openat(c->dir, name,
	    O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);

	if (fd == -1 && errno == ENOENT)
		return err_set(e, ERR_NO_TARGET, "the %s is not here (%s)",
		    kinds[kind].what, name);
	if (fd == -1)
		return err_errno(e, ERR_LOCAL, "cannot open %s/%s", c->path,
		    name);
	if (fstat(fd, sb) == -1)
		err_errno(e, ERR_LOCAL, "cannot stat %s/%s", c->path, name);
	else if (check_file(c, name, sb, e) == 0)
		return fd;
	close(fd);
	return -1;
}

static int
check_file(const struct custody *c, const char *name, const struct stat *sb,
    struct err *e)
{
	if (!S_ISREG(sb->st_mode) || sb->st_nlink != 1)
		return err_set(e, ERR_LOCAL,
		    "%s/%s is not a plain file of its own", c->path, name);
	if (sb->st_uid != geteuid())
		return err_set(e, ERR_LOCAL,
		    "%s/%s belongs to uid %d, not to uid %d", c->path, name,
		    (int)sb->st_uid, (int)geteuid());
	if ((sb->st_mode & 0077) != 0)
		return err_set(e, ERR_LOCAL,
		    "%s/%s is open to others (mode %04o); chmod 600 it, and "
		    "renew the certificate if somebody may have read it",
		    c->path, name, (unsigned)sb->st_mode & 07777);
	if (sb->st_size == 0 || sb->st_size > CUSTODY_SIZE_MAX)
		return err_set(e, ERR_CORRUPT, "%s/%s is damaged: %lld bytes",
		    c->path, name, (long long)sb->st_size);
	return 0;
}

static int
read_all(int fd, const char *name, const struct stat *sb,
    struct custody_bytes *out, struct err *e)
{
	size_t size = (size_t)sb->st_size;
	ssize_t n;

	if ((out->at = malloc(size)) == NULL)
		return err_set(e, ERR_LOCAL, "out of memory for %s", name);
	out->size = size;
	n = io_read_n(fd, out->at, size);
	if (n == -1)
		return err_errno(e, ERR_LOCAL, "cannot read %s", name);
	return (size_t)n == size ?
	    0 :
	    err_set(e, ERR_CORRUPT, "%s was cut while it was read", name);
}

static int
check_content(enum custody_kind kind, const uint8_t *hash, const void *bytes,
    size_t size, struct err *e)
{
	uint8_t have[CUSTODY_HASH];
	char name[CUSTODY_NAME_MAX];

	if (kinds[kind].hash(bytes, size, have) &&
	    memcmp(have, hash, CUSTODY_HASH) == 0)
		return 0;
	custody_name(kind, hash, name);
	return err_set(e, ERR_CORRUPT,
	    "the %s is not what its name says (%s): it is damaged",
	    kinds[kind].what, name);
}

static bool
hash_content(const uint8_t *bytes, size_t size, uint8_t hash[CUSTODY_HASH])
{
	return crypto_hash_sha256(hash, bytes, size) == 0;
}
