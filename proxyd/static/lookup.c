/*
 * lookup.c: see lookup.h.
 *
 * Every open starts at the home and names the whole path: only so may a
 * symlink lead from one part of the home to another.  The tree may change
 * meanwhile; all that can come of it is a file of the same home.
 */
#include "proxyd/static/lookup.h"

#include <sys/stat.h>
#include <sys/syscall.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/io.h"
#include "proxyd/http/compressible.h"
#include "proxyd/static/names.h"
#include "proxyd/static/path.h"

/* A fifo must not wait for its writer, a terminal not become ours. */
#define READ_FLAGS (O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)

#define INDEX "index.html"
#define ROOM  (FILE_PATH_MAX + 32) /* a path, and what is put behind it */

struct home {
	int fd;
	uid_t owner;
	const struct lookup_site *site;
	const struct lookup_tools *tools;
};

static enum lookup_verdict find(struct lookup *, const struct home *,
    const struct lookup_ask *);
static enum lookup_verdict find_directory(const struct home *,
    const char *path);
static enum lookup_verdict find_file(struct lookup *, const struct home *,
    const char *path, bool directory, struct coding_wish);
static enum lookup_verdict find_index(struct lookup *, const struct home *,
    const struct lookup_ask *);
static bool others_may_win(const struct home *, const char *dir);
static bool is_there(const struct home *, const char *path);
static enum lookup_verdict open_plain(const struct home *, const char *path,
    int *fd, struct stat *);
static enum lookup_verdict why_not_open(void);
static void choose_coding(struct lookup *, const struct home *,
    const char *path, struct coding_wish);
static bool allowed(const struct home *, const char *path, bool directory);
static enum htaccess judge_directory(const struct home *, const char *dir,
    size_t len);
static enum htaccess judge_file(const struct home *, int fd);

static int
open_below(int dir, const char *path, int flags, uint64_t resolve)
{
	struct open_how how = { .flags = (uint64_t)flags, .resolve = resolve };
	long fd;

	do
		fd = syscall(SYS_openat2, dir, *path != '\0' ? path : ".", &how,
		    sizeof(how));
	while (fd == -1 && errno == EINTR);
	return (int)fd;
}

static int
open_in(const struct home *h, const char *path, int flags)
{
	return open_below(h->fd, path, flags,
	    RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS);
}

const char *
lookup_word(enum lookup_verdict v)
{
	static const char *const words[] = {
#define X(name, word) [LOOKUP_##name] = word,
		LOOKUP_TABLE(X)
#undef X
	};

	return words[v];
}

bool
lookup_possible(void)
{
	int fd = open_below(AT_FDCWD, "/", O_PATH | O_CLOEXEC, 0);

	if (fd == -1)
		return false;
	close(fd);
	return true;
}

void
lookup_path(struct lookup *out, const struct lookup_site *site,
    const struct lookup_ask *ask, const struct lookup_tools *tools)
{
	struct home h = { .site = site, .tools = tools };
	struct stat st;

	*out = (struct lookup){ .verdict = LOOKUP_HOME, .fd = -1 };
	/* The administrator names the home: its symlinks are his. */
	h.fd = open_below(AT_FDCWD, site->home,
	    O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
	if (h.fd == -1)
		return;
	if (fstat(h.fd, &st) == 0) {
		h.owner = st.st_uid;
		out->verdict = find(out, &h, ask);
	}
	close(h.fd);
}

static enum lookup_verdict
find(struct lookup *out, const struct home *h, const struct lookup_ask *ask)
{
	enum name_kind kind =
	    name_judge(ask->path, strlen(ask->path), h->site->extensions);

	if (kind == NAME_HIDDEN)
		return is_there(h, ask->path) ? LOOKUP_HIDDEN : LOOKUP_MISSING;
	if (ask->directory)
		return find_index(out, h, ask);
	if (kind == NAME_PLAIN)
		return find_file(out, h, ask->path, false, ask->wish);
	return find_directory(h, ask->path);
}

/* Without its slash. */
static enum lookup_verdict
find_directory(const struct home *h, const char *path)
{
	int fd = open_in(h, path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	char inside[ROOM];

	if (fd == -1)
		return errno == ENOTDIR ? LOOKUP_NAME : why_not_open();
	close(fd);
	/* Its own .htaccess has a say, too. */
	snprintf(inside, sizeof(inside), "%s/", path);
	return allowed(h, inside, true) ? LOOKUP_SLASH : LOOKUP_HTACCESS;
}

/* Opens first: most of what is not ours is not there at all. */
static enum lookup_verdict
find_file(struct lookup *out, const struct home *h, const char *path,
    bool directory, struct coding_wish wish)
{
	struct stat st;
	int fd;
	enum lookup_verdict verdict = open_plain(h, path, &fd, &st);

	if (verdict != LOOKUP_FILE)
		return verdict;
	if (!allowed(h, path, directory)) {
		close(fd);
		return LOOKUP_HTACCESS;
	}
	out->fd = fd;
	out->size = (uint64_t)st.st_size;
	out->modified_s = st.st_mtim.tv_sec;
	out->modified_ns = (uint32_t)st.st_mtim.tv_nsec;
	out->type =
	    mime_type(h->tools->mime, name_extension(path, strlen(path)));
	if (compressible_type("", out->type, strlen(out->type)))
		choose_coding(out, h, path, wish);
	return LOOKUP_FILE;
}

/* index.html, where nothing else could be a node's index. */
static enum lookup_verdict
find_index(struct lookup *out, const struct home *h,
    const struct lookup_ask *ask)
{
	char path[ROOM];
	const char *slash = *ask->path != '\0' ? "/" : "";
	enum lookup_verdict verdict;

	snprintf(path, sizeof(path), "%s%s%s", ask->path, slash, INDEX);
	if (name_judge(path, strlen(path), h->site->extensions) != NAME_PLAIN)
		return LOOKUP_NAME;
	verdict = find_file(out, h, path, true, ask->wish);
	if (verdict != LOOKUP_FILE || !others_may_win(h, ask->path))
		return verdict;
	io_close(&out->fd);
	return LOOKUP_INDEX;
}

static bool
others_may_win(const struct home *h, const char *dir)
{
	char path[ROOM];

	for (int i = 0; name_indexes[i] != NULL; i++) {
		snprintf(path, sizeof(path), "%s%s%s", dir,
		    *dir != '\0' ? "/" : "", name_indexes[i]);
		if (is_there(h, path))
			return true;
	}
	return false;
}

/* Also when it cannot be told. */
static bool
is_there(const struct home *h, const char *path)
{
	int fd = open_in(h, path, O_PATH | O_NOFOLLOW | O_CLOEXEC);

	if (fd == -1)
		return errno != ENOENT && errno != ENOTDIR;
	close(fd);
	return true;
}

static enum lookup_verdict
why_not_open(void)
{
	switch (errno) {
	case ENOENT:
	case ENOTDIR:
		return LOOKUP_MISSING;
	case EXDEV:
	case ELOOP:
		return LOOKUP_OUTSIDE;
	case EACCES:
	case EPERM:
		return LOOKUP_UNREADABLE;
	case ENXIO: /* a socket */
		return LOOKUP_KIND;
	default:
		return LOOKUP_DISK;
	}
}

/* LOOKUP_FILE and a descriptor, or why not. */
static enum lookup_verdict
open_plain(const struct home *h, const char *path, int *fd, struct stat *st)
{
	enum lookup_verdict verdict = LOOKUP_FILE;

	if ((*fd = open_in(h, path, READ_FLAGS)) == -1)
		return why_not_open();
	if (fstat(*fd, st) == -1)
		verdict = LOOKUP_DISK;
	else if (!S_ISREG(st->st_mode) || st->st_size < 0)
		verdict = LOOKUP_KIND;
	else if (h->site->owner_check && st->st_uid != h->owner)
		verdict = LOOKUP_OWNER;
	if (verdict != LOOKUP_FILE)
		io_close(fd);
	return verdict;
}

/* A compressed sibling that is older than its file was forgotten. */
static void
choose_coding(struct lookup *out, const struct home *h, const char *path,
    struct coding_wish wish)
{
	char sibling[ROOM];
	struct stat st[CODING_N];
	int fds[CODING_N] = { -1, -1, -1 };

	for (int c = CODING_GZIP; c < CODING_N; c++) {
		snprintf(sibling, sizeof(sibling), "%s%s", path,
		    coding_ends[c]);
		open_plain(h, sibling, &fds[c], &st[c]);
		if (fds[c] != -1 && st[c].st_mtim.tv_sec < out->modified_s)
			io_close(&fds[c]);
		out->varies = out->varies || fds[c] != -1;
	}
	for (size_t i = 0; i < nitems(wish.order); i++) {
		enum coding c = wish.order[i];

		if (c == CODING_NONE || fds[c] == -1)
			continue;
		close(out->fd);
		out->fd = fds[c];
		fds[c] = -1;
		out->size = (uint64_t)st[c].st_size;
		out->modified_s = st[c].st_mtim.tv_sec;
		out->modified_ns = (uint32_t)st[c].st_mtim.tv_nsec;
		out->coding = c;
		break;
	}
	for (int c = CODING_GZIP; c < CODING_N; c++)
		io_close(&fds[c]);
}

/* --- .htaccess */

/* Whether no .htaccess from the home down has a say.  `directory`: a
 * directory was asked for. */
static bool
allowed(const struct home *h, const char *path, bool directory)
{
	const char *at = path;

	for (;;) {
		size_t len = at > path ? (size_t)(at - path) - 1 : 0;
		enum htaccess verdict = judge_directory(h, path, len);
		const char *slash = strchr(at, '/');

		if (verdict == HTACCESS_DECIDES ||
		    (verdict == HTACCESS_DIRECTORY && directory))
			return false;
		if (slash == NULL)
			return true;
		at = slash + 1;
	}
}

/* That of path[0, len). */
static enum htaccess
judge_directory(const struct home *h, const char *dir, size_t len)
{
	char path[ROOM];
	enum htaccess verdict;
	int fd;

	snprintf(path, sizeof(path), "%.*s%s.htaccess", (int)len, dir,
	    len > 0 ? "/" : "");
	if ((fd = open_in(h, path, READ_FLAGS)) == -1)
		return errno == ENOENT ? HTACCESS_HARMLESS : HTACCESS_DECIDES;
	verdict = judge_file(h, fd);
	close(fd);
	return verdict;
}

static enum htaccess
judge_file(const struct home *h, int fd)
{
	struct htaccess_cache *cache = h->tools->cache;
	char text[HTACCESS_MAX + 1];
	enum htaccess verdict;
	struct stat st;
	ssize_t n;

	if (fstat(fd, &st) == -1 || !S_ISREG(st.st_mode) ||
	    st.st_size > (off_t)HTACCESS_MAX)
		return HTACCESS_DECIDES;
	if (htaccess_cache_find(cache, &st, &verdict))
		return verdict;
	if ((n = io_read_n(fd, text, sizeof(text))) == -1)
		return HTACCESS_DECIDES;
	verdict = htaccess_judge(text, (size_t)n);
	htaccess_cache_put(cache, &st, verdict, clock_wall_ms() / 1000);
	return verdict;
}
