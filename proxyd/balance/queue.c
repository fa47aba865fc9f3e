/*
 * queue.c: see queue.h.
 *
 * Start-time fair queueing: a site's turn stands at a virtual time.  Being
 * served moves it on by 1/share; a site that comes back from idleness starts
 * at the present, so nobody saves up.  A site whose turn lies ahead is
 * remembered while nothing of it waits, or it could come back for free.  The
 * sites in a queue are few, so the earliest is found by looking at each.
 */
#include "proxyd/balance/queue.h"

#include <stdlib.h>

#define STEP (1U << 20) /* virtual time of one request at share 1 */

TAILQ_HEAD(queue_entries, queue_entry);
TAILQ_HEAD(queue_sites, queue_site);

struct queue_site {
	TAILQ_ENTRY(queue_site) link;
	struct queue_entries entries;
	int64_t id;
	uint64_t turn; /* virtual */
	uint32_t share;
};

struct queue {
	struct queue_sites sites;     /* that wait, or are ahead */
	struct queue_entries entries; /* by deadline */
	uint64_t now;		      /* virtual */
	uint32_t n;
};

struct queue *
queue_new(void)
{
	struct queue *q = calloc(1, sizeof(*q));

	if (q == NULL)
		return NULL;
	TAILQ_INIT(&q->sites);
	TAILQ_INIT(&q->entries);
	return q;
}

void
queue_free(struct queue *q)
{
	free(q);
}

static struct queue_site *
site_of(struct queue *q, int64_t id)
{
	struct queue_site *s;

	TAILQ_FOREACH (s, &q->sites, link)
		if (s->id == id)
			return s;
	if ((s = calloc(1, sizeof(*s))) == NULL)
		return NULL;
	s->id = id;
	s->turn = q->now;
	TAILQ_INIT(&s->entries);
	TAILQ_INSERT_TAIL(&q->sites, s, link);
	return s;
}

bool
queue_push(struct queue *q, struct queue_entry *e, int64_t site_id,
    uint32_t share, uint32_t max, int64_t deadline_ms)
{
	struct queue_site *s;

	if (q->n >= max || (s = site_of(q, site_id)) == NULL)
		return false;
	s->share = share == 0 ? 1 : share;
	e->site = s;
	e->deadline_ms = deadline_ms;
	TAILQ_INSERT_TAIL(&s->entries, e, in_site);
	TAILQ_INSERT_TAIL(&q->entries, e, in_queue);
	q->n++;
	return true;
}

/* Turns are ordered by time, then by address, so that queue_next() can go on
 * behind one. */
static bool
comes_before(const struct queue_site *a, const struct queue_site *b)
{
	return a->turn != b->turn ? a->turn < b->turn : a < b;
}

struct queue_entry *
queue_next(struct queue *q, struct queue_entry *after)
{
	struct queue_site *s, *best = NULL;

	TAILQ_FOREACH (s, &q->sites, link) {
		if (TAILQ_EMPTY(&s->entries) ||
		    (after != NULL && !comes_before(after->site, s)))
			continue;
		if (best == NULL || comes_before(s, best))
			best = s;
	}
	return best == NULL ? NULL : TAILQ_FIRST(&best->entries);
}

/* Frees the sites that neither wait nor are ahead of the present. */
static void
forget(struct queue *q)
{
	struct queue_site *s, *next;

	for (s = TAILQ_FIRST(&q->sites); s != NULL; s = next) {
		next = TAILQ_NEXT(s, link);
		if (!TAILQ_EMPTY(&s->entries) || (q->n > 0 && s->turn > q->now))
			continue;
		TAILQ_REMOVE(&q->sites, s, link);
		free(s);
	}
}

void
queue_leave(struct queue *q, struct queue_entry *e, bool served)
{
	struct queue_site *s = e->site;

	if (served) {
		q->now = s->turn > q->now ? s->turn : q->now;
		s->turn += STEP / s->share;
	}
	TAILQ_REMOVE(&s->entries, e, in_site);
	TAILQ_REMOVE(&q->entries, e, in_queue);
	e->site = NULL;
	q->n--;
	forget(q);
}

struct queue_entry *
queue_expired(struct queue *q, int64_t now_ms)
{
	struct queue_entry *e = TAILQ_FIRST(&q->entries);

	return e != NULL && e->deadline_ms <= now_ms ? e : NULL;
}

uint32_t
queue_length(const struct queue *q)
{
	return q->n;
}
