/*
 * flow_collect.c: a flow whose destination is not chosen yet: what the source
 * says is held, the first 64 KiB in memory, the rest in the store before
 * them.  See flow.h.
 */
#include <string.h>

#include "proxyd/http/flow_parts.h"

#define TURN_MAX   (1U << 20) /* bytes before others have their turn */
#define SPLICE_MIN (64U << 10)

static enum flow_result grow(struct flow *, struct flow_tools *);
static enum flow_result make_room(struct flow *, struct flow_tools *);
static enum flow_result take(struct flow *, struct sock *src, enum why *);
static bool may_splice(struct flow *, struct flow_tools *,
    const struct sock *src);
static enum flow_result take_pipe(struct flow *, struct flow_tools *,
    struct sock *src);

enum flow_result
flow_collect(struct flow *f, struct flow_tools *t, struct sock *src,
    enum why *why)
{
	uint64_t start = f->bytes;

	f->store.keep = f->keep = true;
	if (f->size > 0 && f->buf == NULL && grow(f, t) != FLOW_WAITS_SRC)
		return FLOW_NO_MEMORY;
	while (f->state == FLOW_OPEN) {
		enum flow_result r;

		if (f->bytes - start > TURN_MAX)
			return FLOW_WAITS_TURN;
		if (!src->readable && !sock_look_again(src))
			return FLOW_WAITS_SRC;
		if ((r = make_room(f, t)) != FLOW_WAITS_SRC)
			return r;
		r = may_splice(f, t, src) ? take_pipe(f, t, src) :
					    take(f, src, why);
		if (r != FLOW_WAITS_SRC)
			return r;
	}
	sock_eager(src);
	return FLOW_FINISHED;
}

/* A larger buffer, or that of somebody else left for one of ours. */
static enum flow_result
grow(struct flow *f, struct flow_tools *t)
{
	enum buf_size kind = f->buf == NULL ? buf_size_for(f->size + 1) :
					      (enum buf_size)(f->buf->kind + 1);
	struct buf *b = kind >= BUF_SIZES ? NULL : buf_take(t->bufs, kind);

	if (b == NULL)
		return FLOW_NO_MEMORY;
	if (f->size > 0)
		memcpy(b->data, f->data, f->size);
	buf_give(t->bufs, &f->buf);
	f->buf = b;
	f->data = b->data;
	return FLOW_WAITS_SRC;
}

static size_t
room_behind(const struct flow *f)
{
	return f->buf == NULL ?
	    0 :
	    f->buf->room - (size_t)(f->data - f->buf->data) - f->size;
}

/* FLOW_WAITS_DST: neither memory nor store takes more. */
static enum flow_result
make_room(struct flow *f, struct flow_tools *t)
{
	size_t n;

	if (f->size < FLOW_MEMORY)
		return room_behind(f) > 0 ? FLOW_WAITS_SRC : grow(f, t);
	if (t->spool == NULL || f->store.size >= f->store_max)
		return FLOW_WAITS_DST;
	n = store_put(t->spool, &f->store, f->data, f->size);
	f->data += n;
	f->size -= n;
	if (f->size > 0) {
		spool_refused(t->spool);
		return FLOW_WAITS_DST;
	}
	f->data = f->buf->data;
	return FLOW_WAITS_SRC;
}

/* One read, put behind what there is. */
static enum flow_result
take(struct flow *f, struct sock *src, enum why *why)
{
	char *data = f->data, *behind = f->data + f->size;
	size_t had = f->size, most = room_behind(f);
	enum flow_result r;
	ssize_t n;

	if (f->may_read == 0)
		return FLOW_WAITS_LEAVE;
	if (f->in == FRAMING_LENGTH && most > f->left)
		most = (size_t)f->left;
	if (most > f->may_read)
		most = (size_t)f->may_read;
	n = sock_recv(src, behind, most);
	if (n <= 0)
		return n == SOCK_AGAIN ? FLOW_WAITS_SRC :
		    n == SOCK_EOF      ? FLOW_CUT :
					 FLOW_SRC_ERROR;
	flow_count_read(f, (size_t)n);
	r = flow_feed(f, behind, (size_t)n, why);
	memmove(behind, f->data, f->size);
	f->data = data;
	f->size += had;
	return r;
}

/* Through a pipe, once there is more than memory is for. */
static bool
may_splice(struct flow *f, struct flow_tools *t, const struct sock *src)
{
	if (f->pipe == NULL && f->splice && f->in == FRAMING_LENGTH &&
	    f->left >= SPLICE_MIN && f->size == 0 && f->store.size > 0 &&
	    spool_room(t->spool) >= PIPE_SIZE && sock_raw_in(src))
		f->pipe = pipe_take(t->pipes);
	return f->pipe != NULL;
}

/* Bytes that an error leaves in the pipe are behind all others, where
 * flow_run() looks for them. */
static enum flow_result
take_pipe(struct flow *f, struct flow_tools *t, struct sock *src)
{
	enum flow_result r = flow_splice(f, src);

	store_put_pipe(t->spool, &f->store, f->pipe);
	if (f->pipe->held > 0)
		return FLOW_WAITS_DST;
	pipe_give(t->pipes, &f->pipe);
	return r;
}

/* --- sending what is held */

void
flow_hold(struct flow *f)
{
	f->held = f->data;
	f->held_size = f->size;
}

void
flow_rewind(struct flow *f, struct flow_tools *t)
{
	buf_give(t->bufs, &f->head_buf);
	f->head_size = 0;
	f->data = f->held;
	f->size = f->held_size;
	f->written = 0;
	if (f->store.keep)
		store_rewind(&f->store);
	if (f->state == FLOW_DONE)
		f->state = FLOW_ENDED;
}

void
flow_send_once(struct flow *f, struct flow_tools *t)
{
	f->keep = false;
	if (f->state == FLOW_DONE && f->rest_size == 0)
		buf_give(t->bufs, &f->buf);
	if (f->store.keep)
		store_unkeep(t->spool, &f->store);
}

int
flow_open_chunk(struct flow *f, struct flow_tools *t, uint64_t *size)
{
	*size = f->store.size + f->size;
	f->out = FLOW_CHUNKS;
	if (*size == 0)
		return 0;
	if (f->buf == NULL && grow(f, t) != FLOW_WAITS_SRC)
		return -1;
	/* Buffers have room behind. */
	memcpy(f->data + f->size, CHUNK_TAIL, sizeof(CHUNK_TAIL) - 1);
	f->size += sizeof(CHUNK_TAIL) - 1;
	return 0;
}
