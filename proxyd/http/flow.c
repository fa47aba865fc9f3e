/* flow.c: see flow.h. */
#include "proxyd/http/flow.h"

#include <string.h>

#define TURN_MAX   (2U << 20)  /* bytes before others have their turn */
#define SPLICE_MIN (64U << 10) /* below, copying is cheaper */
#define JOIN_MAX   (4U << 10)  /* of a body copied behind its head */
#define LAZY_FROM  (1U << 20)
#define LARGE_FROM (64U << 10) /* payload after which large reads pay */

static enum flow_result move(struct flow *, struct flow_tools *,
    struct sock *src, struct sock *dst, enum why *);
static enum flow_result flush(struct flow *, struct flow_tools *,
    struct sock *dst);
static bool may_splice(struct flow *, struct flow_tools *,
    const struct sock *src, const struct sock *dst);
static enum flow_result read_some(struct flow *, struct flow_tools *,
    struct sock *src, enum why *);
static enum flow_result splice_some(struct flow *, struct sock *src);
static enum flow_result source_ended(struct flow *, struct flow_tools *);
static void wrap(struct flow *);

void
flow_init(struct flow *f, struct body_framing framing, enum flow_out out)
{
	memset(f, 0, sizeof(*f));
	f->in = (uint8_t)framing.kind;
	f->out = (uint8_t)out;
	f->limit = UINT64_MAX;
	f->left = framing.length;
	f->state = framing.kind == FRAMING_NONE ||
		(framing.kind == FRAMING_LENGTH && framing.length == 0) ?
	    FLOW_ENDED :
	    FLOW_OPEN;
	chunked_init(&f->chunked);
}

void
flow_fini(struct flow *f, struct flow_tools *t)
{
	buf_give(t->bufs, &f->buf);
	buf_give(t->bufs, &f->head_buf);
	pipe_give(t->pipes, &f->pipe);
	f->head_size = f->size = f->rest_size = 0;
}

void
flow_head(struct flow *f, char *head, size_t size, size_t room)
{
	f->head = head;
	f->head_size = size;
	f->head_room = room;
	f->own_head = false;
}

/* Bytes that wait for the destination. */
static size_t
waiting(const struct flow *f)
{
	return f->head_size + f->size + (f->pipe != NULL ? f->pipe->held : 0);
}

bool
flow_pending(const struct flow *f)
{
	return waiting(f) > 0;
}

enum flow_result
flow_feed(struct flow *f, char *data, size_t size, enum why *why)
{
	struct chunk_piece piece;
	size_t taken = size;

	f->data = data;
	f->size = size;
	if (f->in == FRAMING_LENGTH) {
		if (size >= f->left) {
			taken = f->size = (size_t)f->left;
			f->state = FLOW_ENDED;
		}
		f->left -= f->size;
	} else if (f->in == FRAMING_CHUNKED) {
		enum chunk_result r =
		    chunked_decode(&f->chunked, data, size, &piece, &taken);

		f->data = data + piece.start;
		f->size = piece.len;
		if (r == CHUNK_BAD || r == CHUNK_BAD_TRAILER) {
			*why = r == CHUNK_BAD ? WHY_BAD_CHUNK : WHY_BAD_TRAILER;
			return FLOW_BAD;
		}
		if (r == CHUNK_DONE)
			f->state = FLOW_ENDED;
	} else if (f->in == FRAMING_NONE) {
		taken = f->size = 0;
	}
	f->rest = data + taken;
	f->rest_size = size - taken;
	f->bytes += f->size;
	if (f->bytes > f->limit)
		return FLOW_TOO_LARGE;
	if (f->out == FLOW_CHUNKS)
		wrap(f);
	return FLOW_WAITS_SRC;
}

enum flow_result
flow_run(struct flow *f, struct flow_tools *t, struct sock *src,
    struct sock *dst, enum why *why)
{
	uint64_t bytes = f->bytes;
	size_t before = waiting(f);
	enum flow_result r = move(f, t, src, dst, why);

	/* Woken for nothing: by the source, which cannot know. */
	if (r == FLOW_WAITS_DST && f->bytes == bytes && waiting(f) == before)
		sock_mute(src);
	if (r == FLOW_WAITS_SRC || r == FLOW_FINISHED)
		sock_unmute(src);
	if (r == FLOW_FINISHED)
		sock_eager(src);
	return r;
}

static enum flow_result
move(struct flow *f, struct flow_tools *t, struct sock *src, struct sock *dst,
    enum why *why)
{
	uint64_t start = f->bytes;

	for (;;) {
		enum flow_result r = FLOW_WAITS_SRC;

		/* A head that knows that its body is behind it goes out with
		 * it. */
		if (f->head_size > 0 && src->readable &&
		    may_splice(f, t, src, dst))
			r = splice_some(f, src);
		if (r == FLOW_WAITS_SRC)
			r = flush(f, t, dst);
		if (r != FLOW_WAITS_SRC)
			return r;
		if (f->state != FLOW_OPEN) {
			f->state = FLOW_DONE;
			if (f->rest_size == 0)
				buf_give(t->bufs, &f->buf);
			pipe_give(t->pipes, &f->pipe);
			return FLOW_FINISHED;
		}
		if (f->bytes - start > TURN_MAX)
			return FLOW_WAITS_TURN;
		if (!src->readable && !sock_look_again(src)) {
			if (f->rest_size == 0)
				buf_give(t->bufs, &f->buf);
			pipe_give(t->pipes, &f->pipe);
			return FLOW_WAITS_SRC;
		}
		r = may_splice(f, t, src, dst) ? splice_some(f, src) :
						 read_some(f, t, src, why);
		if (r == FLOW_CUT)
			r = source_ended(f, t);
		if (r != FLOW_WAITS_SRC)
			return r;
	}
}

/* Whether the flow goes through a pipe, now that it has one. */
static bool
may_splice(struct flow *f, struct flow_tools *t, const struct sock *src,
    const struct sock *dst)
{
	if (f->pipe == NULL && f->splice && f->in == FRAMING_LENGTH &&
	    f->out == FLOW_RAW && f->left >= SPLICE_MIN && sock_raw_in(src) &&
	    sock_raw_out(dst))
		f->pipe = pipe_take(t->pipes);
	return f->pipe != NULL && f->state == FLOW_OPEN;
}

/* What was not written at once stands in memory others use: keep it. */
static enum flow_result
keep_head(struct flow *f, struct flow_tools *t)
{
	enum buf_size kind = buf_size_for(f->head_size);

	if (f->own_head || f->head_size == 0)
		return FLOW_WAITS_DST;
	if (kind == BUF_SIZES ||
	    (f->head_buf = buf_take(t->bufs, kind)) == NULL)
		return FLOW_NO_MEMORY;
	memcpy(f->head_buf->data, f->head, f->head_size);
	f->head = f->head_buf->data;
	f->own_head = true;
	return FLOW_WAITS_DST;
}

/* A short body goes with its head in one piece, while that stands in memory
 * with room behind it: a write of two pieces costs the kernel more. */
static void
join_head(struct flow *f)
{
	if (f->own_head || f->head_size == 0 || f->size == 0 ||
	    f->size > JOIN_MAX || f->head_size + f->size > f->head_room)
		return;
	memcpy(f->head + f->head_size, f->data, f->size);
	f->head_size += f->size;
	f->size = 0;
}

/* FLOW_WAITS_SRC: nothing is left to write. */
static enum flow_result
flush(struct flow *f, struct flow_tools *t, struct sock *dst)
{
	join_head(f);
	while (f->head_size + f->size > 0) {
		struct iovec iov[2];
		int n = 0;
		ssize_t sent;
		size_t head;

		if (!dst->writable)
			return keep_head(f, t);
		if (f->head_size > 0)
			iov[n++] = (struct iovec){ f->head, f->head_size };
		if (f->size > 0)
			iov[n++] = (struct iovec){ f->data, f->size };
		sent = sock_send(dst, iov, n,
		    f->pipe != NULL && f->pipe->held > 0);
		if (sent < 0)
			return FLOW_DST_ERROR;
		head =
		    (size_t)sent < f->head_size ? (size_t)sent : f->head_size;
		f->head += head;
		f->head_size -= head;
		f->data += (size_t)sent - head;
		f->size -= (size_t)sent - head;
	}
	if (f->own_head) {
		buf_give(t->bufs, &f->head_buf);
		f->own_head = false;
	}
	while (f->pipe != NULL && f->pipe->held > 0) {
		if (!dst->writable)
			return FLOW_WAITS_DST;
		if (pipe_drain(f->pipe, dst) < 0)
			return FLOW_DST_ERROR;
	}
	return FLOW_WAITS_SRC;
}

/* FLOW_WAITS_SRC: something was read, or there was nothing. */
static enum flow_result
read_some(struct flow *f, struct flow_tools *t, struct sock *src, enum why *why)
{
	size_t most = f->bytes >= LARGE_FROM ? LARGE_FROM * 2 : 1;
	ssize_t n;

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
	n = sock_recv(src, f->buf->data, most);
	if (n > 0)
		return flow_feed(f, f->buf->data, (size_t)n, why);
	return n == SOCK_AGAIN ? FLOW_WAITS_SRC :
	    n == SOCK_EOF      ? FLOW_CUT :
				 FLOW_SRC_ERROR;
}

static enum flow_result
splice_some(struct flow *f, struct sock *src)
{
	size_t most = f->left < f->pipe->size ? (size_t)f->left : f->pipe->size;
	ssize_t n;

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
	f->bytes += (uint64_t)n;
	if ((f->left -= (uint64_t)n) == 0)
		f->state = FLOW_ENDED;
	return FLOW_WAITS_SRC;
}

/* An end is right where the framing is the end. */
static enum flow_result
source_ended(struct flow *f, struct flow_tools *t)
{
	if (f->in != FRAMING_CLOSE)
		return FLOW_CUT;
	f->state = FLOW_ENDED;
	if (f->out != FLOW_CHUNKS)
		return FLOW_WAITS_SRC;
	if (f->buf == NULL && (f->buf = buf_take(t->bufs, BUF_SMALL)) == NULL)
		return FLOW_NO_MEMORY;
	f->data = f->buf->data;
	f->size = 0;
	wrap(f);
	return FLOW_WAITS_SRC;
}

/* Puts our chunk around what is to be written, and the last one behind it. */
static void
wrap(struct flow *f)
{
	static const char tail[] = CHUNK_TAIL CHUNK_END;
	size_t head, end;

	if (f->size == 0) {
		if (f->state != FLOW_ENDED)
			return;
		/* Before it: behind it the next message may stand. */
		f->data -= sizeof(CHUNK_END) - 1;
		f->size = sizeof(CHUNK_END) - 1;
		memcpy(f->data, CHUNK_END, f->size);
		return;
	}
	/* When the body has ended, its own framing made room behind it. */
	end =
	    f->state == FLOW_ENDED ? sizeof(tail) - 1 : sizeof(CHUNK_TAIL) - 1;
	memcpy(f->data + f->size, tail, end);
	head = chunked_head(f->data, f->size);
	f->data -= head;
	f->size += head + end;
}
