/* streams.c: see streams.h. */
#include "clusterctl/streams.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/io.h"

/* A part of a stream that lies in the file. */
struct extent {
	uint64_t begin; /* within the stream */
	uint64_t at;	/* within the file */
	uint64_t size;
};

struct stream {
	struct extent *extent;
	size_t n_extents;
	uint64_t filed; /* bytes in the file; the tail follows them */
	char *tail;
	size_t len;
	size_t size;
};

struct streams {
	struct stream *v;
	size_t n;
	size_t memory; /* of all tails */
	size_t memory_max;
	int fd; /* -1: everything is in memory */
	uint64_t file_size;
};

static int append(struct streams *, struct stream *, const void *, size_t,
    struct err *);
static int spill(struct streams *, struct err *);
static int spill_stream(struct streams *, struct stream *, struct err *);
static int open_file(struct err *);
static int write_at(int fd, const char *bytes, size_t n, uint64_t at);
static const struct extent *find(const struct stream *, uint64_t offset);

struct streams *
streams_new(size_t n_streams, size_t memory_max, struct err *e)
{
	struct streams *s = calloc(1, sizeof(*s));

	if (s != NULL)
		s->v = calloc(n_streams > 0 ? n_streams : 1, sizeof(*s->v));
	if (s == NULL || s->v == NULL) {
		free(s);
		err_set(e, ERR_LOCAL, "out of memory for output");
		return NULL;
	}
	s->n = n_streams;
	s->memory_max = memory_max;
	s->fd = -1;
	return s;
}

void
streams_free(struct streams *s)
{
	if (s == NULL)
		return;
	for (size_t i = 0; i < s->n; i++) {
		free(s->v[i].extent);
		free(s->v[i].tail);
	}
	free(s->v);
	io_close(&s->fd);
	free(s);
}

int
streams_put(struct streams *s, size_t stream, const void *bytes, size_t n,
    struct err *e)
{
	if (n > 0 && append(s, &s->v[stream], bytes, n, e) == -1)
		return -1;
	return s->memory > s->memory_max ? spill(s, e) : 0;
}

uint64_t
streams_size(const struct streams *s, size_t stream)
{
	return s->v[stream].filed + s->v[stream].len;
}

ssize_t
streams_read(const struct streams *s, size_t stream, uint64_t offset, void *buf,
    size_t n, struct err *e)
{
	const struct stream *st = &s->v[stream];
	const struct extent *x;
	uint64_t left;
	ssize_t got;

	if (offset >= streams_size(s, stream))
		return 0;
	if (offset >= st->filed) {
		left = streams_size(s, stream) - offset;
		n = left < n ? (size_t)left : n;
		memcpy(buf, st->tail + (offset - st->filed), n);
		return (ssize_t)n;
	}
	x = find(st, offset);
	left = x->begin + x->size - offset;
	n = left < n ? (size_t)left : n;
	do
		got =
		    pread(s->fd, buf, n, (off_t)(x->at + (offset - x->begin)));
	while (got == -1 && errno == EINTR);
	if (got <= 0)
		return err_errno(e, ERR_LOCAL,
		    "cannot read output from the temporary file");
	return got;
}

static int
append(struct streams *s, struct stream *st, const void *bytes, size_t n,
    struct err *e)
{
	size_t size = st->size == 0 ? 256 : st->size;
	char *tail;

	while (size - st->len < n)
		size *= 2;
	if (size != st->size) {
		if ((tail = realloc(st->tail, size)) == NULL)
			return err_set(e, ERR_LOCAL,
			    "out of memory for output");
		s->memory += size - st->size;
		st->tail = tail;
		st->size = size;
	}
	memcpy(st->tail + st->len, bytes, n);
	st->len += n;
	return 0;
}

/* Moves every tail to the file. */
static int
spill(struct streams *s, struct err *e)
{
	if (s->fd == -1 && (s->fd = open_file(e)) == -1)
		return -1;
	for (size_t i = 0; i < s->n; i++)
		if (s->v[i].len > 0 && spill_stream(s, &s->v[i], e) == -1)
			return -1;
	return 0;
}

static int
spill_stream(struct streams *s, struct stream *st, struct err *e)
{
	struct extent *x =
	    st->n_extents > 0 ? &st->extent[st->n_extents - 1] : NULL;

	if (x == NULL || x->at + x->size != s->file_size) {
		x = reallocarray(st->extent, st->n_extents + 1, sizeof(*x));
		if (x == NULL)
			return err_set(e, ERR_LOCAL,
			    "out of memory for output");
		st->extent = x;
		x += st->n_extents++;
		*x = (struct extent){ st->filed, s->file_size, 0 };
	}
	if (write_at(s->fd, st->tail, st->len, s->file_size) == -1)
		return err_errno(e, ERR_LOCAL,
		    "cannot keep output in a temporary file");
	x->size += st->len;
	st->filed += st->len;
	s->file_size += st->len;
	s->memory -= st->size;
	free(st->tail);
	st->tail = NULL;
	st->len = st->size = 0;
	return 0;
}

static int
open_file(struct err *e)
{
	const char *dir = getenv("TMPDIR");

	return io_unnamed(dir == NULL || *dir == '\0' ? "/tmp" : dir, e);
}

static int
write_at(int fd, const char *bytes, size_t n, uint64_t at)
{
	while (n > 0) {
		ssize_t w = pwrite(fd, bytes, n, (off_t)at);

		if (w == -1 && errno == EINTR)
			continue;
		if (w == -1)
			return -1;
		bytes += w;
		n -= (size_t)w;
		at += (uint64_t)w;
	}
	return 0;
}

/* The extent that holds an offset below ->filed. */
static const struct extent *
find(const struct stream *st, uint64_t offset)
{
	size_t lo = 0, hi = st->n_extents - 1;

	while (lo < hi) {
		size_t mid = hi - (hi - lo) / 2;

		if (st->extent[mid].begin <= offset)
			lo = mid;
		else
			hi = mid - 1;
	}
	return &st->extent[lo];
}
