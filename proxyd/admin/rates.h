/*
 * rates.h: what counters of the scoreboard say of just now: events a second
 * over the last few seconds, times over the last one to two minutes.
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

/* Within what 99 of 100 first bytes came; 0: none came. */
uint64_t rates_p99_us(const struct rates *, uint32_t target);

#endif
