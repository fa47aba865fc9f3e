/* rates.c: see rates.h. */
#include "proxyd/admin/rates.h"

#include <stdlib.h>

#define WEIGHT	0.3  /* of the newest second */
#define NOTHING 0.01 /* an average never quite gets there */

struct rate {
	uint64_t last;
	double per_s;
};

struct rates {
	const struct scoreboard *board;
	int64_t last_ms; /* 0: no tick yet */
	struct rate *requests, *connects;
};

static void tick(struct rate *, uint64_t now, double seconds);

struct rates *
rates_new(const struct scoreboard *board, struct err *e)
{
	struct rates *r = calloc(1, sizeof(*r));
	size_t n = board->head->n_targets;

	if (r != NULL) {
		r->board = board;
		r->requests = calloc(n, sizeof(*r->requests));
		r->connects = calloc(n, sizeof(*r->connects));
		if (r->requests != NULL && r->connects != NULL)
			return r;
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
