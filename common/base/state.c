/* state.c: see state.h. */
#include "common/base/state.h"

#include <sys/stat.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/io.h"

static const char *const state_names[STATE_N_FILES] = {
	[STATE_REGISTRY] = "registry.db",
	[STATE_AUTHORITY_KEY] = "authority.key",
	[STATE_AUTHORITY_PUB] = "authority.pub",
	[STATE_NODE_KEY] = "node.key",
	[STATE_NODE_CERT] = "node.cert",
	[STATE_OPERATOR_KEY] = "operator.key",
	[STATE_OPERATOR_CERT] = "operator.cert",
	[STATE_ROSTER] = "roster",
	[STATE_AUDIT_NODE] = "audit-node.log",
	[STATE_AUDIT_OPERATOR] = "audit-operator.log",
	[STATE_TLS] = "tls",
	[STATE_SPOOL] = "spool",
	[STATE_RUN] = "run",
};

static int check_directory(const char *path, struct err *);
static int make_parents(const char *path, struct err *);

const char *
state_dir(const char *option)
{
	const char *dir = getenv("MUSTER_STATE");

	/* An empty --state is a script's unset variable, and no wish for the
	 * default: state_open() refuses it. */
	if (option != NULL)
		return option;
	return dir != NULL && *dir != '\0' ? dir : STATE_DEFAULT_DIR;
}

int
state_open(struct state *st, const char *dir, struct err *e)
{
	char real[PATH_MAX], part[PATH_MAX];

	if (*dir == '\0')
		return err_set(e, ERR_USAGE,
		    "the state directory is empty text (--state DIR)");
	/* The parents that count are those of the real place. */
	if (realpath(dir, real) == NULL)
		return err_errno(e, ERR_LOCAL,
		    "state directory %s (choose another with --state)", dir);
	if (strlen(real) >= sizeof(st->dir))
		return err_set(e, ERR_LOCAL, "state path too long: %s", dir);
	snprintf(part, sizeof(part), "%s", real);
	for (;;) {
		char *slash;

		if (check_directory(part, e) == -1)
			return -1;
		if (strcmp(part, "/") == 0)
			break;
		slash = strrchr(part, '/');
		slash[slash == part ? 1 : 0] = '\0';
	}
	snprintf(st->dir, sizeof(st->dir), "%.*s", (int)sizeof(st->dir) - 1,
	    real);
	io_sweep(st->dir);
	return 0;
}

int
state_create(struct state *st, const char *dir, struct err *e)
{
	if (*dir != '\0' &&
	    (make_parents(dir, e) == -1 || io_mkdir(dir, 0700, e) == -1))
		return -1;
	return state_open(st, dir, e);
}

const char *
state_path(const struct state *st, enum state_file file, char buf[PATH_MAX])
{
	const char *run = getenv("RUNTIME_DIRECTORY");

	if (file == STATE_RUN && run != NULL && *run == '/')
		snprintf(buf, PATH_MAX, "%.*s", (int)strcspn(run, ":"), run);
	else
		snprintf(buf, PATH_MAX, "%s/%s", st->dir, state_names[file]);
	return buf;
}

int
state_has(const struct state *st, enum state_file file)
{
	char path[PATH_MAX];

	return access(state_path(st, file, path), F_OK) == 0;
}

int
state_read_secret(const struct state *st, enum state_file file, void *secret,
    size_t size, struct err *e)
{
	char path[PATH_MAX], extra;
	struct stat sb;
	int fd, rv = -1;

	state_path(st, file, path);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd == -1 && errno == ELOOP)
		return err_set(e, ERR_LOCAL,
		    "%s is a symbolic link; put the file itself there", path);
	if (fd == -1)
		return err_errno(e, ERR_LOCAL, "cannot open %s", path);
	if (fstat(fd, &sb) == -1)
		err_errno(e, ERR_LOCAL, "cannot stat %s", path);
	else if (!S_ISREG(sb.st_mode) || sb.st_nlink != 1)
		err_set(e, ERR_LOCAL, "%s is not a plain file of its own",
		    path);
	else if (sb.st_uid != geteuid())
		err_set(e, ERR_LOCAL, "%s belongs to uid %d, not to uid %d",
		    path, (int)sb.st_uid, (int)geteuid());
	else if ((sb.st_mode & 0077) != 0)
		err_set(e, ERR_LOCAL,
		    "%s is open to others (mode %04o); chmod 600 it, and make "
		    "a new key if somebody may have read it",
		    path, (unsigned)sb.st_mode & 07777);
	else if (io_read_n(fd, secret, size) != (ssize_t)size ||
	    io_read_n(fd, &extra, 1) != 0)
		err_set(e, ERR_CORRUPT, "%s is damaged: not %zu bytes", path,
		    size);
	else
		rv = 0;
	close(fd);
	return rv;
}

static int
check_directory(const char *path, struct err *e)
{
	struct stat sb;

	if (lstat(path, &sb) == -1)
		return err_errno(e, ERR_LOCAL, "cannot stat %s", path);
	if (!S_ISDIR(sb.st_mode))
		return err_set(e, ERR_LOCAL, "%s is not a directory", path);
	if (sb.st_uid != 0 && sb.st_uid != geteuid())
		return err_set(e, ERR_LOCAL,
		    "%s belongs to uid %d, who could replace the state; chown "
		    "it to root or choose another place with --state",
		    path, (int)sb.st_uid);
	if ((sb.st_mode & 0022) != 0 && (sb.st_mode & S_ISVTX) == 0)
		return err_set(e, ERR_LOCAL,
		    "%s is writable by others (mode %04o); chmod go-w it", path,
		    (unsigned)sb.st_mode & 07777);
	return 0;
}

static int
make_parents(const char *path, struct err *e)
{
	char part[PATH_MAX];

	if ((size_t)snprintf(part, sizeof(part), "%s", path) >= sizeof(part))
		return err_set(e, ERR_LOCAL, "path too long: %s", path);
	for (char *p = part + 1; (p = strchr(p, '/')) != NULL; p++) {
		*p = '\0';
		if (io_mkdir(part, 0755, e) == -1)
			return -1;
		*p = '/';
	}
	return 0;
}
