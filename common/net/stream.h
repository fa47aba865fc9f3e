/*
 * stream.h: framed messages over one non-blocking socket on an event loop.
 * It knows nothing of what they mean; channel.c does.
 *
 * An idle stream holds no buffer: one read buffer serves all of a process
 * (which therefore runs one loop in one thread), and only what is not yet a
 * whole message, or held back, or not yet sent, is kept in queues.
 */
#ifndef MUSTER_STREAM_H
#define MUSTER_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <event2/event.h>
#include <event2/event_struct.h>

#include "common/base/addr.h"
#include "common/base/err.h"
#include "common/net/frame.h"

enum stream_mode {
	STREAM_CONNECTING, /* until `connected` */
	STREAM_READING,	   /* hands messages over */
	STREAM_HELD,	   /* reads nothing */
	STREAM_GUARDED,	   /* reads nothing, but notices the peer's end */
	STREAM_DRAINING,   /* throws away what comes, until the peer's end */
	STREAM_CLOSED,
	STREAM_N_MODES
};

/* Calls from the loop, never from within a stream_ function.  In each,
 * stream_set_mode() and stream_close() are legal and act at once; but not
 * stream_fini(). */
struct stream_handlers {
	void (*connected)(void *arg);
	/* Borrowed for the call, and may be changed in place. */
	void (*message)(uint8_t *message, size_t size, void *arg);
	/* Nothing more will come: NULL for an end of file. */
	void (*ended)(const struct err *why, void *arg);
	/* Something was written, or could not be. */
	void (*flushed)(void *arg);
};

struct stream {
	enum stream_mode mode;
	int fd;
	bool blocked;	  /* the socket takes no more at present */
	short watched;	  /* what `io` is added for */
	size_t max;	  /* the longest message that is taken */
	struct queue in;  /* received, not handed over */
	struct queue out; /* not yet sent */
	uint64_t bytes_in, bytes_out;
	struct event_base *base;
	struct event io;   /* the socket */
	struct event turn; /* flush and resume, at the end of this turn */
	const struct stream_handlers *handlers;
	void *arg;
	int connect_error, send_error; /* errno, told when it is time */
};

/* Takes a connected, non-blocking socket. */
void stream_init(struct stream *, struct event_base *, int fd,
    const struct stream_handlers *, void *arg);

/* Makes a socket and starts to connect it; only the former can fail here. */
int stream_connect(struct stream *, struct event_base *, const struct addr *,
    const struct stream_handlers *, void *arg, struct err *);

/* Closes the socket; no call comes after it. */
void stream_close(struct stream *);

/* And frees what is queued. */
void stream_fini(struct stream *);

void stream_set_mode(struct stream *, enum stream_mode);

/*
 * Room for a message of `size` bytes behind its frame's head; NULL when out
 * of memory.  It leaves at the end of this turn of the loop, in one write
 * with its neighbours, once stream_commit() is called with the same size.
 */
uint8_t *stream_reserve(struct stream *, size_t size);
void stream_commit(struct stream *, size_t size);

size_t stream_queued(const struct stream *);

/* Whether the peer left bytes that were not handed over. */
bool stream_has_rest(const struct stream *);

/* Whether the peer's machine has not acknowledged anything for about half a
 * minute, although there was something to. */
bool stream_is_lost(const struct stream *);

/* Says goodbye; use when all is sent. */
void stream_shutdown(struct stream *);

#endif
