/*
 * feed.h: the standard input of a job: takes what comes, writes as the
 * process reads, and knows how much of it was read.
 */
#ifndef NODEAGENT_FEED_H
#define NODEAGENT_FEED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <event2/event.h>

#include "common/base/err.h"

struct evbuffer;

enum feed_state { FEED_OPEN, FEED_ENDING, FEED_CLOSED };

struct feed {
	enum feed_state state;
	bool terminal;
	int fd;	  /* our end, non-blocking */
	int rest; /* the other end of it, once ours is closed */
	struct event *writable;
	struct evbuffer *kept; /* what could not be written yet */
	uint64_t written;
	void (*taken)(void *arg); /* some of what was kept is written */
	void *arg;
};

/* Before anything else: fit for feed_fini(). */
void feed_init(struct feed *);

/* Takes fd, also on failure. */
int feed_open(struct feed *, struct event_base *, int fd, bool terminal,
    void (*taken)(void *arg), void *arg, struct err *);
void feed_fini(struct feed *);

/* What cannot be written at once is kept, in memory; what the process does
 * not want any more is dropped, as a pipe does it. */
void feed_write(struct feed *, const void *bytes, size_t size);
size_t feed_kept(const struct feed *);

/* The end of file follows what is kept. */
void feed_end(struct feed *);
/* At once. */
void feed_close(struct feed *);

/* Bytes that were read; exact once the process has ended. */
uint64_t feed_used(const struct feed *);

#endif
