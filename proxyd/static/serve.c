/*
 * serve.c: see serve.h.
 *
 * The disk is the opener's affair: before a piece of a large file is sent,
 * the kernel is asked whether it has it in memory, and if not, the opener
 * reads it; other clients go on meanwhile.
 */
#include "proxyd/static/serve.h"

#include <sys/sendfile.h>
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proxyd/http/engine_parts.h"
#include "proxyd/http/exchange.h"
#include "proxyd/http/writer.h"
#include "proxyd/static/answer.h"
#include "proxyd/static/files.h"
#include "proxyd/static/names.h"
#include "proxyd/static/path.h"

#define TURN_MAX     (1U << 20)	  /* bytes before others have their turn */
#define PIECE	     (512U << 10) /* looked at, and sent, at once */
#define STRIDE	     (128U << 10) /* kernels read ahead so much together */
#define REDIRECT_MAX 2048	  /* a target that is repeated */
#define LOOKUP_MS    2000	  /* then the node has it */
#define EXTRA_MAX    256	  /* our own lines */

enum sending_state {
	SENDING_LOOKUP, /* what is it? */
	SENDING_OUT,	/* it goes to the client */
	SENDING_WARM,	/* the opener reads its next piece */
};

struct sending {
	struct exchange *x;
	uint8_t state; /* enum sending_state */
	struct files_waiter waiter;
	struct file *file; /* held */
	struct link_job warm;
	uint64_t warm_end; /* up to here it is in memory */
	struct answer answer;
};

static struct sending *sending_new(struct exchange *);
static bool decide(struct exchange *, struct file *);
static void begin(struct exchange *);
static void on_file(struct files_waiter *, struct file *);
static void on_warm(struct link_job *, struct link_answer *);
static bool send_all(struct exchange *);
static bool send_text(struct exchange *);
static bool send_part(struct exchange *);

/* --- before anything is known */

static bool
decode_path(const struct exchange *x, struct file_path *p)
{
	const struct span *path = &x->req.target.path;
	const char *raw = exchange_base(x) + path->off;
	const char *query = memchr(raw, '?', path->len);

	return !x->req.target.star && !x->req.target.slash &&
	    file_path_decode(p, raw,
		query != NULL ? (size_t)(query - raw) : path->len);
}

/* By the request alone, without a look at any disk: LOOKUP_FILE, or why it
 * is not. */
static enum lookup_verdict
judge_request(const struct exchange *x, struct file_path *p)
{
	const char *extensions = snapshot_text(x->snap, x->site->static_ext);

	if ((x->req.method != METHOD_GET && x->req.method != METHOD_HEAD) ||
	    x->req.body.kind != FRAMING_NONE || x->req.expect ||
	    x->req.upgrade != UPGRADE_NONE || !decode_path(x, p))
		return LOOKUP_REQUEST;
	/* What has no extension may be a directory. */
	if (name_judge(p->text, p->len, extensions) != NAME_NODE ||
	    p->directory || *name_extension(p->text, p->len) == '\0')
		return LOOKUP_FILE;
	return LOOKUP_NAME;
}

static struct coding_wish
wish_of(const struct asked *asked)
{
	const struct member *m = &asked->fields[ASKED_ACCEPT_ENCODING];

	return coding_parse(m->text != NULL ? m->text : "", m->len);
}

bool
static_take(struct exchange *x)
{
	struct engine *e = x->e;
	struct file_path path;
	struct files_ask ask = { .snap = x->snap,
		.site = x->site,
		.path = &path };
	struct asked asked;
	struct file *file;

	x->not_ours = (uint8_t)judge_request(x, &path);
	if (x->not_ours != LOOKUP_FILE)
		return false;
	x->not_ours = LOOKUP_REQUEST;
	if (!asked_find(&asked, &x->req.fields, exchange_base(x)))
		return false;
	x->not_ours = LOOKUP_DISK;
	if (e->files == NULL || (x->sending = sending_new(x)) == NULL)
		return false;
	ask.wish = wish_of(&asked);
	switch (
	    files_find(e->files, &ask, e->now_ms, &x->sending->waiter, &file)) {
	case FILES_WAIT:
		exchange_move(x, X_FILE);
		return true;
	case FILES_KNOWN:
		if (decide(x, file))
			return true;
		break;
	case FILES_NONE:
		break;
	}
	static_release(x);
	return false;
}

const char *
static_why(const struct exchange *x)
{
	return (x->site->flags & SNAP_SITE_STATIC) != 0 ?
	    lookup_word((enum lookup_verdict)x->not_ours) :
	    "off";
}

static struct sending *
sending_new(struct exchange *x)
{
	struct sending *s = spare_take(&x->e->spare_sendings, sizeof(*s));

	if (s == NULL)
		return NULL;
	memset(s, 0, offsetof(struct sending, answer));
	s->x = x;
	s->waiter.done = on_file;
	return s;
}

void
static_release(struct exchange *x)
{
	struct sending *s = x->sending;

	if (s == NULL)
		return;
	files_forget(&s->waiter);
	opener_link_cancel(files_opener(x->e->files), &s->warm);
	file_release(s->file);
	spare_put(&x->e->spare_sendings, s);
	x->sending = NULL;
}

/* --- once the file is known */

static void
on_file(struct files_waiter *w, struct file *file)
{
	struct sending *s =
	    (struct sending *)((char *)w - offsetof(struct sending, waiter));
	struct exchange *x = s->x;
	struct engine *e = x->e;
	struct client *c = x->client;

	engine_enter(e);
	if (file == NULL || !decide(x, file)) {
		static_release(x);
		exchange_to_node(x);
	}
	/* What came meanwhile, perhaps the next request. */
	client_run(c);
	engine_leave(e);
}

/* Takes the file.  False: it is the node's; nothing happened. */
static bool
decide(struct exchange *x, struct file *file)
{
	struct file_path path;

	x->sending->file = file;
	switch (file->verdict) {
	case LOOKUP_FILE:
		begin(x);
		return true;
	case LOOKUP_HIDDEN:
		static_release(x);
		exchange_reply(x, WHY_HIDDEN_FILE);
		return true;
	case LOOKUP_SLASH:
		/* "//host" would be another place. */
		if (!decode_path(x, &path) || !path.normal ||
		    x->req.target.path.len > REDIRECT_MAX) {
			x->not_ours = LOOKUP_REQUEST;
			return false;
		}
		begin(x);
		return true;
	default:
		x->not_ours = (uint8_t)file->verdict;
		return false;
	}
}

/* How the connection goes on: there was no body to wait for. */
static enum answer_connection
plan_connection(struct exchange *x)
{
	const struct snap_settings *s = &x->snap->head->settings;

	x->keep_alive = x->req.keep_alive && !x->e->draining &&
	    (s->keepalive_requests == 0 ||
		x->client->n_requests < s->keepalive_requests) &&
	    (x->req.minor >= 1 || s->keepalive_http10);
	return !x->keep_alive ? ANSWER_CLOSE :
	    x->req.minor == 0 ? ANSWER_PERSIST_10 :
				ANSWER_PERSIST;
}

static void
extra_fields(const struct exchange *x, char out[EXTRA_MAX])
{
	struct writer w;

	writer_init(&w, out, EXTRA_MAX - 1);
	put_text(&w, exchange_hsts(x));
	if (x->tell_why)
		PUT(&w, "X-Muster-Why: static\r\n");
	out[writer_size(&w)] = '\0';
}

static void
begin(struct exchange *x)
{
	struct sending *s = x->sending;
	const char *base = exchange_base(x);
	char extra[EXTRA_MAX];
	struct asked asked;
	struct answer_ask ask = {
		.asked = &asked,
		.head = x->req.method == METHOD_HEAD,
		.connection = plan_connection(x),
		.date = engine_date(x->e),
		.now_s = x->e->date_s,
		.random = engine_random(x->e),
		.extra = extra,
	};

	extra_fields(x, extra);
	asked_find(&asked, &x->req.fields, base);
	if (s->file->verdict == LOOKUP_FILE)
		answer_file(&s->answer, s->file, &ask);
	else
		answer_redirect(&s->answer, base + x->req.target.path.off,
		    x->req.target.path.len, &ask);
	if (x->state != X_FILE)
		exchange_move(x, X_FILE);
	assert(s->answer.text_size > 0); /* all of it is bounded */
	s->state = SENDING_OUT;
	x->status = s->answer.status;
	static_run(x);
}

/* --- out */

void
static_run(struct exchange *x)
{
	struct leave leave;
	bool sent;

	if (x->sending->state != SENDING_OUT)
		return;
	limit_ask_down(x, &leave);
	sent = send_all(x);
	limit_back_down(x, &leave);
	if (sent) {
		exchange_finish(x, x->keep_alive ? CLIENT_KEEP : CLIENT_CLOSE);
	} else if (x->state == X_FILE && x->down.may_write == 0) {
		x->progress_ms = x->e->now_ms;
		limit_wait(x->client, &x->limited, &leave);
	}
}

/* False: it waits, or it is over. */
static bool
send_all(struct exchange *x)
{
	struct sending *s = x->sending;
	struct answer *a = &s->answer;
	uint64_t before = x->down.bytes;

	for (;;) {
		if (a->text_size > 0) {
			if (!send_text(x))
				return false;
		} else if (a->part.size > 0) {
			if (x->down.bytes - before >= TURN_MAX) {
				sock_again(&x->client->s);
				return false;
			}
			if (!send_part(x))
				return false;
		} else if (answer_next(a)) {
			s->warm_end = 0; /* it may lie elsewhere */
		} else {
			return true;
		}
	}
}

/* So many of n bytes may be sent now. */
static size_t
may_send(const struct exchange *x, size_t n)
{
	return n < x->down.may_write ? n : (size_t)x->down.may_write;
}

static void
count_sent(struct exchange *x, ssize_t n)
{
	if (n > 0 && x->down.may_write != UINT64_MAX)
		x->down.may_write -= (uint64_t)n;
}

static void
took(struct exchange *x, uint64_t n)
{
	struct answer *a = &x->sending->answer;

	a->part.first += n;
	a->part.size -= n;
	x->down.bytes += n;
	x->progress_ms = x->e->now_ms;
}

/* After a send.  False: stop here: no room, or the client is gone. */
static bool
went_on(struct exchange *x, ssize_t n)
{
	if (n < 0)
		exchange_abandon(x, WHY_CLIENT_GONE);
	return n >= 0 && x->client->s.writable;
}

/* Text, with the content behind it if that is in memory.  False: it waits,
 * or it is over. */
static bool
send_text(struct exchange *x)
{
	struct answer *a = &x->sending->answer;
	struct sock *to = &x->client->s;
	const char *content = x->sending->file->content;
	size_t text = may_send(x, a->text_size), all = text;
	struct iovec iov[2] = { { (void *)(uintptr_t)a->text, text } };
	bool more = a->part.size > 0 || answer_has_next(a);
	int n_iov = 1;
	ssize_t n;

	if (!to->writable || text == 0)
		return false;
	if (content != NULL && a->part.size > 0) {
		all = may_send(x, text + (size_t)a->part.size);
		iov[n_iov++] = (struct iovec){
			(void *)(uintptr_t)(content + a->part.first), all - text
		};
		more = answer_has_next(a);
	}
	n = sock_send(to, iov, n_iov, more && all < x->down.may_write);
	count_sent(x, n);
	if (n > 0) {
		text = (size_t)n < a->text_size ? (size_t)n : a->text_size;
		a->text += text;
		a->text_size -= text;
		took(x, (uint64_t)n - text);
	}
	return went_on(x, n);
}

/* --- parts of the file */

/* Whether the kernel has these bytes in memory.  A look every STRIDE is
 * enough: it reads that much together, and drops it so.  A file system that
 * cannot say is asked of the opener. */
static bool
is_warm(int fd, uint64_t first, uint64_t size)
{
	for (uint64_t at = 0; at < size; at += STRIDE) {
		char byte;
		struct iovec iov = { &byte, 1 };

		if (preadv2(fd, &iov, 1, (off_t)(first + at), RWF_NOWAIT) == -1)
			return false;
	}
	return true;
}

/* False: the opener reads, and on_warm() comes. */
static bool
warmed(struct exchange *x, size_t size)
{
	struct sending *s = x->sending;
	const struct range *part = &s->answer.part;

	if (part->first < s->warm_end)
		return true;
	s->warm_end = part->first + size;
	if (s->file->in_memory || is_warm(s->file->fd, part->first, size))
		return true;
	s->warm = (struct link_job){
		.ask.kind = WIRE_WARM,
		.ask.offset = part->first,
		.ask.size = size,
		.fd = s->file->fd,
		.done = on_warm,
	};
	/* Without an opener a slow disk is better than no file. */
	if (!opener_link_ask(files_opener(x->e->files), &s->warm, x->e->now_ms))
		return true;
	s->state = SENDING_WARM;
	return false;
}

static void
on_warm(struct link_job *job, struct link_answer *answer)
{
	struct sending *s =
	    (struct sending *)((char *)job - offsetof(struct sending, warm));
	struct exchange *x = s->x;
	struct engine *e = x->e;

	(void)answer;
	engine_enter(e);
	s->state = SENDING_OUT;
	x->progress_ms = e->now_ms;
	client_run(x->client);
	engine_leave(e);
}

/* From the file to the client, by the kernel or through our hands; as
 * sock_send(), but 0 at the end of the file, and SOCK_AGAIN without room. */
static ssize_t
move_file(struct exchange *x, off_t at, size_t size)
{
	struct sock *to = &x->client->s;
	int fd = x->sending->file->fd;
	char *copy = x->e->scratch;
	bool raw = sock_raw_out(to);
	ssize_t n;

	if (!raw && size > sizeof(x->e->scratch))
		size = sizeof(x->e->scratch);
	do
		n = raw ? sendfile(to->fd, fd, &at, size) :
			  preadv2(fd, &(struct iovec){ copy, size }, 1, at, 0);
	while (n == -1 && errno == EINTR);
	if (!raw && n > 0) {
		n = sock_send(to, &(struct iovec){ copy, (size_t)n }, 1, false);
		return n == 0 ? SOCK_AGAIN : n;
	}
	if (raw)
		to->writable = n == (ssize_t)size;
	if (n == -1)
		return raw && errno == EAGAIN ? SOCK_AGAIN : SOCK_ERROR;
	return n;
}

static bool
send_part(struct exchange *x)
{
	struct sending *s = x->sending;
	struct range *part = &s->answer.part;
	struct sock *to = &x->client->s;
	size_t size =
	    may_send(x, part->size < PIECE ? (size_t)part->size : PIECE);
	ssize_t n;

	if (!to->writable || size == 0)
		return false;
	if (s->file->content != NULL) {
		struct iovec iov = { (void *)(uintptr_t)(s->file->content +
					 part->first),
			size };

		n = sock_send(to, &iov, 1, false);
		count_sent(x, n);
		if (n > 0)
			took(x, (uint64_t)n);
		return went_on(x, n);
	}
	if (!warmed(x, size))
		return false;
	/* What was found warm ends there; what is behind may be cold. */
	if (size > s->warm_end - part->first)
		size = (size_t)(s->warm_end - part->first);
	n = move_file(x, (off_t)part->first, size);
	count_sent(x, n);
	if (n == 0) { /* the file was cut short meanwhile */
		exchange_abandon(x, WHY_FILE_CUT);
		return false;
	}
	if (n > 0)
		took(x, (uint64_t)n);
	return went_on(x, n == SOCK_AGAIN ? 0 : n);
}

/* --- time */

void
static_sweep(struct exchange *x)
{
	struct sending *s = x->sending;
	const struct snap_settings *set = &x->snap->head->settings;

	if (s->state == SENDING_LOOKUP &&
	    x->e->now_ms - x->state_ms >= LOOKUP_MS) {
		static_release(x);
		exchange_to_node(x);
	} else if (s->state == SENDING_OUT && exchange_stalled(x)) {
		exchange_abandon(x, WHY_CLIENT_STALLED);
	} else if (s->state == SENDING_WARM &&
	    x->e->now_ms - x->progress_ms >= set->response_ms) {
		exchange_abandon(x, WHY_FILE_CUT);
	}
}
