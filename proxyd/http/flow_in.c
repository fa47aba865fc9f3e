/*
 * flow_in.c: the side of a flow where bytes come in: out of the source's
 * framing, through the filter if there is one, into the destination's
 * framing.  See flow.h.
 */
#include <string.h>

#include "proxyd/http/flow_parts.h"

#define SPLICE_MIN (64U << 10) /* below, copying is cheaper */
#define LAZY_FROM  (1U << 20)
#define LARGE_FROM (64U << 10) /* payload after which large reads pay */

static void wrap(struct flow *);

void
flow_filter(struct flow *f, struct flow_filter *filter)
{
	f->filter = filter;
	f->splice = false;
}

/* What was found is to be written, or to be filtered first. */
static void
take_payload(struct flow *f, char *data, size_t size)
{
	f->bytes += size;
	if (f->filter == NULL) {
		f->data = data;
		f->size = size;
		return;
	}
	if (size == 0)
		return;
	f->raw_buf = f->buf;
	f->buf = NULL;
	f->raw = data;
	f->raw_size = size;
}

enum flow_result
flow_feed(struct flow *f, char *data, size_t size, enum why *why)
{
	struct chunk_piece piece = { 0, size };
	size_t taken = size;

	if (f->in == FRAMING_LENGTH) {
		if (size >= f->left) {
			taken = piece.len = (size_t)f->left;
			f->state = FLOW_ENDED;
		}
		f->left -= piece.len;
	} else if (f->in == FRAMING_CHUNKED) {
		enum chunk_result r =
		    chunked_decode(&f->chunked, data, size, &piece, &taken);

		if (r == CHUNK_BAD || r == CHUNK_BAD_TRAILER) {
			*why = r == CHUNK_BAD ? WHY_BAD_CHUNK : WHY_BAD_TRAILER;
			return FLOW_BAD;
		}
		if (r == CHUNK_DONE)
			f->state = FLOW_ENDED;
	} else if (f->in == FRAMING_NONE) {
		taken = piece.len = 0;
	}
	take_payload(f, data + piece.start, piece.len);
	f->rest = data + taken;
	f->rest_size = size - taken;
	if (f->bytes > f->limit)
		return FLOW_TOO_LARGE;
	if (f->out == FLOW_CHUNKS && f->filter == NULL)
		wrap(f);
	return FLOW_WAITS_SRC;
}

/* --- reading */

void
flow_count_read(struct flow *f, size_t n)
{
	if (f->may_read != UINT64_MAX)
		f->may_read -= n;
}

enum flow_result
flow_read(struct flow *f, struct flow_tools *t, struct sock *src, enum why *why)
{
	size_t most = f->bytes >= LARGE_FROM ? LARGE_FROM * 2 : 1;
	ssize_t n;

	if (f->may_read == 0)
		return FLOW_WAITS_LEAVE;
	if (f->in == FRAMING_LENGTH)
		most =
		    f->left < LARGE_FROM * 2 ? (size_t)f->left : LARGE_FROM * 2;
	if (f->buf != NULL && f->buf->room < most)
		buf_give(t->bufs, &f->buf);
	if (f->buf == NULL &&
	    (f->buf = buf_take(t->bufs,
		 most > 16 << 10 ? BUF_LARGE : BUF_MEDIUM)) == NULL)
		return FLOW_NO_MEMORY;
	/* Never beyond a known end: that is the next message. */
	if (f->in != FRAMING_LENGTH || most > f->buf->room)
		most = f->buf->room;
	if (most > f->may_read)
		most = (size_t)f->may_read;
	n = sock_recv(src, f->buf->data, most);
	if (n > 0) {
		flow_count_read(f, (size_t)n);
		return flow_feed(f, f->buf->data, (size_t)n, why);
	}
	return n == SOCK_AGAIN ? FLOW_WAITS_SRC :
	    n == SOCK_EOF      ? FLOW_CUT :
				 FLOW_SRC_ERROR;
}

bool
flow_may_splice(struct flow *f, struct flow_tools *t, const struct sock *src,
    const struct sock *dst)
{
	if (f->pipe == NULL && f->splice && f->in == FRAMING_LENGTH &&
	    f->out == FLOW_RAW && f->left >= SPLICE_MIN && sock_raw_in(src) &&
	    sock_raw_out(dst))
		f->pipe = pipe_take(t->pipes);
	return f->pipe != NULL && f->state == FLOW_OPEN;
}

enum flow_result
flow_splice(struct flow *f, struct sock *src)
{
	size_t most = f->left < f->pipe->size ? (size_t)f->left : f->pipe->size;
	ssize_t n;

	if (f->may_read == 0)
		return FLOW_WAITS_LEAVE;
	if (most > f->may_read)
		most = (size_t)f->may_read;
	if (f->left >= LAZY_FROM && f->bytes >= f->lazy_at) {
		sock_lazy(src);
		f->lazy_at = f->bytes + LAZY_FROM;
	} else if (f->left < LAZY_FROM) {
		sock_eager(src);
	}
	n = pipe_fill(f->pipe, src, most);
	if (n < 0)
		return n == SOCK_AGAIN ? FLOW_WAITS_SRC : FLOW_SRC_ERROR;
	if (n == SOCK_EOF)
		return FLOW_CUT;
	flow_count_read(f, (size_t)n);
	f->bytes += (uint64_t)n;
	if ((f->left -= (uint64_t)n) == 0)
		f->state = FLOW_ENDED;
	return FLOW_WAITS_SRC;
}

/* An end is right where the framing is the end. */
enum flow_result
flow_source_ended(struct flow *f, struct flow_tools *t)
{
	if (f->in != FRAMING_CLOSE)
		return FLOW_CUT;
	f->state = FLOW_ENDED;
	if (f->out != FLOW_CHUNKS || f->filter != NULL)
		return FLOW_WAITS_SRC;
	if (f->buf == NULL && (f->buf = buf_take(t->bufs, BUF_SMALL)) == NULL)
		return FLOW_NO_MEMORY;
	f->data = f->buf->data;
	f->size = 0;
	wrap(f);
	return FLOW_WAITS_SRC;
}

/* --- the filter */

bool
flow_must_turn(const struct flow *f)
{
	return f->filter != NULL && !f->filter_done &&
	    (f->raw_size > 0 || f->filter_full || f->state != FLOW_OPEN);
}

enum flow_result
flow_turn(struct flow *f, struct flow_tools *t, enum filter_push push)
{
	ssize_t n;

	if (f->buf == NULL &&
	    (f->buf = buf_take(t->bufs,
		 f->raw_size > 16 << 10 ? BUF_LARGE : BUF_MEDIUM)) == NULL)
		return FLOW_NO_MEMORY;
	n = f->filter->turn(f->filter, &f->raw, &f->raw_size, f->buf->data,
	    f->buf->room, push);
	if (n < 0)
		return FLOW_FILTER_ERROR;
	f->data = f->buf->data;
	f->size = (size_t)n;
	f->turned += (uint64_t)n;
	f->filter_full = f->size == f->buf->room;
	f->filter_keeps = push == FILTER_MORE;
	if (f->raw_size == 0 && !f->filter_full) {
		f->filter_done = push == FILTER_END;
		buf_give(t->bufs, &f->raw_buf);
	}
	if (f->out == FLOW_CHUNKS)
		wrap(f);
	return FLOW_WAITS_SRC;
}

/* --- our chunks */

/* Whether nothing will come behind what is to be written now. */
static bool
last(const struct flow *f)
{
	return f->state == FLOW_ENDED && (f->filter == NULL || f->filter_done);
}

/* Puts our chunk around what is to be written, and the last one behind it. */
static void
wrap(struct flow *f)
{
	static const char tail[] = CHUNK_TAIL CHUNK_END;
	size_t head, end;

	if (f->size == 0) {
		if (!last(f))
			return;
		/* Before it: behind it the next message may stand. */
		f->data -= sizeof(CHUNK_END) - 1;
		f->size = sizeof(CHUNK_END) - 1;
		memcpy(f->data, CHUNK_END, f->size);
		return;
	}
	/* When the body has ended, its own framing made room behind it. */
	end = last(f) ? sizeof(tail) - 1 : sizeof(CHUNK_TAIL) - 1;
	memcpy(f->data + f->size, tail, end);
	head = chunked_head(f->data, f->size);
	f->data -= head;
	f->size += head + end;
}
