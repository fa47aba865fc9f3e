/*
 * scoreboard.h: what moves, in memory shared by the master and all workers.
 *
 * Targets are nodes in a role: health, counts, latency.  A role has a row of
 * its own (node 0), where the requests in its queue are counted.  Accounts
 * are sites and owners, keyed by their registry ids.  Workers have a row each.
 *
 * The master gives out rows and names them in the snapshot; workers only
 * count.  What a worker holds just now (active requests) stands in a cell of
 * its own per row, which only it writes; the sum over the cells is the whole.
 * So no count can leak: when a worker dies its cells are zeroed.  Everything
 * else only grows, by relaxed atomic additions.
 */
#ifndef MUSTER_SCOREBOARD_H
#define MUSTER_SCOREBOARD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"
#include "proxyd/process/why.h"
#include "proxyd/tls/failure.h"

#define SB_VERSION	 3
#define SB_LATENCY_STEPS 96 /* a quarter of an octave each, from 16 us */
#define SB_NONE		 UINT32_MAX

enum sb_health { SB_UNKNOWN, SB_UP, SB_DOWN };

/* One node in one role, or a role's queue. */
struct sb_target {
	_Atomic int64_t node_id, role_id; /* 0, 0: a free row */
	uint32_t next_free;		  /* row plus one; the master's */
	/* Health: checks are the master's, ejection any worker's. */
	_Atomic uint32_t health;    /* enum sb_health, by active checks */
	_Atomic uint32_t why;	    /* enum why: of the state */
	_Atomic uint32_t wanted;    /* by the administrator: see sb_want() */
	_Atomic int64_t since_ms;   /* monotonic: when it changed */
	_Atomic int64_t up_ms;	    /* slow start counts from here */
	_Atomic int64_t ejected_ms; /* ejected until; 0: not */
	_Atomic uint32_t ejections; /* in a row: the time doubles */
	_Atomic uint32_t failures;  /* in a row, reset by a success */
	/* Counters. */
	_Atomic uint64_t total, failed, retried, connects;
	_Atomic uint64_t bytes_in, bytes_out; /* from, to the node */
	_Atomic uint64_t latency_us;	      /* sum over `total` - `failed` */
	_Atomic uint32_t average_us; /* moving; lossy between workers */
	_Atomic uint64_t steps[SB_LATENCY_STEPS];
	_Atomic uint32_t pleas;	   /* see sb_plead() */
	_Atomic uint32_t active[]; /* a cell each worker slot */
	/* Behind them as many of open connections: see sb_conns(). */
};

enum sb_account_kind { SB_SITE = 1, SB_OWNER = 2 };

struct sb_account {
	_Atomic int64_t id;
	_Atomic uint32_t kind;	  /* 0: a free row */
	uint32_t next_free;	  /* row plus one; the master's */
	_Atomic uint32_t limits;  /* LIMIT_BIT()s that are on: site_limits.h */
	_Atomic uint64_t limited; /* requests they refused */
	_Atomic uint64_t tunnels; /* opened */
	_Atomic uint64_t requests, bytes_in, bytes_out, node_us;
	_Atomic uint64_t status[6]; /* [n]: nxx; [0]: none was sent */
	_Atomic uint32_t active[];
};

enum sb_worker_state { SB_FREE, SB_STARTING, SB_SERVING, SB_DRAINING };

struct sb_worker {
	_Atomic int32_t pid;
	_Atomic uint32_t state;		     /* enum sb_worker_state */
	_Atomic int64_t started_ms, beat_ms; /* monotonic */
	_Atomic int64_t revision;	     /* of its snapshot */
	_Atomic uint32_t clients, exchanges, tunnels, node_conns;
	_Atomic uint32_t queued;
	/* Exchanges without a node: bodies that are collected, responses that
	 * slow clients still take. */
	_Atomic uint32_t collecting, delivering;
	_Atomic uint64_t spool_used;		   /* bytes on disk */
	_Atomic uint64_t spool_full, spool_errors; /* times */
	_Atomic uint64_t accepted, requests, retries;
	_Atomic uint64_t log_dropped;
	_Atomic uint64_t refused;   /* connections: a client had too many */
	_Atomic uint64_t uncounted; /* clients for whom clients.h had no row */
	_Atomic uint32_t client_changed;      /* row plus one: clients.c */
	_Atomic uint64_t bytes_in, bytes_out; /* from, to clients */
	/* Answers compressed, their bytes before and after, and those that
	 * were not for want of memory. */
	_Atomic uint64_t compressed, compress_in, compress_out, compress_full;
	_Atomic uint64_t compress_held; /* bytes of memory, just now */
	_Atomic uint64_t why[WHY_N];
	_Atomic uint32_t tls_handshaking; /* just now */
	_Atomic uint64_t tls_handshakes, tls_resumed;
	_Atomic uint64_t tls_failed[TLS_FAILURES];
};

struct sb_head {
	char magic[8];
	uint32_t version;
	uint32_t n_slots, n_targets, n_accounts; /* capacities */
	_Atomic uint32_t used_slots; /* no slot at or above was ever used */
	_Atomic uint32_t used_targets, used_accounts;
	uint32_t free_targets, free_accounts; /* row plus one; 0: none */
	uint32_t target_size, account_size, worker_size; /* strides */
	uint32_t limits_size;
	uint64_t targets_at, accounts_at; /* from here */
	uint64_t size;
	uint8_t client_secret[16]; /* of the keys in clients.h */
};

struct scoreboard {
	struct sb_head *head;
	int fd; /* the memfd, to hand over in an upgrade */
};

/* A new one (memfd, close-on-exec), with room for so many of each.  Memory is
 * only taken by rows in use. */
int scoreboard_create(struct scoreboard *, uint32_t n_slots, uint32_t n_targets,
    uint32_t n_accounts, struct err *);

/* Maps one from a predecessor; fd is taken.  ERR_VERSION: make a new one. */
int scoreboard_map(struct scoreboard *, int fd, struct err *);
void scoreboard_unmap(struct scoreboard *);

/* --- rows by number (not SB_NONE) */
static inline struct sb_target *
sb_target(const struct scoreboard *sb, uint32_t row)
{
	struct sb_head *h = sb->head;

	return (struct sb_target *)(void *)((char *)h + h->targets_at +
	    (uint64_t)row * h->target_size);
}

static inline struct sb_account *
sb_account(const struct scoreboard *sb, uint32_t row)
{
	struct sb_head *h = sb->head;

	return (struct sb_account *)(void *)((char *)h + h->accounts_at +
	    (uint64_t)row * h->account_size);
}

struct sb_worker *sb_worker(const struct scoreboard *, uint32_t slot);

/* --- beside them: limits.  A site's, by the row of its account; what a slot
 * uses of it; the table of clients, and what a slot uses of those. */
struct site_limits *sb_limits(const struct scoreboard *, uint32_t row);
_Atomic uint32_t *sb_limit_cell(const struct scoreboard *, uint32_t slot,
    uint32_t row);
struct client_row *sb_clients(const struct scoreboard *);
_Atomic uint16_t *sb_client_cells(const struct scoreboard *, uint32_t slot);

/* What all workers use of a site with limits. */
uint32_t sb_limit_used(const struct scoreboard *, uint32_t row);

/* --- the master's part: rows are found or taken; SB_NONE when full */
uint32_t sb_target_row(struct scoreboard *, int64_t node_id, int64_t role_id);
uint32_t sb_account_row(struct scoreboard *, enum sb_account_kind, int64_t id);
/* Gives a row back for another key, once nobody holds anything there. */
bool sb_target_forget(struct scoreboard *, uint32_t row);
bool sb_account_forget(struct scoreboard *, uint32_t row);

/* What the administrator wants of a node (enum snap_node_state): since when
 * is remembered. */
void sb_want(struct sb_target *, uint32_t state, int64_t now_ms);

uint32_t sb_slot_take(struct scoreboard *, int32_t pid, int64_t now_ms);
/* After a worker's end: zeroes what it held and frees its slot. */
void sb_slot_heal(struct scoreboard *, uint32_t slot);

/* --- the workers' part */
void sb_hold(_Atomic uint32_t *cells, uint32_t slot);
void sb_release(_Atomic uint32_t *cells, uint32_t slot);
/* The sum over all workers. */
uint32_t sb_active(const struct scoreboard *, _Atomic uint32_t *cells);
/* Holds one more unless `max` (0: no bound) are held; exact over workers, at
 * the price that two at once may both be refused. */
bool sb_hold_below(const struct scoreboard *, _Atomic uint32_t *cells,
    uint32_t slot, uint32_t max);

/* The cells of the connections to a node that are open, idle or not. */
_Atomic uint32_t *sb_conns(const struct scoreboard *, struct sb_target *);

/*
 * A node that does so many things at a time may keep one busy with each idle
 * connection, and then nobody takes ours.  Whoever opens one more than it has
 * room for pleads; whoever holds an idle one and hears it gives that up.
 */
void sb_plead(struct sb_target *);
bool sb_hear(struct sb_target *);

/* A response's first byte came after `us`. */
void sb_latency(struct sb_target *, uint64_t us);
/* The time `percent` of `counts` were within, in us. */
uint64_t sb_percentile(const uint64_t counts[SB_LATENCY_STEPS],
    unsigned percent);

static inline void
sb_add(_Atomic uint64_t *counter, uint64_t n)
{
	atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}

#endif
