/* flow.c: see flow.h. */
#include "proxyd/http/flow.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "proxyd/http/flow_parts.h"

#define PATIENCE_MS 20	       /* a full destination is watched so long */
#define JOIN_MAX    (4U << 10) /* of a body copied behind its head */
/* Bytes before others have their turn; a filter takes its time. */
#define TURN_MAX	(2U << 20)
#define TURN_FILTER_MAX (64U << 10)

static enum flow_result move(struct flow *, struct flow_tools *,
    struct sock *src, struct sock *dst, enum why *);
static void not_full(struct flow *);
static void drop_head_buf(struct flow *, struct flow_tools *);
static enum flow_result put_away(struct flow *, struct flow_tools *,
    enum flow_result);
static void let_go(struct flow *, struct flow_tools *);
static enum flow_result before_write(struct flow *, struct flow_tools *,
    struct sock *src, const struct sock *dst);
static enum flow_result flush(struct flow *, struct flow_tools *,
    struct sock *dst);

void
flow_init(struct flow *f, struct body_framing framing, enum flow_out out)
{
	memset(f, 0, sizeof(*f));
	f->in = (uint8_t)framing.kind;
	f->out = (uint8_t)out;
	f->limit = f->may_read = f->may_write = UINT64_MAX;
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
	buf_give(t->bufs, &f->raw_buf);
	pipe_give(t->pipes, &f->pipe);
	if (f->store.head != 0)
		store_free(t->spool, &f->store);
	f->head_size = f->size = f->rest_size = f->raw_size = 0;
}

void
flow_head(struct flow *f, char *head, size_t size, size_t room)
{
	f->head = head;
	f->head_size = size;
	f->head_room = room;
	f->own_head = false;
}

static size_t
in_pipe(const struct flow *f)
{
	return f->pipe != NULL ? f->pipe->held : 0;
}

/* Bytes that wait for the destination. */
static uint64_t
waiting(const struct flow *f)
{
	return f->head_size + f->store.size + f->size + in_pipe(f);
}

bool
flow_pending(const struct flow *f)
{
	return waiting(f) + f->raw_size > 0;
}

uint64_t
flow_delivered(const struct flow *f)
{
	uint64_t all = f->filter != NULL ? f->turned : f->bytes;
	uint64_t left = waiting(f) - f->head_size;

	return left < all ? all - left : 0;
}

enum flow_result
flow_run(struct flow *f, struct flow_tools *t, struct sock *src,
    struct sock *dst, enum why *why)
{
	uint64_t bytes = f->bytes, before = waiting(f);
	enum flow_result r = move(f, t, src, dst, why);

	if (src == NULL)
		return r;
	if (r == FLOW_WAITS_SRC || f->state != FLOW_OPEN) {
		sock_unmute(src);
	} else if ((r == FLOW_WAITS_DST || r == FLOW_WAITS_LEAVE) &&
	    f->bytes == bytes && waiting(f) == before) {
		/* Woken for nothing: by the source, which cannot know. */
		sock_mute(src);
	}
	if (f->state != FLOW_OPEN)
		sock_eager(src);
	return r;
}

static enum flow_result
move(struct flow *f, struct flow_tools *t, struct sock *src, struct sock *dst,
    enum why *why)
{
	uint64_t end =
	    f->bytes + (f->filter != NULL ? TURN_FILTER_MAX : TURN_MAX);

	for (;;) {
		enum flow_result r = before_write(f, t, src, dst);

		if (r == FLOW_WAITS_SRC)
			r = flush(f, t, dst);
		if (r == FLOW_WAITS_SRC)
			not_full(f);
		else if ((r == FLOW_WAITS_DST || r == FLOW_WAITS_LEAVE) &&
		    f->store_max > 0)
			r = put_away(f, t, r);
		if (r != FLOW_WAITS_SRC)
			return r;
		if (flow_must_turn(f))
			continue;
		if (f->state != FLOW_OPEN) {
			f->state = FLOW_DONE;
			let_go(f, t);
			return FLOW_FINISHED;
		}
		if (f->bytes > end)
			return FLOW_WAITS_TURN;
		if (!src->readable && !sock_look_again(src)) {
			if (f->filter_keeps) {
				r = flow_turn(f, t, FILTER_FLUSH);
				if (r != FLOW_WAITS_SRC)
					return r;
				continue;
			}
			let_go(f, t);
			return FLOW_WAITS_SRC;
		}
		r = flow_may_splice(f, t, src, dst) ? flow_splice(f, src) :
						      flow_read(f, t, src, why);
		if (r == FLOW_CUT)
			r = flow_source_ended(f, t);
		if (r != FLOW_WAITS_SRC)
			return r;
	}
}

static void
drop_head_buf(struct flow *f, struct flow_tools *t)
{
	if (f->own_head)
		buf_give(t->bufs, &f->head_buf);
	f->own_head = false;
}

static void
not_full(struct flow *f)
{
	f->full_ms = 0;
	f->slow = false;
}

/* Whether the destination, which is full, is a slow one.  One that is only
 * behind for a moment, or takes megabytes a second, is worth waiting for. */
static bool
is_slow(struct flow *f, const struct flow_tools *t)
{
	int64_t age = t->now_ms - f->full_ms;

	if (f->full_ms != 0 && age < PATIENCE_MS)
		return false;
	f->slow = f->full_ms != 0 &&
	    f->written - f->full_at < (uint64_t)age * t->slow_rate;
	f->full_ms = t->now_ms;
	f->full_at = f->written;
	return f->slow;
}

/* What is in memory, head first, goes behind what is in the store.  Into an
 * empty one all of it goes, or nothing: TLS must be offered again at least
 * what it had no room for. */
static void
put_memory(struct flow *f, struct flow_tools *t)
{
	bool empty = f->store.size == 0;
	size_t n;

	assert(empty || f->head_size == 0);
	if (store_put(t->spool, &f->store, f->head, f->head_size) <
	    f->head_size) {
		store_free(t->spool, &f->store);
		return;
	}
	n = store_put(t->spool, &f->store, f->data, f->size);
	if (empty && n < f->size) {
		store_free(t->spool, &f->store);
		return;
	}
	f->head_size = 0;
	drop_head_buf(f, t);
	f->data += n;
	f->size -= n;
}

/* A slow destination: FLOW_WAITS_SRC when all that it did not take is put
 * away, and there is more to come; else r. */
static enum flow_result
put_away(struct flow *f, struct flow_tools *t, enum flow_result r)
{
	if (t->spool == NULL || (!f->slow && !is_slow(f, t)))
		return r;
	if (f->head_size + f->size > 0)
		put_memory(f, t);
	if (f->head_size + f->size == 0 && in_pipe(f) > 0)
		store_put_pipe(t->spool, &f->store, f->pipe);
	if (f->head_size + f->size + in_pipe(f) == 0) {
		if (f->state != FLOW_OPEN && !flow_must_turn(f)) {
			let_go(f, t);
			return r;
		}
		if (f->store.size >= f->store_max)
			return r;
		if (spool_room(t->spool) > 0)
			return FLOW_WAITS_SRC;
	}
	if (!f->refused)
		spool_refused(t->spool);
	f->refused = true;
	return r;
}

/* What is idle holds neither buffer nor pipe. */
static void
let_go(struct flow *f, struct flow_tools *t)
{
	if (f->rest_size == 0 && !f->keep)
		buf_give(t->bufs, &f->buf);
	pipe_give(t->pipes, &f->pipe);
}

/* A head goes out together with what is already there behind it. */
static enum flow_result
before_write(struct flow *f, struct flow_tools *t, struct sock *src,
    const struct sock *dst)
{
	if (f->size == 0 && flow_must_turn(f))
		return flow_turn(f, t,
		    f->state != FLOW_OPEN ? FILTER_END :
			src->readable	  ? FILTER_MORE :
					    FILTER_FLUSH);
	if (f->head_size > 0 && f->state == FLOW_OPEN && src->readable &&
	    flow_may_splice(f, t, src, dst))
		return flow_splice(f, src);
	return FLOW_WAITS_SRC;
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
	    f->store.size > 0 || f->size > JOIN_MAX ||
	    f->head_size + f->size > f->head_room)
		return;
	memcpy(f->head + f->head_size, f->data, f->size);
	f->head_size += f->size;
	f->size = 0;
}

/* So many of n bytes may be written now. */
static size_t
leave(const struct flow *f, size_t n)
{
	return n < f->may_write ? n : (size_t)f->may_write;
}

static void
count_written(struct flow *f, size_t n)
{
	f->written += n;
	if (f->may_write != UINT64_MAX)
		f->may_write -= n;
}

/* What of the data can be written now: not before what was put away. */
static size_t
due(const struct flow *f)
{
	return f->store.size > 0 ? 0 : f->size;
}

/* FLOW_WAITS_SRC: head and data are written, as far as they are due. */
static enum flow_result
flush_memory(struct flow *f, struct flow_tools *t, struct sock *dst)
{
	while (f->head_size + due(f) > 0) {
		struct iovec iov[2];
		size_t head = leave(f, f->head_size);
		size_t body = leave(f, f->head_size + due(f)) - head;
		int n = 0;
		ssize_t sent;

		if (f->may_write == 0 || !dst->writable) {
			enum flow_result r = keep_head(f, t);

			return r == FLOW_WAITS_DST && f->may_write == 0 ?
			    FLOW_WAITS_LEAVE :
			    r;
		}
		if (head > 0)
			iov[n++] = (struct iovec){ f->head, head };
		if (body > 0)
			iov[n++] = (struct iovec){ f->data, body };
		sent = sock_send(dst, iov, n, in_pipe(f) > 0);
		if (sent < 0)
			return FLOW_DST_ERROR;
		count_written(f, (size_t)sent);
		if ((size_t)sent < head)
			head = (size_t)sent;
		f->head += head;
		f->head_size -= head;
		f->data += (size_t)sent - head;
		f->size -= (size_t)sent - head;
	}
	drop_head_buf(f, t);
	return FLOW_WAITS_SRC;
}

static enum flow_result
store_to(struct flow *f, struct flow_tools *t, struct sock *dst, struct buf *b)
{
	uint64_t start = f->written;

	while (f->store.size > 0) {
		ssize_t n, sent;

		if (f->may_write == 0)
			return FLOW_WAITS_LEAVE;
		if (!dst->writable)
			return FLOW_WAITS_DST;
		if (f->written - start > TURN_MAX)
			return FLOW_WAITS_TURN;
		n = store_peek(t->spool, &f->store, b->data, leave(f, b->room));
		/* Whoever looks after us from time to time comes again. */
		if (n < 0)
			return errno == EAGAIN ? FLOW_WAITS_DST : FLOW_LOST;
		sent = sock_send(dst, &(struct iovec){ b->data, (size_t)n }, 1,
		    false);
		if (sent < 0)
			return FLOW_DST_ERROR;
		count_written(f, (size_t)sent);
		store_eat(t->spool, &f->store, (size_t)sent);
	}
	return FLOW_WAITS_SRC;
}

static enum flow_result
flush_store(struct flow *f, struct flow_tools *t, struct sock *dst)
{
	enum flow_result r;
	struct buf *b;

	if (!dst->writable || f->may_write == 0)
		return f->may_write == 0 ? FLOW_WAITS_LEAVE : FLOW_WAITS_DST;
	if ((b = buf_take(t->bufs, BUF_LARGE)) == NULL)
		return FLOW_NO_MEMORY;
	r = store_to(f, t, dst, b);
	buf_give(t->bufs, &b);
	return r;
}

static enum flow_result
flush_pipe(struct flow *f, struct sock *dst)
{
	while (in_pipe(f) > 0) {
		ssize_t n;

		if (f->may_write == 0)
			return FLOW_WAITS_LEAVE;
		if (!dst->writable)
			return FLOW_WAITS_DST;
		n = pipe_drain(f->pipe, dst, leave(f, f->pipe->held));
		if (n < 0)
			return FLOW_DST_ERROR;
		count_written(f, (size_t)n);
	}
	return FLOW_WAITS_SRC;
}

/* FLOW_WAITS_SRC: nothing is left to write. */
static enum flow_result
flush(struct flow *f, struct flow_tools *t, struct sock *dst)
{
	enum flow_result r;

	join_head(f);
	r = flush_memory(f, t, dst);
	if (r == FLOW_WAITS_SRC && f->store.size > 0 &&
	    (r = flush_store(f, t, dst)) == FLOW_WAITS_SRC)
		r = flush_memory(f, t, dst);
	return r == FLOW_WAITS_SRC ? flush_pipe(f, dst) : r;
}
