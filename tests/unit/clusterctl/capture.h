/*
 * capture.h: a sink whose output a test reads back.
 */
#ifndef TEST_CAPTURE_H
#define TEST_CAPTURE_H

#include <sys/mman.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clusterctl/sink.h"

static inline void
capture_init(struct sink *s)
{
	int fd = memfd_create("captured", MFD_CLOEXEC);

	assert_int_not_equal(fd, -1);
	sink_init(s, fd);
	assert_false(s->terminal);
}

/* All that was written, with a NUL behind it; the caller's. */
static inline char *
capture_text(struct sink *s, size_t *size)
{
	struct err e;
	off_t n;
	char *text;

	assert_int_equal(sink_flush(s, &e), 0);
	n = lseek(s->fd, 0, SEEK_END);
	text = malloc((size_t)n + 1);
	assert_int_equal(pread(s->fd, text, (size_t)n, 0), n);
	text[n] = '\0';
	if (size != NULL)
		*size = (size_t)n;
	return text;
}

static inline void
capture_fini(struct sink *s)
{
	close(s->fd);
	sink_fini(s);
}

/* Compares, and ends the capture. */
static inline void
capture_expect(struct sink *s, const char *want)
{
	char *text = capture_text(s, NULL);

	assert_string_equal(text, want);
	free(text);
	capture_fini(s);
}

#endif
