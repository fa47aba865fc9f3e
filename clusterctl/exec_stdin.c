/* exec_stdin.c: see exec_stdin.h. */
#include "clusterctl/exec_stdin.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clusterctl/output.h"
#include "clusterctl/spool.h"
#include "clusterctl/xalloc.h"

#define PIECE 32768

TAILQ_HEAD(readers, exec_reader);

struct exec_stdin {
	off_t file;	    /* of a plain file: where we began; else -1 */
	struct spool spool; /* of anything else */
	bool complete;	    /* all of it is in the spool */
	struct event *readable;
	struct readers readers;
};

static ssize_t read_at(struct exec_stdin *, uint64_t offset, void *, size_t,
    struct err *);
static void on_readable(evutil_socket_t, short, void *);
static void take_piece(struct exec_stdin *);
static void feed_all(struct exec_stdin *);

bool
exec_stdin_there(void)
{
	struct stat sb;

	if (fstat(STDIN_FILENO, &sb) == -1 || isatty(STDIN_FILENO))
		return false;
	return !S_ISCHR(sb.st_mode) || sb.st_rdev != makedev(1, 3);
}

struct exec_stdin *
exec_stdin_new(struct context *cx, struct err *e)
{
	struct exec_stdin *in = xcalloc(1, sizeof(*in));
	struct stat sb;

	spool_init(&in->spool);
	TAILQ_INIT(&in->readers);
	in->file = -1;
	/* A plain file is there already, and epoll refuses it. */
	if (fstat(STDIN_FILENO, &sb) == 0 && S_ISREG(sb.st_mode))
		in->file = lseek(STDIN_FILENO, 0, SEEK_CUR);
	if (in->file != -1)
		return in;
	in->readable = event_new(context_base(cx), STDIN_FILENO,
	    EV_READ | EV_PERSIST, on_readable, in);
	if (in->readable == NULL || event_add(in->readable, NULL) == -1) {
		err_set(e, ERR_LOCAL,
		    "cannot wait for standard input (-n closes it)");
		exec_stdin_free(in, 0);
		return NULL;
	}
	return in;
}

void
exec_stdin_free(struct exec_stdin *in, uint64_t used)
{
	if (in == NULL)
		return;
	if (in->file != -1)
		lseek(STDIN_FILENO, in->file + (off_t)used, SEEK_SET);
	if (in->readable != NULL)
		event_free(in->readable);
	spool_fini(&in->spool);
	free(in);
}

int
exec_stdin_join(struct exec_stdin *in, struct exec_reader *r, struct task *t,
    struct err *e)
{
	r->task = t;
	r->joined = true;
	TAILQ_INSERT_TAIL(&in->readers, r, link);
	return exec_stdin_more(in, r, e);
}

int
exec_stdin_more(struct exec_stdin *in, struct exec_reader *r, struct err *e)
{
	char buf[PIECE];
	ssize_t n = 1;
	size_t room;

	if (r->ended)
		return 0;
	while ((room = window_room(&r->window, r->task->channel)) > 0) {
		n = read_at(in, r->window.sent, buf,
		    room < sizeof(buf) ? room : sizeof(buf), e);
		if (n <= 0)
			break;
		if (task_send(r->task, REC_STDIN, buf, (size_t)n, e) == -1)
			return -1;
		r->window.sent += (uint64_t)n;
	}
	if (n != 0 || (in->file == -1 && !in->complete))
		return n == -1 ? -1 : 0;
	r->ended = true;
	return task_send(r->task, REC_EOF, NULL, 0, e);
}

void
exec_stdin_leave(struct exec_stdin *in, struct exec_reader *r)
{
	if (r->joined)
		TAILQ_REMOVE(&in->readers, r, link);
	r->joined = false;
}

/* How many bytes, 0 when there are no more for now, -1 on error. */
static ssize_t
read_at(struct exec_stdin *in, uint64_t offset, void *buf, size_t n,
    struct err *e)
{
	ssize_t got;

	if (in->file == -1)
		return spool_read(&in->spool, offset, buf, n, e);
	got = pread(STDIN_FILENO, buf, n, in->file + (off_t)offset);
	return got == -1 ?
	    err_errno(e, ERR_LOCAL, "cannot read standard input") :
	    got;
}

static void
on_readable(evutil_socket_t fd, short what, void *arg)
{
	struct exec_stdin *in = arg;

	(void)fd;
	(void)what;
	take_piece(in);
	if (in->complete)
		event_del(in->readable);
	feed_all(in);
}

/* What cannot be read or kept is remarked, and ends the stream: the nodes
 * see its end, as with any broken pipe. */
static void
take_piece(struct exec_stdin *in)
{
	char buf[PIECE];
	struct err e;
	ssize_t n;

	n = read(STDIN_FILENO, buf, sizeof(buf));
	if (n == -1 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n == -1)
		err_errno(&e, ERR_LOCAL, "cannot read standard input");
	else if (n > 0 && spool_put(&in->spool, buf, (size_t)n, &e) == 0)
		return;
	if (n != 0)
		output_error(&e);
	in->complete = true;
}

static void
feed_all(struct exec_stdin *in)
{
	struct exec_reader *r, *next;
	struct err e;

	for (r = TAILQ_FIRST(&in->readers); r != NULL; r = next) {
		next = TAILQ_NEXT(r, link);
		if (exec_stdin_more(in, r, &e) == -1)
			task_end(r->task, OUTCOME_LOST, &e);
	}
}
