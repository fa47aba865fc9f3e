/* manifest.c: see manifest.h. */
#include "clusterctl/manifest.h"

#include <sys/stat.h>
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clusterctl/output.h"
#include "clusterctl/utf8.h"
#include "clusterctl/xalloc.h"
#include "common/base/io.h"
#include "common/base/text.h"

static char *name_of(const char *source);
static int check_name(const char *what, const char *name, const char *source,
    struct err *);
static int add_visited(struct manifest *, const char *name, const FTSENT *,
    size_t root_len, struct err *);
static struct entry *add(struct manifest *, enum entry_type, const char *name,
    const FTSENT *, size_t root_len);
static int add_file(struct manifest *, const char *name, const FTSENT *,
    size_t root_len, struct err *);
static int add_link(struct manifest *, const char *name, const FTSENT *,
    size_t root_len, struct err *);

const char *
entry_type_word(enum entry_type type)
{
	static const char *const words[] = {
		[ENTRY_FILE] = "file",
		[ENTRY_DIR] = "dir",
		[ENTRY_LINK] = "link",
	};

	return words[type];
}

void
manifest_init(struct manifest *m)
{
	memset(m, 0, sizeof(*m));
}

void
manifest_fini(struct manifest *m)
{
	for (size_t i = 0; i < m->n; i++) {
		free(m->entries[i].source);
		free(m->entries[i].name);
		free(m->entries[i].below);
		free(m->entries[i].target);
	}
	free(m->entries);
	manifest_init(m);
}

int
manifest_add(struct manifest *m, const char *source, struct err *e)
{
	char *root = xstrdup(source), *name = name_of(source);
	char *const roots[] = { root, NULL };
	FTSENT *visit;
	FTS *walk = NULL;
	int rv;

	/* As cp: "dir/" is "dir". */
	for (size_t n = strlen(root); n > 1 && root[n - 1] == '/'; n--)
		root[n - 1] = '\0';
	rv = check_name("its name", name, source, e);
	if (rv == 0 &&
	    (walk = fts_open(roots, FTS_PHYSICAL | FTS_COMFOLLOW | FTS_NOCHDIR,
		 NULL)) == NULL)
		rv = err_errno(e, ERR_USAGE, "cannot read '%s'", source);
	while (rv == 0 && (visit = fts_read(walk)) != NULL)
		rv = add_visited(m, name, visit, strlen(root), e);
	if (walk != NULL)
		fts_close(walk);
	m->n_sources++;
	free(root);
	free(name);
	return rv;
}

/* The last part of its path; "" for one that has none (".", "/"), whose
 * content goes where it is pushed. */
static char *
name_of(const char *source)
{
	size_t end = strlen(source), from;

	while (end > 0 && source[end - 1] == '/')
		end--;
	for (from = end; from > 0 && source[from - 1] != '/'; from--)
		continue;
	if ((end - from == 1 && source[from] == '.') ||
	    (end - from == 2 && strncmp(source + from, "..", 2) == 0))
		return xstrdup("");
	return xstrndup(source + from, end - from);
}

/* Known before anything is copied. */
static int
check_name(const char *what, const char *name, const char *source,
    struct err *e)
{
	char shown[200];

	if (text_is_utf8(name, strlen(name)))
		return 0;
	utf8_quote(source, shown, sizeof(shown));
	return err_set(e, ERR_USAGE, "cannot push %s: %s is not UTF-8", shown,
	    what);
}

static int
add_visited(struct manifest *m, const char *name, const FTSENT *visit,
    size_t root_len, struct err *e)
{
	if (check_name("its name", visit->fts_path + root_len, visit->fts_path,
		e) == -1)
		return -1;
	switch (visit->fts_info) {
	case FTS_D:
		add(m, ENTRY_DIR, name, visit, root_len);
		return 0;
	case FTS_DP:
		return 0;
	case FTS_F:
		return add_file(m, name, visit, root_len, e);
	case FTS_SL:
	case FTS_SLNONE:
		return add_link(m, name, visit, root_len, e);
	case FTS_DNR:
	case FTS_ERR:
	case FTS_NS:
		errno = visit->fts_errno;
		return err_errno(e, ERR_USAGE, "cannot read %s",
		    visit->fts_path);
	default:
		output_note("left out: %s is no file, directory or symbolic "
			    "link",
		    visit->fts_path);
		return 0;
	}
}

static struct entry *
add(struct manifest *m, enum entry_type type, const char *name,
    const FTSENT *visit, size_t root_len)
{
	const char *below = visit->fts_path + root_len;
	struct entry *en;

	if (m->n == m->room) {
		m->room = m->room * 2 + 16;
		m->entries =
		    xreallocarray(m->entries, m->room, sizeof(*m->entries));
	}
	en = &m->entries[m->n++];
	*en = (struct entry){
		.type = type,
		.source = xstrdup(visit->fts_path),
		.name = xstrdup(name),
		.below = xstrdup(below + strspn(below, "/")),
		.mode = visit->fts_statp->st_mode & 07777,
		.mtime_s = visit->fts_statp->st_mtime,
	};
	return en;
}

static int
add_file(struct manifest *m, const char *name, const FTSENT *visit,
    size_t root_len, struct err *e)
{
	struct entry *en = add(m, ENTRY_FILE, name, visit, root_len);
	struct stat sb;
	int fd, rv;

	fd = open(en->source, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd == -1)
		return err_errno(e, ERR_USAGE, "cannot read %s", en->source);
	rv = digest_fd(fd, en->source, en->hash, e);
	if (rv == 0 && fstat(fd, &sb) == 0)
		en->size = (uint64_t)sb.st_size;
	close(fd);
	m->size += en->size;
	return rv;
}

static int
add_link(struct manifest *m, const char *name, const FTSENT *visit,
    size_t root_len, struct err *e)
{
	struct entry *en = add(m, ENTRY_LINK, name, visit, root_len);
	char target[PATH_MAX];
	ssize_t n;

	n = readlink(en->source, target, sizeof(target) - 1);
	if (n == -1)
		return err_errno(e, ERR_USAGE, "cannot read %s", en->source);
	en->target = xstrndup(target, (size_t)n);
	return check_name("its target", en->target, en->source, e);
}
