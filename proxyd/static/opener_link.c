/* opener_link.c: see opener_link.h. */
#include "proxyd/static/opener_link.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/io.h"

struct opener_link {
	struct event_base *base;
	int fd;	      /* -1: there is no opener */
	int snapshot; /* that it still must get; -1: none */
	uint64_t n_snapshots;
	struct event *readable;
	TAILQ_HEAD(, link_job) queue;
	/* A ticket's lowest bits are its place here. */
	struct flight {
		uint64_t ticket;      /* 0: free */
		struct link_job *job; /* NULL: cancelled */
	} flying[LINK_FLYING];
	uint64_t last_ticket;
	char text[WIRE_FIELDS_MAX + WIRE_CONTENT_MAX];
};

static void on_readable(evutil_socket_t, short, void *);
static void fly(struct opener_link *);
static bool send_snapshot(struct opener_link *);
static int send_job(struct opener_link *, struct link_job *);
static void land(struct opener_link *, struct link_answer *);
static void give_up(struct opener_link *);

struct opener_link *
opener_link_new(struct event_base *base, struct err *e)
{
	struct opener_link *l = calloc(1, sizeof(*l));

	if (l == NULL) {
		err_set(e, ERR_LOCAL, "out of memory for the opener");
		return NULL;
	}
	TAILQ_INIT(&l->queue);
	l->base = base;
	l->fd = l->snapshot = -1;
	return l;
}

int
opener_link_attach(struct opener_link *l, int fd, struct err *e)
{
	if (l->fd != -1)
		give_up(l); /* its end was not seen here yet */
	l->fd = fd;
	l->readable =
	    event_new(l->base, fd, EV_READ | EV_PERSIST, on_readable, l);
	if (l->readable != NULL && event_add(l->readable, NULL) == 0)
		return 0;
	give_up(l);
	return err_set(e, ERR_LOCAL, "out of memory for the opener");
}

void
opener_link_free(struct opener_link *l)
{
	if (l == NULL)
		return;
	if (l->readable != NULL)
		event_free(l->readable);
	io_close(&l->snapshot);
	io_close(&l->fd);
	free(l);
}

int
opener_link_snapshot(struct opener_link *l, int fd, struct err *e)
{
	if (l->fd == -1)
		return 0;
	io_close(&l->snapshot);
	if ((l->snapshot = fcntl(fd, F_DUPFD_CLOEXEC, 0)) == -1)
		return err_errno(e, ERR_LOCAL,
		    "cannot pass a snapshot to the opener");
	l->n_snapshots++;
	send_snapshot(l);
	return 0;
}

/* False: not now.  Only the newest one matters. */
static bool
send_snapshot(struct opener_link *l)
{
	struct wire_ask ask = { .kind = WIRE_SNAPSHOT,
		.ticket = l->n_snapshots };
	struct iovec iov = { &ask, sizeof(ask) };

	if (l->snapshot == -1)
		return true;
	if (wire_send(l->fd, &iov, 1, l->snapshot) == -1)
		return false;
	io_close(&l->snapshot);
	return true;
}

bool
opener_link_ask(struct opener_link *l, struct link_job *job, int64_t now_ms)
{
	if (l->fd == -1)
		return false;
	job->asked_ms = now_ms;
	job->state = LINK_QUEUED;
	TAILQ_INSERT_TAIL(&l->queue, job, link);
	fly(l);
	return true;
}

bool
opener_link_is_stuck(const struct opener_link *l, int64_t now_ms)
{
	const struct link_job *first = TAILQ_FIRST(&l->queue);

	return first != NULL && now_ms - first->asked_ms >= LINK_STUCK_MS;
}

void
opener_link_cancel(struct opener_link *l, struct link_job *job)
{
	if (job->state == LINK_QUEUED)
		TAILQ_REMOVE(&l->queue, job, link);
	for (int i = 0; i < LINK_FLYING; i++)
		if (l->flying[i].job == job)
			l->flying[i].job = NULL;
	job->state = LINK_IDLE;
}

/* Sends what may be sent. */
static void
fly(struct opener_link *l)
{
	if (!send_snapshot(l))
		return;
	for (uint64_t i = 0; i < LINK_FLYING; i++) {
		struct link_job *job = TAILQ_FIRST(&l->queue);
		struct flight *f = &l->flying[i];

		if (job == NULL)
			return;
		if (f->ticket != 0)
			continue;
		job->ask.ticket = (l->last_ticket += LINK_FLYING) + i;
		/* A snapshot may have taken the last place; what flies comes
		 * back, and then we are here again. */
		if (send_job(l, job) == -1)
			return;
		TAILQ_REMOVE(&l->queue, job, link);
		job->state = LINK_FLOWN;
		*f = (struct flight){ job->ask.ticket, job };
	}
}

static int
send_job(struct opener_link *l, struct link_job *job)
{
	struct iovec iov[3] = { { &job->ask, sizeof(job->ask) } };
	int n = 1;

	if (job->path != NULL) {
		iov[n++] = (struct iovec){ (void *)(uintptr_t)job->site,
			strlen(job->site) + 1 };
		iov[n++] = (struct iovec){ (void *)(uintptr_t)job->path,
			strlen(job->path) };
	}
	return wire_send(l->fd, iov, n, job->fd);
}

static void
on_readable(evutil_socket_t fd, short what, void *arg)
{
	struct opener_link *l = arg;
	struct link_answer answer;
	struct iovec iov[2] = { { &answer.a, sizeof(answer.a) },
		{ l->text, sizeof(l->text) } };

	(void)what;
	for (;;) {
		ssize_t n = wire_recv(fd, iov, 2, &answer.fd);

		if (n == -1 && errno == EAGAIN)
			return;
		if (n < (ssize_t)sizeof(answer.a) ||
		    (size_t)n - sizeof(answer.a) !=
			answer.a.fields_size + answer.a.content_size) {
			io_close(&answer.fd);
			give_up(l);
			return;
		}
		answer.fields = l->text;
		answer.content = l->text + answer.a.fields_size;
		land(l, &answer);
		io_close(&answer.fd);
		fly(l);
	}
}

static void
land(struct opener_link *l, struct link_answer *answer)
{
	struct flight *f = &l->flying[answer->a.ticket % LINK_FLYING];
	struct link_job *job = f->job;

	if (f->ticket != answer->a.ticket)
		return;
	*f = (struct flight){ 0, NULL };
	if (job == NULL)
		return;
	job->state = LINK_IDLE;
	job->done(job, answer);
}

/* Whoever waits is served by the nodes, until the master sends another one
 * (and has said why). */
static void
give_up(struct opener_link *l)
{
	struct link_job *job;

	if (l->readable != NULL)
		event_free(l->readable);
	l->readable = NULL;
	io_close(&l->snapshot);
	io_close(&l->fd);
	while ((job = TAILQ_FIRST(&l->queue)) != NULL) {
		TAILQ_REMOVE(&l->queue, job, link);
		job->state = LINK_IDLE;
		job->done(job, NULL);
	}
	for (int i = 0; i < LINK_FLYING; i++) {
		job = l->flying[i].job;
		l->flying[i] = (struct flight){ 0, NULL };
		if (job == NULL)
			continue;
		job->state = LINK_IDLE;
		job->done(job, NULL);
	}
}
