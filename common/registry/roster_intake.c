/* roster_intake.c: a roster that comes in pieces; see roster.h. */
#include "common/registry/roster.h"

#include <sys/file.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/io.h"

struct roster_intake {
	struct io_replacement file;
	size_t size;
};

static struct roster *open_received(const struct roster_intake *,
    const uint8_t authority[KEY_SIZE], struct err *);
static int lock_directory(const char *path, int *fd, struct err *);
static int compare(const struct roster *new, const char *path,
    const uint8_t authority[KEY_SIZE], const char *cluster_uuid, bool *newer,
    struct err *);

struct roster_intake *
roster_intake_new(const char *path, struct err *e)
{
	struct roster_intake *in = malloc(sizeof(*in));

	if (in == NULL) {
		err_set(e, ERR_LOCAL, "out of memory");
		return NULL;
	}
	in->size = 0;
	if (io_replace_begin(&in->file, path, e) == -1) {
		free(in);
		return NULL;
	}
	return in;
}

int
roster_intake_add(struct roster_intake *in, const void *bytes, size_t size,
    struct err *e)
{
	if (size > ROSTER_SIZE_MAX - in->size)
		return err_set(e, ERR_PROTOCOL,
		    "the roster is larger than it may be");
	if (io_write_n(in->file.fd, bytes, size) == -1)
		return err_errno(e, ERR_LOCAL, "cannot write %s", in->file.tmp);
	in->size += size;
	return 0;
}

void
roster_intake_free(struct roster_intake *in)
{
	if (in == NULL)
		return;
	io_replace_abort(&in->file);
	free(in);
}

int
roster_intake_adopt(struct roster_intake *in, const uint8_t authority[KEY_SIZE],
    const char *cluster_uuid, bool *adopted, struct err *e)
{
	struct roster *new = open_received(in, authority, e);
	bool newer = false;
	int lock = -1, rv;

	if (new == NULL)
		return -1;
	/* Two processes that compare and rename must not cross. */
	rv = lock_directory(in->file.path, &lock, e);
	if (rv == 0)
		rv = compare(new, in->file.path, authority, cluster_uuid,
		    &newer, e);
	if (rv == 0 && newer)
		rv = io_replace_commit(&in->file, 0600, e);
	io_close(&lock);
	roster_close(new);
	if (rv == 0)
		*adopted = newer;
	return rv;
}

static struct roster *
open_received(const struct roster_intake *in, const uint8_t authority[KEY_SIZE],
    struct err *e)
{
	struct roster *r;
	int fd = open(in->file.tmp, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

	if (fd == -1) {
		err_errno(e, ERR_LOCAL, "cannot open %s", in->file.tmp);
		return NULL;
	}
	if ((r = roster_open_fd(fd, authority, e)) == NULL)
		err_wrap(e, "received roster");
	return r;
}

static int
lock_directory(const char *path, int *fd, struct err *e)
{
	char copy[PATH_MAX];

	snprintf(copy, sizeof(copy), "%s", path);
	*fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (*fd == -1 || flock(*fd, LOCK_EX) == -1)
		return err_errno(e, ERR_LOCAL,
		    "cannot lock the directory of %s", path);
	return 0;
}

static int
compare(const struct roster *new, const char *path,
    const uint8_t authority[KEY_SIZE], const char *cluster_uuid, bool *newer,
    struct err *e)
{
	struct err why;
	struct roster *present = roster_open(path, authority, &why);
	const char *ours = cluster_uuid != NULL ? cluster_uuid :
	    present != NULL			? roster_cluster_uuid(present) :
						  NULL;
	int rv = 0;

	if (ours != NULL && strcmp(ours, roster_cluster_uuid(new)) != 0)
		rv = err_set(e, ERR_DENIED,
		    "received roster is of another cluster");
	else if (present != NULL &&
	    roster_revision(new) < roster_revision(present))
		rv = err_set(e, ERR_DENIED,
		    "received roster is older (revision %lld) than ours "
		    "(%lld)",
		    (long long)roster_revision(new),
		    (long long)roster_revision(present));
	else
		*newer = present == NULL ||
		    roster_revision(new) > roster_revision(present);
	roster_close(present);
	return rv;
}
