/*
 * balance.c: see balance.h.
 *
 * A pick looks at every node of the role once, in up to two rounds: first
 * those that are well, then, if there is none of these at all, the others.
 * Each method is one function that names the best of the candidates left; a
 * full node is struck off and the next best is taken.
 */
#include "proxyd/balance/balance.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/io.h"

#define RETRY_BURST 1000 /* what one dying node may have in hand */
#define SLOW_MIN    10	 /* percent of the weight at the start */
#define NODES_MAX   1024 /* of a role that are looked at */

struct balance {
	const struct scoreboard *sb;
	uint32_t slot;
	uint32_t turn;	  /* of least_conn's ties */
	int32_t *current; /* smooth round robin, by target row */
	uint32_t credit;  /* hundredths of a retry */
};

/* One node that may be taken. */
struct candidate {
	uint32_t index; /* in the snapshot */
	uint32_t weight;
	struct sb_target *target;
	const struct snap_node *node;
};

struct choice {
	struct balance *b;
	const struct balance_ask *ask;
	struct candidate list[NODES_MAX];
	uint32_t n;
	bool full; /* one that is well was full */
};

static uint32_t best_least_conn(struct choice *);
static uint32_t best_round_robin(struct choice *);
static uint32_t best_hash(struct choice *);

static uint32_t (*const methods[])(struct choice *) = {
	[SNAP_LEAST_CONN] = best_least_conn,
	[SNAP_ROUND_ROBIN] = best_round_robin,
	[SNAP_HASH_IP] = best_hash,
	[SNAP_HASH_URI] = best_hash,
	[SNAP_HASH_COOKIE] = best_hash,
	[SNAP_STICKY] = best_least_conn,
};

static uint32_t
load32(const _Atomic uint32_t *p)
{
	return atomic_load_explicit(p, memory_order_relaxed);
}

static int64_t
load64(const _Atomic int64_t *p)
{
	return atomic_load_explicit(p, memory_order_relaxed);
}

struct balance *
balance_new(const struct scoreboard *sb, uint32_t slot, struct err *e)
{
	struct balance *b = calloc(1, sizeof(*b));

	if (b == NULL ||
	    (b->current = calloc(sb->head->n_targets, sizeof(*b->current))) ==
		NULL) {
		err_set(e, ERR_LOCAL, "out of memory for balancing");
		free(b);
		return NULL;
	}
	b->sb = sb;
	b->slot = slot;
	b->credit = RETRY_BURST * 100;
	return b;
}

void
balance_free(struct balance *b)
{
	if (b == NULL)
		return;
	free(b->current);
	free(b);
}

bool
balance_usable(const struct snap_node *n, const struct sb_target *t,
    int64_t now_ms, enum why *why)
{
	if (n->state == SNAP_NODE_MAINTENANCE)
		*why = WHY_ADMIN_MAINTENANCE;
	else if (n->state == SNAP_NODE_DRAIN || n->weight == 0)
		*why = WHY_ADMIN_DRAIN;
	else if (load32(&t->health) == SB_DOWN)
		*why = WHY_CHECK_DOWN;
	else if (load64(&t->ejected_ms) > now_ms)
		*why = WHY_EJECTED;
	else
		*why = WHY_NONE;
	return *why == WHY_NONE;
}

uint32_t
balance_weight(const struct snap_role *r, const struct snap_node *n,
    const struct sb_target *t, int64_t now_ms)
{
	int64_t up = load64(&t->up_ms), age = now_ms - up;

	if (r->slow_start_ms == 0 || up == 0 || age >= r->slow_start_ms)
		return n->weight * 100;
	return n->weight *
	    (SLOW_MIN +
		(uint32_t)((100 - SLOW_MIN) * (uint64_t)(age < 0 ? 0 : age) /
		    r->slow_start_ms));
}

static bool
was_tried(const struct balance_ask *a, uint32_t node)
{
	for (uint32_t i = 0; i < a->n_tried; i++)
		if (a->tried[i] == node)
			return true;
	return false;
}

/* Fills the list with nodes that are well (or with those that are not).
 * Returns the last reason for which one was passed over. */
static enum why
gather(struct choice *c, bool well)
{
	const struct balance_ask *a = c->ask;
	const struct snap_role *r = a->role;
	enum why last = WHY_NO_NODE, why;

	c->n = 0;
	for (uint32_t i = 0; i < r->n_nodes && c->n < NODES_MAX; i++) {
		uint32_t index = r->first_node + i;
		const struct snap_node *n = snapshot_node(a->snap, index);
		struct sb_target *t = sb_target(c->b->sb, n->target);
		bool usable = balance_usable(n, t, a->now_ms, &why);

		if (!usable)
			last = why;
		if (usable != well || was_tried(a, index) ||
		    why == WHY_ADMIN_DRAIN || why == WHY_ADMIN_MAINTENANCE)
			continue;
		c->list[c->n++] = (struct candidate){ index,
			balance_weight(r, n, t, a->now_ms), t, n };
	}
	return last;
}

/* Takes the best that has a place; strikes off the full ones. */
static bool
take_best(struct choice *c, struct balance_answer *answer)
{
	while (c->n > 0) {
		uint32_t i = methods[c->ask->role->balance](c);
		struct candidate *k = &c->list[i];

		if (sb_hold_below(c->b->sb, k->target->active, c->b->slot,
			k->node->maxconn)) {
			answer->action = BALANCE_NODE;
			answer->node = k->index;
			return true;
		}
		c->full = true;
		*k = c->list[--c->n];
	}
	return false;
}

/* The node a cookie names, while it may serve its old clients. */
static bool
take_sticky(struct balance *b, const struct balance_ask *a,
    struct balance_answer *answer)
{
	const struct snap_node *n;
	struct sb_target *t;
	enum why why;

	if (a->sticky == SNAP_NONE || was_tried(a, a->sticky))
		return false;
	n = snapshot_node(a->snap, a->sticky);
	t = sb_target(b->sb, n->target);
	if (!balance_usable(n, t, a->now_ms, &why) && why != WHY_ADMIN_DRAIN)
		return false;
	if (!sb_hold_below(b->sb, t->active, b->slot, n->maxconn))
		return false;
	answer->action = BALANCE_NODE;
	answer->node = a->sticky;
	return true;
}

void
balance_pick(struct balance *b, const struct balance_ask *a,
    struct balance_answer *answer)
{
	static struct choice c; /* large; a worker has one thread */

	c.b = b;
	c.ask = a;
	c.full = false;
	answer->why = WHY_NONE;
	if (take_sticky(b, a, answer))
		return;
	answer->why = gather(&c, true);
	if (take_best(&c, answer)) {
		if (answer->why == WHY_NO_NODE)
			answer->why = c.full ? WHY_NODE_FULL : WHY_NONE;
		return;
	}
	if (c.full) {
		answer->action = BALANCE_WAIT;
		answer->why = WHY_NODE_FULL;
		return;
	}
	/* A check may be wrong, and a failing node is no worse than none. */
	gather(&c, false);
	if (take_best(&c, answer))
		return;
	answer->action = c.full ? BALANCE_WAIT : BALANCE_NONE;
}

/* --- the methods: each names one of the list */

/* Fewest requests for its weight; ties go round. */
static uint32_t
best_least_conn(struct choice *c)
{
	uint32_t start = c->b->turn++ % c->n, best = start;
	uint64_t best_load = 0, best_weight = 0;

	for (uint32_t i = 0; i < c->n; i++) {
		uint32_t at = (start + i) % c->n;
		const struct candidate *k = &c->list[at];
		uint64_t load = sb_active(c->b->sb, k->target->active) + 1UL;

		if (best_weight == 0 ||
		    load * best_weight < best_load * k->weight) {
			best = at;
			best_load = load;
			best_weight = k->weight;
		}
	}
	return best;
}

/* Smooth: each gains its weight, the highest goes and pays the sum. */
static uint32_t
best_round_robin(struct choice *c)
{
	uint32_t best = 0;
	int64_t sum = 0, highest = INT64_MIN;

	for (uint32_t i = 0; i < c->n; i++) {
		const struct candidate *k = &c->list[i];
		int32_t *current = &c->b->current[k->node->target];

		*current += (int32_t)k->weight;
		sum += k->weight;
		if (*current > highest) {
			highest = *current;
			best = i;
		}
	}
	c->b->current[c->list[best].node->target] -= (int32_t)sum;
	return best;
}

static uint64_t
mix(uint64_t h)
{
	h ^= h >> 31;
	h *= 0x7fb5d329728ea185;
	h ^= h >> 27;
	h *= 0x81dadef4bc2dd44d;
	return h ^ h >> 33;
}

/* Rendezvous hashing: each node draws a lot from the key and itself, the
 * best lot wins.  A node that leaves moves only its own keys. */
static uint32_t
best_hash(struct choice *c)
{
	uint32_t best = 0;
	double best_lot = -1;

	for (uint32_t i = 0; i < c->n; i++) {
		const struct candidate *k = &c->list[i];
		uint64_t h = mix(c->ask->key ^
		    mix((uint64_t)k->node->id * 0x9e3779b97f4a7c15));
		double uniform = ((double)(h >> 11) + 0.5) / 0x1p53;
		/* The static weight: slow start must not move keys. */
		double lot = -(double)k->node->weight / log(uniform);

		if (lot > best_lot) {
			best_lot = lot;
			best = i;
		}
	}
	return best;
}

/* --- how it ended */

/* Whether another node of the role would remain. */
static bool
others_left(struct balance *b, const struct snapshot *snap,
    const struct snap_role *r, uint32_t node, int64_t now_ms)
{
	enum why why;

	for (uint32_t i = r->first_node; i < r->first_node + r->n_nodes; i++) {
		const struct snap_node *n = snapshot_node(snap, i);

		if (i != node &&
		    balance_usable(n, sb_target(b->sb, n->target), now_ms,
			&why))
			return true;
	}
	return false;
}

static void
eject(struct balance *b, const struct snapshot *snap, uint32_t role,
    uint32_t node, struct sb_target *t, int64_t now_ms)
{
	const struct snap_settings *s = &snap->head->settings;
	uint32_t times = load32(&t->ejections);
	int64_t ms = s->eject_ms;

	if (!others_left(b, snap, snapshot_role(snap, role), node, now_ms)) {
		atomic_store_explicit(&t->why, WHY_LAST_NODE,
		    memory_order_relaxed);
		return;
	}
	for (uint32_t i = 0; i < times && ms < s->eject_max_ms; i++)
		ms *= 2;
	ms = ms > s->eject_max_ms ? s->eject_max_ms : ms;
	atomic_store_explicit(&t->ejections, times + 1, memory_order_relaxed);
	atomic_store_explicit(&t->failures, 0, memory_order_relaxed);
	atomic_store_explicit(&t->since_ms, now_ms, memory_order_relaxed);
	atomic_store_explicit(&t->ejected_ms, now_ms + ms,
	    memory_order_relaxed);
	/* Back from ejection it starts slowly, too. */
	atomic_store_explicit(&t->up_ms, now_ms + ms, memory_order_relaxed);
}

static void
succeeded(struct sb_target *t, int64_t now_ms)
{
	if (load32(&t->failures) != 0)
		atomic_store_explicit(&t->failures, 0, memory_order_relaxed);
	if (load32(&t->ejections) != 0 && load64(&t->ejected_ms) <= now_ms)
		atomic_store_explicit(&t->ejections, 0, memory_order_relaxed);
}

void
balance_end(struct balance *b, const struct snapshot *snap, uint32_t role,
    uint32_t node, enum balance_end end, enum why why, int64_t now_ms)
{
	struct sb_target *t =
	    sb_target(b->sb, snapshot_node(snap, node)->target);

	sb_release(t->active, b->slot);
	if (end == BALANCE_OK)
		succeeded(t, now_ms);
	if (end != BALANCE_FAILED)
		return;
	sb_add(&t->failed, 1);
	if (load64(&t->ejected_ms) <= now_ms)
		atomic_store_explicit(&t->why, (uint32_t)why,
		    memory_order_relaxed);
	if (atomic_fetch_add_explicit(&t->failures, 1, memory_order_relaxed) +
		    1 >=
		snap->head->settings.eject_after &&
	    load64(&t->ejected_ms) <= now_ms)
		eject(b, snap, role, node, t, now_ms);
}

/* Each request earns its percentage, up to a burst; a retry costs a whole
 * one.  So a failing role cannot be drowned by retries; but all that a node
 * had in hand when it died can go to another. */
void
balance_request(struct balance *b, const struct snapshot *snap)
{
	b->credit += snap->head->settings.retry_percent;
	if (b->credit > RETRY_BURST * 100)
		b->credit = RETRY_BURST * 100;
}

bool
balance_retry(struct balance *b, const struct snapshot *snap)
{
	if (b->credit < 100 || snap->head->settings.retry_percent == 0)
		return false;
	b->credit -= 100;
	return true;
}

uint64_t
balance_hash(const void *bytes, size_t len)
{
	const unsigned char *p = bytes;
	uint64_t h = 0xcbf29ce484222325;

	for (size_t i = 0; i < len; i++)
		h = (h ^ p[i]) * 0x100000001b3;
	return mix(h);
}
