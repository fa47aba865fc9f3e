/*
 * clients.h: what each client address uses of each site, in memory that all
 * workers share and whose size is fixed.
 *
 * A table of CLIENT_ROWS rows in sets of CLIENT_WAYS; a row's key is a SipHash
 * of site and address, whose own key is secret, so nobody can aim at a set.
 * IPv6 counts by /64: that much everybody has.  A client whom no row knows
 * takes the row of its set whose buckets have been full for longest: that row
 * says least.  A row in use (a cell of some worker is not 0) is never taken;
 * where all are in use, a client is not counted, and that is.
 *
 * What a worker holds stands in cells which only it writes, as those of the
 * scoreboard: no count outlives a crash.  Two workers that meet a new client
 * in the same instant may each let one request through.
 */
#ifndef MUSTER_CLIENTS_H
#define MUSTER_CLIENTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/base/addr.h"

#define CLIENT_ROWS (1U << 17)
#define CLIENT_WAYS 8
#define CLIENT_NONE UINT32_MAX

struct scoreboard;

struct client_row {
	_Atomic uint64_t key;		      /* 0: free */
	_Atomic uint64_t requests, bandwidth; /* buckets */
};

/* Site 0 is the proxy itself.  0: the peer has no address. */
uint64_t client_key(const struct scoreboard *, int64_t site,
    const struct addr *);

/* Holds one more for a client unless it holds `most` (0: no bound); exact
 * over workers, at the price that two at once may both be refused.  *row is
 * what is held; CLIENT_NONE: not counted. */
bool client_hold(const struct scoreboard *, uint32_t slot, uint64_t key,
    uint32_t most, uint32_t *row);
/* CLIENT_NONE is fine. */
void client_release(const struct scoreboard *, uint32_t slot, uint32_t row);

struct client_row *client_row(const struct scoreboard *, uint32_t row);
/* Held by all workers. */
uint32_t client_held(const struct scoreboard *, uint32_t row);

/* After a worker's end: what it held is free. */
void clients_heal(const struct scoreboard *, uint32_t slot);

#endif
