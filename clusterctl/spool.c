/* spool.c: see spool.h. */
#include "clusterctl/spool.h"

#include <sys/mman.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clusterctl/xalloc.h"
#include "common/base/io.h"

static int to_file(struct spool *, struct err *);

void
spool_init(struct spool *s)
{
	memset(s, 0, sizeof(*s));
	s->fd = -1;
}

void
spool_fini(struct spool *s)
{
	if (s->map != NULL)
		munmap(s->map, s->map_size);
	io_close(&s->fd);
	free(s->memory);
	spool_init(s);
}

int
spool_put(struct spool *s, const void *bytes, size_t n, struct err *e)
{
	if (s->fd == -1 && n > SPOOL_MEMORY - s->size && to_file(s, e) == -1)
		return -1;
	if (s->fd != -1) {
		if (io_write_n(s->fd, bytes, n) == -1)
			return err_errno(e, ERR_LOCAL,
			    "cannot write a temporary file (see $TMPDIR)");
	} else {
		if (s->size + n > s->room) {
			s->room = s->size + n > 1024 ? SPOOL_MEMORY : 1024;
			s->memory = xreallocarray(s->memory, 1, s->room);
		}
		memcpy(s->memory + s->size, bytes, n);
	}
	s->size += n;
	return 0;
}

ssize_t
spool_read(const struct spool *s, uint64_t offset, void *buf, size_t n,
    struct err *e)
{
	ssize_t got;

	if (offset >= s->size)
		return 0;
	if (n > s->size - offset)
		n = (size_t)(s->size - offset);
	if (s->fd == -1) {
		memcpy(buf, s->memory + offset, n);
		return (ssize_t)n;
	}
	do
		got = pread(s->fd, buf, n, (off_t)offset);
	while (got == -1 && errno == EINTR);
	if (got == -1)
		return err_errno(e, ERR_LOCAL, "cannot read a temporary file");
	return got;
}

int
spool_view(struct spool *s, const char **bytes, size_t *size, struct err *e)
{
	if (s->fd != -1 && s->map == NULL) {
		void *map = mmap(NULL, (size_t)s->size, PROT_READ, MAP_PRIVATE,
		    s->fd, 0);

		if (map == MAP_FAILED)
			return err_errno(e, ERR_LOCAL,
			    "cannot map a temporary file");
		s->map = map;
		s->map_size = (size_t)s->size;
	}
	*bytes = s->fd != -1 ? s->map : s->memory != NULL ? s->memory : "";
	*size = (size_t)s->size;
	return 0;
}

static int
to_file(struct spool *s, struct err *e)
{
	const char *dir = getenv("TMPDIR");

	if (dir == NULL || *dir == '\0')
		dir = "/tmp";
	if ((s->fd = io_unnamed(dir, e)) == -1)
		return -1;
	if (io_write_n(s->fd, s->memory, (size_t)s->size) == -1)
		return err_errno(e, ERR_LOCAL,
		    "cannot write a temporary file (see $TMPDIR)");
	free(s->memory);
	s->memory = NULL;
	s->room = 0;
	return 0;
}
