/* tell.c: see tell.h. */
#include "nodeagent/tell.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/io.h"
#include "common/base/log.h"
#include "common/registry/roles.h"
#include "common/registry/roster.h"
#include "nodeagent/agent.h"
#include "nodeagent/call.h"

#define AT_ONCE 32   /* calls under way */
#define REST_MS 2000 /* between two rounds to everybody */

struct target {
	uint8_t key[KEY_SIZE];
	struct addr addr;
};

/* One call under way. */
struct telling {
	struct tell *tell;
	struct call *call; /* NULL: free */
};

struct tell {
	struct agent *agent;
	struct event *due;   /* of the next round */
	struct target *list; /* of the round under way */
	size_t n, next;
	size_t n_running;
	int64_t all_told_ms; /* when the last round to everybody ended */
	bool masters_only;   /* this round */
	bool again;	     /* the roster has changed since it began */
	struct telling slots[AT_ONCE];
};

static void round_due(evutil_socket_t, short, void *);
static void round_begin(struct tell *, bool masters_only);
static void round_go_on(struct tell *);
static void round_end(struct tell *);
static int list_node(const struct node *, void *arg);
static bool call_one(struct tell *, struct telling *, const struct target *);
static void call_done(json_t *reply, const struct err *why, int64_t skew_ms,
    void *arg);
static void schedule(struct tell *, int64_t ms);

static const struct call_handlers tell_call = { .done = call_done };

struct tell *
tell_new(struct agent *a, struct err *e)
{
	struct tell *t = calloc(1, sizeof(*t));

	if (t == NULL ||
	    (t->due = evtimer_new(a->base, round_due, t)) == NULL) {
		err_set(e, ERR_LOCAL, "out of memory for telling nodes");
		free(t);
		return NULL;
	}
	t->agent = a;
	t->all_told_ms = -REST_MS;
	for (size_t i = 0; i < nitems(t->slots); i++)
		t->slots[i].tell = t;
	return t;
}

void
tell_free(struct tell *t)
{
	if (t == NULL)
		return;
	for (size_t i = 0; i < nitems(t->slots); i++)
		call_cancel(t->slots[i].call);
	event_free(t->due);
	free(t->list);
	free(t);
}

void
tell_changed(struct tell *t)
{
	if (t->n_running > 0)
		t->again = true;
	else
		round_begin(t, true);
}

static void
round_due(evutil_socket_t fd, short what, void *arg)
{
	struct tell *t = arg;

	(void)fd;
	(void)what;
	/* The masters first, and at once, also of what came meanwhile. */
	round_begin(t, t->again);
}

static void
round_begin(struct tell *t, bool masters_only)
{
	struct agent *a = t->agent;
	struct roster *roster;
	char path[PATH_MAX];
	struct err e;

	t->masters_only = masters_only;
	t->again = false;
	t->n = t->next = 0;
	roster = roster_open(state_path(&a->state, STATE_ROSTER, path),
	    a->identity.authority, &e);
	if (roster == NULL || roster_each_node(roster, list_node, t, &e) != 0)
		log_warn("cannot tell nodes of a new roster: %s", e.text);
	roster_close(roster);
	round_go_on(t);
}

static int
list_node(const struct node *n, void *arg)
{
	struct tell *t = arg;
	struct target *more;
	struct err e;

	if (!n->has_key ||
	    memcmp(n->key, t->agent->identity.public, KEY_SIZE) == 0 ||
	    (t->masters_only && node_find_role(n, ROLE_MASTER) == NULL))
		return 0;
	/* Grows by doubling: at the powers of two. */
	if ((t->n & (t->n - 1)) == 0) {
		more = realloc(t->list,
		    (t->n == 0 ? 1 : t->n * 2) * sizeof(*more));
		if (more == NULL)
			return 0; /* it will ask within a minute */
		t->list = more;
	}
	memcpy(t->list[t->n].key, n->key, KEY_SIZE);
	if (addr_parse(n->addr, n->agent_port, &t->list[t->n].addr, &e) == 0)
		t->n++;
	return 0;
}

static void
round_go_on(struct tell *t)
{
	for (size_t i = 0; i < nitems(t->slots) && t->next < t->n; i++)
		while (t->slots[i].call == NULL && t->next < t->n)
			if (call_one(t, &t->slots[i], &t->list[t->next++]))
				t->n_running++;
	if (t->n_running == 0)
		round_end(t);
}

static void
round_end(struct tell *t)
{
	int64_t now_ms = clock_mono_ms(), wait_ms;

	free(t->list);
	t->list = NULL;
	t->n = t->next = 0;
	if (!t->masters_only)
		t->all_told_ms = now_ms;
	wait_ms = t->all_told_ms + REST_MS - now_ms;
	if (t->again)
		schedule(t, 0);
	else if (t->masters_only)
		schedule(t, wait_ms > 0 ? wait_ms : 0);
}

static bool
call_one(struct tell *t, struct telling *slot, const struct target *to)
{
	struct agent *a = t->agent;
	struct err e;

	slot->call = call_start(a->base, &to->addr, &a->identity, to->key, NULL,
	    json_pack("{s:s, s:I}", "verb", "sync", "revision",
		(json_int_t)a->view.revision),
	    &tell_call, slot, &e);
	if (slot->call == NULL)
		log_debug("cannot tell a node: %s", e.text);
	return slot->call != NULL;
}

/* A node that cannot be told asks by itself within a minute. */
static void
call_done(json_t *reply, const struct err *why, int64_t skew_ms, void *arg)
{
	struct telling *slot = arg;

	(void)reply;
	(void)skew_ms;
	slot->call = NULL;
	slot->tell->n_running--;
	if (why != NULL)
		log_debug("cannot tell a node: %s", why->text);
	round_go_on(slot->tell);
}

static void
schedule(struct tell *t, int64_t ms)
{
	struct timeval tv = { .tv_sec = ms / 1000,
		.tv_usec = ms % 1000 * 1000 };

	evtimer_add(t->due, &tv);
}
