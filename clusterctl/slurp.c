/* slurp.c: see slurp.h. */
#include "clusterctl/slurp.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clusterctl/xalloc.h"
#include "common/base/io.h"

static int slurp_fd(int fd, const char *name, size_t max, char **text,
    size_t *size, struct err *);

int
slurp(const char *path, size_t max, char **text, size_t *size, struct err *e)
{
	int fd, rv;

	if (strcmp(path, "-") == 0)
		return slurp_fd(STDIN_FILENO, "standard input", max, text, size,
		    e);
	if ((fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY)) == -1)
		return err_errno(e, ERR_LOCAL, "cannot open %s", path);
	rv = slurp_fd(fd, path, max, text, size, e);
	close(fd);
	return rv;
}

static int
slurp_fd(int fd, const char *name, size_t max, char **text, size_t *size,
    struct err *e)
{
	size_t room = 65536, n = 0;
	char *buf = xcalloc(1, room + 1);
	ssize_t got;

	while ((got = io_read_n(fd, buf + n, room - n)) > 0) {
		n += (size_t)got;
		if (n > max || n < room)
			break;
		room *= 2;
		buf = xreallocarray(buf, room + 1, 1);
	}
	if (got == -1 || n > max) {
		free(buf);
		return got == -1 ?
		    err_errno(e, ERR_LOCAL, "cannot read %s", name) :
		    err_set(e, ERR_USAGE, "%s is larger than %zu bytes", name,
			max);
	}
	buf[n] = '\0';
	*text = buf;
	*size = n;
	return 0;
}
