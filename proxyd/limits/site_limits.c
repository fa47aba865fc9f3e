/* site_limits.c: see site_limits.h. */
#include "proxyd/limits/site_limits.h"

#include <stddef.h>

#include "common/registry/sites.h"
#include "proxyd/process/scoreboard.h"

#define MS_NS	       1000000ULL
#define BANDWIDTH_MIN  (64 << 10) /* bytes at once, unless the site says so */
#define BANDWIDTH_PART 10	  /* of a second's, else */

/* Where a site keeps each. */
static const struct {
	size_t offset;
	enum { RATE, BYTES, COUNT } kind;
} wanted[N_LIMITS] = {
	[LIMIT_REQUESTS] = { offsetof(struct site, requests), RATE },
	[LIMIT_CONNECTIONS] = { offsetof(struct site, connections), COUNT },
	[LIMIT_BANDWIDTH] = { offsetof(struct site, bandwidth), BYTES },
	[LIMIT_CLIENT_REQUESTS] = { offsetof(struct site, client_requests),
	    RATE },
	[LIMIT_CLIENT_CONNECTIONS] = { offsetof(struct site,
					   client_connections),
	    COUNT },
	[LIMIT_CLIENT_BANDWIDTH] = { offsetof(struct site, client_bandwidth),
	    BYTES },
};

/* What may come at once is a whole period's, so that "600/m" is what one
 * thinks it is; of bytes a little, so that what is small is quick. */
static struct bucket_rate
rate_of(const struct rate *r, bool bytes)
{
	int64_t burst = r->burst != 0 ? r->burst : r->n;

	if (bytes && r->burst == 0) {
		burst /= BANDWIDTH_PART;
		if (burst < BANDWIDTH_MIN)
			burst = BANDWIDTH_MIN;
	}
	return bucket_rate((uint64_t)r->n, (uint64_t)r->per_ms * MS_NS,
	    (uint64_t)burst);
}

static struct bucket_rate
wanted_of(const struct site *site, enum limit l)
{
	const void *field = (const char *)site + wanted[l].offset;

	if (*(const int64_t *)field == 0)
		return (struct bucket_rate){ 0, 0 };
	if (wanted[l].kind == COUNT)
		return (struct bucket_rate){ .step = (uint64_t) *
			    (const int64_t *)field };
	return rate_of(field, wanted[l].kind == BYTES);
}

void
site_limits_set(const struct scoreboard *sb, uint32_t row,
    const struct site *site)
{
	struct sb_account *a = sb_account(sb, row);
	struct site_limits *s = sb_limits(sb, row);
	uint32_t was = atomic_load(&a->limits), on = 0;

	for (enum limit l = 0; l < N_LIMITS; l++)
		if (wanted_of(site, l).step != 0)
			on |= LIMIT_BIT(l);
	for (enum limit l = 0; on != 0 && l < N_LIMITS; l++) {
		struct bucket_rate r = wanted_of(site, l);

		/* Another site may have had the row. */
		if (was == 0)
			s->buckets[l] = s->hits[l] = 0;
		s->rates[l].step = r.step;
		s->rates[l].whole_ns = r.whole_ns;
	}
	if (on != was)
		atomic_store(&a->limits, on);
}

struct bucket_rate
site_limits_rate(const struct site_limits *s, enum limit l)
{
	return (struct bucket_rate){
		atomic_load_explicit(&s->rates[l].step, memory_order_relaxed),
		atomic_load_explicit(&s->rates[l].whole_ns,
		    memory_order_relaxed),
	};
}

uint32_t
site_limits_most(const struct site_limits *s, enum limit l)
{
	return (uint32_t)atomic_load_explicit(&s->rates[l].step,
	    memory_order_relaxed);
}
