/*
 * limit.c: see limit.h.
 *
 * Who has used up his leave waits in the engine's list; a tick, which only
 * runs while somebody waits, lets them try in turn.
 */
#include "proxyd/http/limit.h"

#include "common/base/addr.h"
#include "proxyd/http/client.h"
#include "proxyd/http/engine_parts.h"
#include "proxyd/http/exchange.h"
#include "proxyd/limits/clients.h"
#include "proxyd/limits/site_limits.h"

/* What a site without limits shall not pay for. */
#define NOINLINE __attribute__((noinline, cold))

#define TICK_MS	  20
#define SECOND_NS 1000000000ULL
#define LEAVE_MAX (1U << 20) /* at once: others have their turn */
/* Less is not worth a packet of its own: a tenth of a second's, but... */
#define LEAST_NS  (SECOND_NS / 10)
#define LEAST_MAX (16U << 10)
/* What a TLS connection had no room for must be offered again. */
#define KEEP_MAX (16U << 10)

static uint64_t
now_ns(const struct engine *e)
{
	return (uint64_t)e->now_us * 1000;
}

/* Which limits are on, as LIMIT_BIT()s. */
static uint32_t
limits_of(const struct engine *e, uint32_t account)
{
	if (account == SB_NONE)
		return 0;
	return atomic_load_explicit(&sb_account(e->sb, account)->limits,
	    memory_order_relaxed);
}

/* --- requests and connections */

static uint64_t
key_of(const struct exchange *x)
{
	const struct client *c = x->client;
	struct addr forwarded;
	struct err e;

	if (x->client_ip != c->ip &&
	    addr_parse(x->client_ip, 0, &forwarded, &e) == 0)
		return client_key(x->e->sb, x->site->id, &forwarded);
	return client_key(x->e->sb, x->site->id, &c->peer);
}

static bool
hold_site(struct exchange *x, const struct site_limits *s)
{
	const struct engine *e = x->e;
	struct limited *l = &x->limited;
	uint32_t most = site_limits_most(s, LIMIT_CONNECTIONS);

	l->site = x->site->account;
	sb_hold(sb_limit_cell(e->sb, e->slot, l->site), 0);
	l->holds_site = true;
	atomic_thread_fence(memory_order_seq_cst);
	return most == 0 || sb_limit_used(e->sb, l->site) <= most;
}

static bool
hold_client(struct exchange *x, const struct site_limits *s)
{
	const struct engine *e = x->e;
	struct limited *l = &x->limited;
	uint64_t key = key_of(x);

	if (l->holds_client || key == 0)
		return true;
	l->holds_client = client_hold(e->sb, e->slot, key,
	    site_limits_most(s, LIMIT_CLIENT_CONNECTIONS), &l->client);
	return l->holds_client;
}

/* In the order in which they are asked: whoever is over his own limit must
 * not use up the site's. */
static uint64_t
take_request(const struct exchange *x, struct site_limits *s, enum limit *which)
{
	const struct limited *l = &x->limited;
	struct bucket_rate mine = site_limits_rate(s, LIMIT_CLIENT_REQUESTS);
	struct bucket_rate all = site_limits_rate(s, LIMIT_REQUESTS);
	_Atomic uint64_t *bucket = NULL;
	uint64_t wait = 0;

	if (mine.step != 0 && l->holds_client && l->client != CLIENT_NONE) {
		bucket = &client_row(x->e->sb, l->client)->requests;
		*which = LIMIT_CLIENT_REQUESTS;
		wait = bucket_take(bucket, &mine, 1, now_ns(x->e));
	}
	if (wait == 0 && all.step != 0) {
		*which = LIMIT_REQUESTS;
		wait = bucket_take(&s->buckets[LIMIT_REQUESTS], &all, 1,
		    now_ns(x->e));
		if (wait != 0 && bucket != NULL)
			bucket_give(bucket, &mine, 1, 0);
	}
	return wait;
}

static enum why
refuse(struct exchange *x, struct site_limits *s, enum limit which,
    uint64_t wait_ns)
{
	static const enum why whys[N_LIMITS] = {
		[LIMIT_REQUESTS] = WHY_LIMIT_REQUESTS,
		[LIMIT_CONNECTIONS] = WHY_LIMIT_CONNECTIONS,
		[LIMIT_CLIENT_REQUESTS] = WHY_LIMIT_CLIENT_REQUESTS,
		[LIMIT_CLIENT_CONNECTIONS] = WHY_LIMIT_CLIENT_CONNECTIONS,
	};

	/* Its answer may take long to be read. */
	limit_end(x->e, &x->limited);
	sb_add(&s->hits[which], 1);
	sb_add(&sb_account(x->e->sb, x->site->account)->limited, 1);
	x->retry_s = (uint32_t)((wait_ns + SECOND_NS - 1) / SECOND_NS);
	return whys[which];
}

static NOINLINE enum why
judge(struct exchange *x, uint32_t on)
{
	struct site_limits *s = sb_limits(x->e->sb, x->site->account);
	enum limit which;
	uint64_t wait;

	if ((on & LIMITS_OF_CLIENTS) != 0 && !hold_client(x, s))
		return refuse(x, s, LIMIT_CLIENT_CONNECTIONS, SECOND_NS);
	if (!hold_site(x, s))
		return refuse(x, s, LIMIT_CONNECTIONS, SECOND_NS);
	if ((wait = take_request(x, s, &which)) != 0)
		return refuse(x, s, which, wait);
	return WHY_NONE;
}

enum why
limit_request(struct exchange *x)
{
	uint32_t on = limits_of(x->e, x->site->account);

	return on == 0 ? WHY_NONE : judge(x, on);
}

void
limit_end(struct engine *e, struct limited *l)
{
	if (l->holds_site)
		sb_release(sb_limit_cell(e->sb, e->slot, l->site), 0);
	if (l->holds_client)
		client_release(e->sb, e->slot, l->client);
	l->holds_site = l->holds_client = false;
}

bool
limit_connection(struct client *c)
{
	struct engine *e = c->e;
	uint32_t most = e->snap->head->settings.max_client_connections;
	uint64_t key;

	if (most == 0 || c->counted || snapshot_trusts(e->snap, &c->peer) ||
	    (key = client_key(e->sb, 0, &c->peer)) == 0)
		return true;
	c->counted = client_hold(e->sb, e->slot, key, most, &c->counted_row);
	if (!c->counted)
		engine_count(&e->row->refused);
	return c->counted;
}

/* --- bandwidth */

/* A little more than nothing, but within what fits. */
static uint64_t
least_of(const struct bucket_rate *r, uint64_t most)
{
	uint64_t ns = r->whole_ns < LEAST_NS ? r->whole_ns : LEAST_NS;
	uint64_t n = (ns << 20) / r->step;

	if (n > LEAST_MAX)
		n = LEAST_MAX;
	return n < most ? n : most;
}

static uint64_t
take_leave(struct engine *e, struct limited *l, struct site_limits *s,
    struct leave *out)
{
	_Atomic uint64_t *mine = NULL;
	uint64_t n = LEAVE_MAX, m;

	out->client = site_limits_rate(s, LIMIT_CLIENT_BANDWIDTH);
	out->site = site_limits_rate(s, LIMIT_BANDWIDTH);
	if (!l->holds_client || l->client == CLIENT_NONE)
		out->client.step = 0;
	if (out->client.step != 0) {
		mine = &client_row(e->sb, l->client)->bandwidth;
		n = bucket_take_some(mine, &out->client,
		    least_of(&out->client, n), n, now_ns(e));
		out->by_client = true;
	}
	if (n == 0 || out->site.step == 0)
		return n;
	m = bucket_take_some(&s->buckets[LIMIT_BANDWIDTH], &out->site,
	    least_of(&out->site, n), n, now_ns(e));
	out->by_client = out->by_client && m == n;
	if (mine != NULL)
		bucket_give(mine, &out->client, n, m);
	return m;
}

static NOINLINE void
ask(struct client *c, struct limited *l, uint32_t account, struct leave *out)
{
	struct engine *e = c->e;
	uint64_t n = 0;

	*out = (struct leave){ 0 };
	l->site = account;
	/* Those who wait have their turn by the tick alone. */
	if (!c->waits)
		n = take_leave(e, l, sb_limits(e->sb, account), out);
	out->full = n == LEAVE_MAX;
	out->bytes = n + l->kept;
	l->kept = 0;
}

void
limit_ask(struct client *c, struct limited *l, uint32_t account,
    struct leave *out)
{
	if ((limits_of(c->e, account) & LIMITS_OF_BANDWIDTH) != 0)
		ask(c, l, account, out);
	else
		out->bytes = UINT64_MAX;
}

static NOINLINE void
give_back(struct client *c, struct limited *l, const struct leave *given,
    uint64_t left)
{
	struct engine *e = c->e;

	if (!c->s.writable || c->waits) {
		l->kept = left < KEEP_MAX ? (uint32_t)left : KEEP_MAX;
		left -= l->kept;
	}
	if (left == 0)
		return;
	if (given->site.step != 0)
		bucket_give(&sb_limits(e->sb, l->site)
				 ->buckets[LIMIT_BANDWIDTH],
		    &given->site, left, 0);
	if (given->client.step != 0)
		bucket_give(&client_row(e->sb, l->client)->bandwidth,
		    &given->client, left, 0);
}

void
limit_back(struct client *c, struct limited *l, const struct leave *given,
    uint64_t left)
{
	if (given->bytes != UINT64_MAX)
		give_back(c, l, given, left);
}

static void
count_slow(struct engine *e, struct limited *l, const struct leave *given)
{
	enum limit which =
	    given->by_client ? LIMIT_CLIENT_BANDWIDTH : LIMIT_BANDWIDTH;
	bool *counted = given->by_client ? &l->slowed_client : &l->slowed;

	if (!*counted)
		sb_add(&sb_limits(e->sb, l->site)->hits[which], 1);
	*counted = true;
}

void
limit_wait(struct client *c, struct limited *l, const struct leave *given)
{
	struct timeval soon = { .tv_usec = TICK_MS * 1000 };
	struct engine *e = c->e;

	if (c->waits)
		return;
	if (given->full) {
		sock_again(&c->s);
		return;
	}
	count_slow(e, l, given);
	c->waits = true;
	TAILQ_INSERT_TAIL(&e->waiting, c, waiting);
	e->n_waiting++;
	if (!event_pending(e->limit_tick, EV_TIMEOUT, NULL))
		event_add(e->limit_tick, &soon);
}

static void
leave_waiting(struct client *c)
{
	if (!c->waits)
		return;
	TAILQ_REMOVE(&c->e->waiting, c, waiting);
	c->e->n_waiting--;
	c->waits = false;
}

void
limit_forget(struct client *c)
{
	leave_waiting(c);
	if (c->counted)
		client_release(c->e->sb, c->e->slot, c->counted_row);
	c->counted = false;
}

void
limit_tick(int fd, short what, void *arg)
{
	struct timeval soon = { .tv_usec = TICK_MS * 1000 };
	struct engine *e = arg;
	struct client *c;

	(void)fd;
	(void)what;
	engine_enter(e);
	/* Once each: who must wait again does so behind the others. */
	for (uint32_t n = e->n_waiting;
	     n > 0 && (c = TAILQ_FIRST(&e->waiting)) != NULL; n--) {
		leave_waiting(c);
		client_run(c);
	}
	if (!TAILQ_EMPTY(&e->waiting))
		event_add(e->limit_tick, &soon);
	engine_leave(e);
}

void
limit_ask_down(struct exchange *x, struct leave *out)
{
	limit_ask(x->client, &x->limited, x->site->account, out);
	x->down.may_write = out->bytes;
}

void
limit_back_down(struct exchange *x, const struct leave *given)
{
	limit_back(x->client, &x->limited, given, x->down.may_write);
}
