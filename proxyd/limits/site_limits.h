/*
 * site_limits.h: the limits of a site, and what of them is used up, in memory
 * that all workers share: a row beside each account of the scoreboard, which
 * takes memory only where a limit was ever set.
 *
 * The follower says what is wanted when it compiles, so a change holds at
 * once, for responses under way and tunnels, too; sb_account.limits has a bit
 * for each limit that is on, which is all that a site without any costs.
 */
#ifndef MUSTER_SITE_LIMITS_H
#define MUSTER_SITE_LIMITS_H

#include <stdatomic.h>
#include <stdint.h>

#include "proxyd/limits/bucket.h"

struct scoreboard;
struct site;

/* As common/registry/sites.h has them (site_limits). */
enum limit {
	LIMIT_REQUESTS,
	LIMIT_CONNECTIONS,
	LIMIT_BANDWIDTH,
	LIMIT_CLIENT_REQUESTS,
	LIMIT_CLIENT_CONNECTIONS,
	LIMIT_CLIENT_BANDWIDTH,
	N_LIMITS
};

#define LIMIT_BIT(limit) (1U << (limit))
#define LIMITS_OF_CLIENTS                         \
	(LIMIT_BIT(LIMIT_CLIENT_REQUESTS) |       \
	    LIMIT_BIT(LIMIT_CLIENT_CONNECTIONS) | \
	    LIMIT_BIT(LIMIT_CLIENT_BANDWIDTH))
#define LIMITS_OF_BANDWIDTH \
	(LIMIT_BIT(LIMIT_BANDWIDTH) | LIMIT_BIT(LIMIT_CLIENT_BANDWIDTH))

struct site_limits {
	/* Wanted.  Of connections: the number is in step. */
	struct {
		_Atomic uint64_t step, whole_ns;
	} rates[N_LIMITS];
	_Atomic uint64_t buckets[N_LIMITS]; /* of all clients together */
	_Atomic uint64_t hits[N_LIMITS];    /* since they were set */
};

/* The follower's: what the site shall keep to from now on. */
void site_limits_set(const struct scoreboard *, uint32_t row,
    const struct site *);

/* A limit as it stands now. */
struct bucket_rate site_limits_rate(const struct site_limits *, enum limit);
uint32_t site_limits_most(const struct site_limits *, enum limit);

#endif
