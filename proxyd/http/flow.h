/*
 * flow.h: one direction of an exchange: bytes from one socket to another,
 * taken out of one framing and put into another.
 *
 * A flow holds at most one buffer: it is read, turned where it lies, written;
 * nothing more is read before all of it went out.  So a slow reader slows the
 * writer, and memory is bounded.  Big bodies of known length go by splice
 * (pipe.h) and are never seen.
 *
 * With a store (spool.h) a slow reader slows nobody: what it does not take is
 * put away there, up to a bound, as fast as the writer gives it.  Whoever
 * takes all, or most, at once never comes near it.
 */
#ifndef MUSTER_FLOW_H
#define MUSTER_FLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proxyd/http/buf.h"
#include "proxyd/http/chunked.h"
#include "proxyd/http/framing.h"
#include "proxyd/http/pipe.h"
#include "proxyd/http/sock.h"
#include "proxyd/http/spool.h"
#include "proxyd/process/why.h"

/* How it goes out: as it is, or in our chunks. */
enum flow_out { FLOW_RAW, FLOW_CHUNKS };

enum flow_state {
	FLOW_OPEN,  /* more is to come from the source */
	FLOW_ENDED, /* all was read; the rest is on its way */
	FLOW_DONE,  /* all was written */
};

/* What is asked of a filter. */
enum filter_push {
	FILTER_MORE,  /* more comes at once: it may keep what it has */
	FILTER_FLUSH, /* nothing more for now: out with what it has */
	FILTER_END,   /* that was all */
};

/*
 * Turns payload into other payload, between the two framings: compression.
 * turn() takes bytes from *in (moves *in and *size on) and writes at most
 * `room` bytes; it returns how many, or -1: FLOW_FILTER_ERROR.  While it fills
 * all the room, or leaves some of the input, it is called again.
 */
struct flow_filter {
	ssize_t (*turn)(struct flow_filter *, const char **in, size_t *size,
	    char *out, size_t room, enum filter_push);
};

struct flow {
	uint8_t state;
	uint8_t in;    /* enum framing */
	uint8_t out;   /* enum flow_out */
	bool splice;   /* may go through a pipe */
	bool own_head; /* head stands in head_buf */
	char *head;    /* goes first: a message's head */
	size_t head_size, head_room;
	struct buf *head_buf;
	struct buf *buf;
	char *data; /* to be written; mostly in buf */
	size_t size;
	char *rest; /* behind the end of the body */
	size_t rest_size;
	uint64_t left;	  /* of FRAMING_LENGTH */
	uint64_t limit;	  /* of payload; UINT64_MAX: none */
	uint64_t bytes;	  /* payload read so far */
	uint64_t turned;  /* payload that the filter made of it */
	uint64_t written; /* of all that goes out, heads too */
	uint64_t lazy_at; /* when it can be lazier: of bytes */
	/* How many bytes may be read and written by now; UINT64_MAX: no bound.
	 * Whoever sets one raises it with time, and runs the flow again. */
	uint64_t may_read, may_write;
	struct chunked chunked;
	struct pipe *pipe;
	struct flow_filter *filter; /* borrowed; NULL: none */
	struct buf *raw_buf;
	const char *raw; /* payload to be filtered; mostly in raw_buf */
	size_t raw_size;
	bool filter_full;  /* it filled all its room */
	bool filter_keeps; /* it may keep what it was given */
	bool filter_done;  /* it is not called any more */
	/* Between head and data stands what was put away. */
	struct store store;
	uint64_t store_max; /* bytes that may be; 0: nothing is */
	bool slow;	    /* the destination is */
	bool refused;	    /* the spool was full */
	int64_t full_ms;    /* when it was full first; 0: it is not */
	uint64_t full_at;   /* of written */
	/* Of one that was collected: data as it was, to be sent again. */
	bool keep;
	char *held;
	size_t held_size;
};

/* What a flow needs of its worker. */
struct flow_tools {
	struct buf_pool *bufs;
	struct pipe_pool *pipes;
	struct spool *spool; /* NULL: none */
	int64_t now_ms;
	uint32_t slow_rate; /* bytes a ms: below, a destination is slow */
};

/* A body that goes through the file costs copies, so a reader of some speed
 * is worth waiting for, while nobody else waits for the node. */
#define FLOW_SLOW	  2000
#define FLOW_SLOW_PRESSED 32000

enum flow_result {
	FLOW_WAITS_SRC,
	FLOW_WAITS_DST,
	FLOW_WAITS_TURN,  /* it moved much; others first */
	FLOW_WAITS_LEAVE, /* until it may read, or write, more */
	FLOW_FINISHED,
	FLOW_CUT,	/* the source ended before the body did */
	FLOW_SRC_ERROR, /* reset */
	FLOW_DST_ERROR,
	FLOW_BAD, /* no such framing: *why */
	FLOW_FILTER_ERROR,
	FLOW_TOO_LARGE,
	FLOW_NO_MEMORY,
	FLOW_LOST, /* what was put away cannot be read */
};

void flow_init(struct flow *, struct body_framing, enum flow_out);

/* Gives back all it holds (a bytes-filled pipe is closed), not the filter. */
void flow_fini(struct flow *, struct flow_tools *);

/* Payload goes through the filter.  Before flow_feed(); what comes out has no
 * known length. */
void flow_filter(struct flow *, struct flow_filter *);

/* Puts a head before what the flow will write.  It stands in `room` bytes
 * that must stay until the next flow_run() returns; what is left then is kept
 * by the flow. */
void flow_head(struct flow *, char *head, size_t size, size_t room);

/*
 * The body's first bytes, which came with the head; they must stay until the
 * flow is done, and have BUF_MARGIN around them for FLOW_CHUNKS.  What does
 * not belong to the body is in rest.  FLOW_WAITS_SRC, or why not.
 */
enum flow_result flow_feed(struct flow *, char *data, size_t size, enum why *);

#define FLOW_MEMORY (64U << 10) /* that a collected body takes at most */

/*
 * Before there is a destination: reads and holds what the source says, part
 * in memory, then up to store_max in the store.  FLOW_FINISHED: all is here;
 * FLOW_WAITS_DST: no more can be held, so the rest must go through flow_run() as it comes.
 * Of FLOW_RAW and without a filter.
 */
enum flow_result flow_collect(struct flow *, struct flow_tools *,
    struct sock *src, enum why *);

/* What is held now is what will be sent, whether collected or fed. */
void flow_hold(struct flow *);

/* Begins again with it; nothing of what came behind it was read so far. */
void flow_rewind(struct flow *, struct flow_tools *);

/* It is not sent again: what was written is let go. */
void flow_send_once(struct flow *, struct flow_tools *);

/* What was collected of a body whose end is not known becomes the first of
 * our chunks; *size is its payload, and its size line the caller's to write,
 * unless there is none.  -1: no memory. */
int flow_open_chunk(struct flow *, struct flow_tools *, uint64_t *size);

/* Moves what can be moved.  When the state is FLOW_ENDED afterwards, the
 * source is done with, and may be NULL from then on. */
enum flow_result flow_run(struct flow *, struct flow_tools *, struct sock *src,
    struct sock *dst, enum why *);

/* Whether bytes wait for the destination. */
bool flow_pending(const struct flow *);

/* Payload that the destination has taken, as it came out of the filter; of a
 * body in our chunks a few bytes less, until all of it is through. */
uint64_t flow_delivered(const struct flow *);

#endif
