/* rates.c: see rates.h. */
#include "proxyd/admin/rates.h"

#include <stdlib.h>

#define WEIGHT	0.3  /* of the newest second */
#define NOTHING 0.01 /* an average never quite gets there */
#define MARK_MS 60000

struct rate {
	uint64_t last;
	double per_s;
};

/* The counts of a row at a moment. */
struct mark {
	int64_t node_id, role_id; /* whose row it was */
	uint64_t steps[SB_LATENCY_STEPS];
};

struct rates {
	const struct scoreboard *board;
	/* By row: what came before the window, and before the next one. */
	struct mark *before, *next;
	int64_t marked_ms;
	int64_t last_ms; /* 0: no tick yet */
	struct rate *requests, *connects;
};

static void tick(struct rate *, uint64_t now, double seconds);
static void mark_all(struct rates *);

struct rates *
rates_new(const struct scoreboard *board, struct err *e)
{
	struct rates *r = calloc(1, sizeof(*r));
	size_t n = board->head->n_targets;

	if (r != NULL) {
		r->board = board;
		r->requests = calloc(n, sizeof(*r->requests));
		r->connects = calloc(n, sizeof(*r->connects));
		r->before = calloc(n, sizeof(*r->before));
		r->next = calloc(n, sizeof(*r->next));
		if (r->requests != NULL && r->connects != NULL &&
		    r->before != NULL && r->next != NULL) {
			/* After an upgrade there is a past. */
			mark_all(r);
			mark_all(r);
			return r;
		}
	}
	rates_free(r);
	err_set(e, ERR_LOCAL, "out of memory for rates");
	return NULL;
}

void
rates_free(struct rates *r)
{
	if (r == NULL)
		return;
	free(r->requests);
	free(r->connects);
	free(r->before);
	free(r->next);
	free(r);
}

void
rates_tick(struct rates *r, int64_t now_ms)
{
	uint32_t n = atomic_load(&r->board->head->used_targets);
	double seconds = (double)(now_ms - r->last_ms) / 1000;

	for (uint32_t i = 0; i < n; i++) {
		const struct sb_target *t = sb_target(r->board, i);

		tick(&r->requests[i], atomic_load(&t->total),
		    r->last_ms != 0 ? seconds : 0);
		tick(&r->connects[i], atomic_load(&t->connects),
		    r->last_ms != 0 ? seconds : 0);
	}
	if (r->last_ms == 0)
		r->marked_ms = now_ms;
	if (now_ms - r->marked_ms >= MARK_MS) {
		mark_all(r);
		r->marked_ms = now_ms;
	}
	r->last_ms = now_ms;
}

double
rates_requests(const struct rates *r, uint32_t target)
{
	return r->requests[target].per_s;
}

double
rates_connects(const struct rates *r, uint32_t target)
{
	return r->connects[target].per_s;
}

uint64_t
rates_p99_us(const struct rates *r, uint32_t target)
{
	const struct sb_target *t = sb_target(r->board, target);
	const struct mark *m = &r->before[target];
	bool same = m->node_id == atomic_load(&t->node_id) &&
	    m->role_id == atomic_load(&t->role_id);
	uint64_t counts[SB_LATENCY_STEPS];

	for (unsigned i = 0; i < SB_LATENCY_STEPS; i++) {
		counts[i] = atomic_load(&t->steps[i]);
		/* Less: the node lost its role, and got it back. */
		if (same && counts[i] >= m->steps[i])
			counts[i] -= m->steps[i];
	}
	return sb_percentile(counts, 99);
}

/* The window begins where the last mark was; that of rows never used stays
 * untouched, and costs nothing. */
static void
mark_all(struct rates *r)
{
	uint32_t n = atomic_load(&r->board->head->used_targets);
	struct mark *oldest = r->before;

	r->before = r->next;
	r->next = oldest;
	for (uint32_t row = 0; row < n; row++) {
		struct sb_target *t = sb_target(r->board, row);
		struct mark *m = &r->next[row];

		m->node_id = atomic_load(&t->node_id);
		m->role_id = atomic_load(&t->role_id);
		for (unsigned i = 0; i < SB_LATENCY_STEPS; i++)
			m->steps[i] = atomic_load(&t->steps[i]);
	}
}

/* A row that changed hands counts from less than before: begin anew. */
static void
tick(struct rate *r, uint64_t now, double seconds)
{
	if (seconds <= 0 || now < r->last)
		r->per_s = 0;
	else
		r->per_s +=
		    WEIGHT * ((double)(now - r->last) / seconds - r->per_s);
	if (r->per_s < NOTHING)
		r->per_s = 0;
	r->last = now;
}
