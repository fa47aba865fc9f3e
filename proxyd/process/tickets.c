/* tickets.c: see tickets.h. */
#include "proxyd/process/tickets.h"

#include <stdlib.h>

#include "common/base/clock.h"

struct tickets {
	struct crew *crew;
	struct ticket_keys keys;
	struct event *timer;
	int64_t due_ms; /* monotonic */
};

static void rotate(struct tickets *);
static void wait_for_it(struct tickets *, int64_t ms);
static void on_time(evutil_socket_t, short, void *);

struct tickets *
tickets_new(struct event_base *base, struct crew *crew,
    const struct ticket_keys *keys, int64_t left_ms, struct err *e)
{
	struct tickets *t = calloc(1, sizeof(*t));

	if (t == NULL || (t->timer = evtimer_new(base, on_time, t)) == NULL) {
		free(t);
		err_set(e, ERR_LOCAL, "out of memory for session tickets");
		return NULL;
	}
	t->crew = crew;
	t->keys = *keys;
	if (t->keys.n == 0 || left_ms <= 0) {
		rotate(t);
	} else {
		crew_tickets(crew, &t->keys);
		wait_for_it(t, left_ms);
	}
	return t;
}

void
tickets_free(struct tickets *t)
{
	if (t == NULL)
		return;
	event_free(t->timer);
	ticket_keys_wipe(&t->keys);
	free(t);
}

const struct ticket_keys *
tickets_keys(const struct tickets *t)
{
	return &t->keys;
}

int64_t
tickets_left_ms(const struct tickets *t)
{
	int64_t left_ms = t->due_ms - clock_mono_ms();

	return left_ms > 0 ? left_ms : 0;
}

static void
rotate(struct tickets *t)
{
	ticket_keys_rotate(&t->keys);
	crew_tickets(t->crew, &t->keys);
	wait_for_it(t, TICKET_ROTATE_S * 1000);
}

static void
wait_for_it(struct tickets *t, int64_t ms)
{
	struct timeval tv = { .tv_sec = ms / 1000,
		.tv_usec = ms % 1000 * 1000 };

	t->due_ms = clock_mono_ms() + ms;
	evtimer_add(t->timer, &tv);
}

static void
on_time(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	rotate(arg);
}
