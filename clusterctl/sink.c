/* sink.c: see sink.h. */
#include "clusterctl/sink.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clusterctl/utf8.h"

#define SINK_SIZE  65536 /* held back before it is written */
#define CLEAN_SIZE 4096	 /* cleaned at a time */

static int put_raw(struct sink *, const char *bytes, size_t n, struct err *);
static int put_clean(struct sink *, const char *bytes, size_t n, struct err *);
static int wait_writable(int fd);

void
sink_init(struct sink *s, int fd)
{
	*s = (struct sink){ .fd = fd, .terminal = isatty(fd) };
}

void
sink_fini(struct sink *s)
{
	free(s->buf);
	s->buf = NULL;
}

int
sink_printf(struct sink *s, struct err *e, const char *fmt, ...)
{
	va_list ap;
	char *text;
	int n, rv;

	va_start(ap, fmt);
	n = vasprintf(&text, fmt, ap);
	va_end(ap);
	if (n == -1)
		return err_set(e, ERR_LOCAL, "out of memory for output");
	rv = put_raw(s, text, (size_t)n, e);
	free(text);
	return rv;
}

int
sink_put(struct sink *s, const void *bytes, size_t n, struct err *e)
{
	return (s->terminal ? put_clean : put_raw)(s, bytes, n, e);
}

int
sink_flush(struct sink *s, struct err *e)
{
	size_t done = 0;

	while (done < s->len && !s->closed) {
		ssize_t w = write(s->fd, s->buf + done, s->len - done);

		if (w >= 0)
			done += (size_t)w;
		else if (errno == EPIPE)
			s->closed = true;
		else if (errno == EAGAIN && wait_writable(s->fd) == 0)
			continue;
		else if (errno != EINTR)
			return err_errno(e, ERR_LOCAL, "cannot write output");
	}
	s->len = 0;
	return 0;
}

char *
sink_text(const void *bytes, size_t n, bool harmless, size_t *len)
{
	char *text = reallocarray(NULL, n + 1, UTF8_GROWTH);

	if (text == NULL)
		return NULL;
	*len = utf8_clean(bytes, n, harmless, text);
	text[*len] = '\0';
	return text;
}

static int
put_raw(struct sink *s, const char *bytes, size_t n, struct err *e)
{
	while (n > 0 && !s->closed) {
		size_t room;

		if (s->buf == NULL && (s->buf = malloc(SINK_SIZE)) == NULL)
			return err_set(e, ERR_LOCAL,
			    "out of memory for output");
		room = SINK_SIZE - s->len < n ? SINK_SIZE - s->len : n;
		memcpy(s->buf + s->len, bytes, room);
		s->len += room;
		bytes += room;
		n -= room;
		if (s->len == SINK_SIZE && sink_flush(s, e) == -1)
			return -1;
	}
	return 0;
}

static int
put_clean(struct sink *s, const char *bytes, size_t n, struct err *e)
{
	char text[CLEAN_SIZE * UTF8_GROWTH];

	while (n > 0) {
		size_t part = n;

		if (n > CLEAN_SIZE)
			part = utf8_whole(bytes, CLEAN_SIZE);
		if (put_raw(s, text, utf8_clean(bytes, part, true, text), e) ==
		    -1)
			return -1;
		bytes += part;
		n -= part;
	}
	return 0;
}

/* Standard output may be a terminal that someone else set non-blocking. */
static int
wait_writable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLOUT };

	return poll(&p, 1, -1) == -1 && errno != EINTR ? -1 : 0;
}
