/*
 * rates.h: counters of the scoreboard as events a second, over the last few
 * seconds.
 */
#ifndef MUSTER_RATES_H
#define MUSTER_RATES_H

#include "proxyd/process/scoreboard.h"

struct rates;

struct rates *rates_new(const struct scoreboard *, struct err *);
void rates_free(struct rates *);

/* Once a second. */
void rates_tick(struct rates *, int64_t now_ms);

/* Of one target: requests and new connections a second. */
double rates_requests(const struct rates *, uint32_t target);
double rates_connects(const struct rates *, uint32_t target);

#endif
