/* slurp.c: see slurp.h. */
#include "clusterctl/slurp.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clusterctl/xalloc.h"
#include "common/base/io.h"

static int read_stdin(size_t max, char **text, size_t *size, struct err *);

int
slurp(const char *path, size_t max, char **text, size_t *size, struct err *e)
{
	if (strcmp(path, "-") == 0)
		return read_stdin(max, text, size, e);
	return io_read_file(path, max, text, size, e);
}

static int
read_stdin(size_t max, char **text, size_t *size, struct err *e)
{
	size_t room = 65536, n = 0;
	char *buf = xcalloc(1, room + 1);
	ssize_t got;

	while ((got = io_read_n(STDIN_FILENO, buf + n, room - n)) > 0) {
		n += (size_t)got;
		if (n > max || n < room)
			break;
		room *= 2;
		buf = xreallocarray(buf, room + 1, 1);
	}
	if (got == -1 || n > max) {
		free(buf);
		return got == -1 ?
		    err_errno(e, ERR_LOCAL, "cannot read standard input") :
		    err_set(e, ERR_USAGE,
			"standard input is larger than %zu bytes", max);
	}
	buf[n] = '\0';
	*text = buf;
	*size = n;
	return 0;
}
