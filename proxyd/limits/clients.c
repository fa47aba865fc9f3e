/*
 * clients.c: see clients.h.
 *
 * Keys below KEYS are marks of a worker that is changing the row: it is
 * nobody's until the mark is replaced.  A worker says in its own row which
 * one it changes, so that a mark does not outlive it.
 */
#include "proxyd/limits/clients.h"

#include <sodium.h>
#include <string.h>

#include "proxyd/process/scoreboard.h"

#define KEYS  4096 /* more than there are worker slots */
#define TRIES 8

static uint32_t find(const struct scoreboard *, uint32_t slot, uint64_t key);
static uint32_t find_known(const struct scoreboard *, uint64_t key);
static bool take_row(const struct scoreboard *, uint32_t slot, uint64_t key);

/* The first row of the key's set. */
static uint32_t
set_of(uint64_t key)
{
	return (uint32_t)(key >> 32) % (CLIENT_ROWS / CLIENT_WAYS) *
	    CLIENT_WAYS;
}

static bool
address_of(const struct addr *a, uint8_t bytes[16])
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

	memset(bytes, 0, 16);
	if (a->u.sa.sa_family == AF_INET) {
		memcpy(bytes, mapped, 12);
		memcpy(bytes + 12, &a->u.in.sin_addr, 4);
	} else if (a->u.sa.sa_family == AF_INET6) {
		const uint8_t *six = a->u.in6.sin6_addr.s6_addr;

		memcpy(bytes, six, memcmp(six, mapped, 12) == 0 ? 16 : 8);
	} else {
		return false;
	}
	return true;
}

uint64_t
client_key(const struct scoreboard *sb, int64_t site, const struct addr *a)
{
	uint8_t text[sizeof(site) + 16], hash[crypto_shorthash_BYTES];
	uint64_t key;

	memcpy(text, &site, sizeof(site));
	if (!address_of(a, text + sizeof(site)))
		return 0;
	crypto_shorthash(hash, text, sizeof(text), sb->head->client_secret);
	memcpy(&key, hash, sizeof(key));
	return key < KEYS ? key + KEYS : key;
}

/* --- places */

/* Only this worker writes its cells. */
static void
count(_Atomic uint16_t *cell, int by)
{
	int n = atomic_load_explicit(cell, memory_order_relaxed);

	atomic_store_explicit(cell, (uint16_t)(n + by), memory_order_relaxed);
}

bool
client_hold(const struct scoreboard *sb, uint32_t slot, uint64_t key,
    uint32_t most, uint32_t *row)
{
	_Atomic uint16_t *cells = sb_client_cells(sb, slot);

	for (int i = 0; i < TRIES; i++) {
		uint32_t r = find(sb, slot, key);

		if (r == CLIENT_NONE)
			break;
		count(&cells[r], 1);
		/* Whoever takes a row looks at its cells after the mark; we
		 * look at its key after the cell.  One of us sees the other. */
		atomic_thread_fence(memory_order_seq_cst);
		if (client_row(sb, r)->key != key) {
			count(&cells[r], -1);
			continue;
		}
		if (most != 0 && client_held(sb, r) > most) {
			count(&cells[r], -1);
			return false;
		}
		*row = r;
		return true;
	}
	sb_add(&sb_worker(sb, slot)->uncounted, 1);
	*row = CLIENT_NONE;
	return true;
}

void
client_release(const struct scoreboard *sb, uint32_t slot, uint32_t row)
{
	if (row != CLIENT_NONE)
		count(&sb_client_cells(sb, slot)[row], -1);
}

struct client_row *
client_row(const struct scoreboard *sb, uint32_t row)
{
	return sb_clients(sb) + row;
}

uint32_t
client_held(const struct scoreboard *sb, uint32_t row)
{
	uint32_t n =
	    atomic_load_explicit(&sb->head->used_slots, memory_order_relaxed);
	uint32_t sum = 0;

	for (uint32_t i = 0; i < n; i++)
		sum += atomic_load_explicit(&sb_client_cells(sb, i)[row],
		    memory_order_relaxed);
	return sum;
}

void
clients_heal(const struct scoreboard *sb, uint32_t slot)
{
	uint32_t changed = sb_worker(sb, slot)->client_changed;
	uint64_t mark = slot + 1;

	memset((void *)sb_client_cells(sb, slot), 0,
	    CLIENT_ROWS * sizeof(uint16_t));
	if (changed != 0)
		atomic_compare_exchange_strong(&client_row(sb, changed - 1)
						    ->key,
		    &mark, 0);
}

/* --- rows */

static uint32_t
find(const struct scoreboard *sb, uint32_t slot, uint64_t key)
{
	for (int i = 0; i < TRIES; i++) {
		uint32_t row = find_known(sb, key);

		if (row != CLIENT_NONE || !take_row(sb, slot, key))
			return row;
		/* Two workers may have taken one each: the first is it. */
	}
	return CLIENT_NONE;
}

static uint32_t
find_known(const struct scoreboard *sb, uint64_t key)
{
	uint32_t first = set_of(key);

	for (uint32_t r = first; r < first + CLIENT_WAYS; r++)
		if (atomic_load_explicit(&client_row(sb, r)->key,
			memory_order_acquire) == key)
			return r;
	return CLIENT_NONE;
}

/* Whether another worker is just changing it. */
static bool
is_mark(uint64_t key)
{
	return key != 0 && key < KEYS;
}

/* When a row's buckets are full again: then it says nothing any more. */
static uint64_t
full_at(const struct client_row *row)
{
	uint64_t a = atomic_load_explicit(&row->requests, memory_order_relaxed);
	uint64_t b =
	    atomic_load_explicit(&row->bandwidth, memory_order_relaxed);

	return a > b ? a : b;
}

/* The row of the set that may be another client's from now on. */
static uint32_t
choose(const struct scoreboard *sb, uint64_t key)
{
	uint32_t first = set_of(key), best = CLIENT_NONE;
	uint64_t best_at = UINT64_MAX;

	for (uint32_t r = first; r < first + CLIENT_WAYS; r++) {
		const struct client_row *row = client_row(sb, r);
		uint64_t has = row->key, at = full_at(row);

		if (has == 0)
			return r;
		if (at < best_at && !is_mark(has) && client_held(sb, r) == 0) {
			best = r;
			best_at = at;
		}
	}
	return best;
}

/* False: all of the set are in use. */
static bool
take_row(const struct scoreboard *sb, uint32_t slot, uint64_t key)
{
	struct sb_worker *us = sb_worker(sb, slot);
	uint32_t r = choose(sb, key);
	struct client_row *row;
	uint64_t was;

	if (r == CLIENT_NONE)
		return false;
	row = client_row(sb, r);
	was = row->key;
	us->client_changed = r + 1;
	if (!is_mark(was) &&
	    atomic_compare_exchange_strong(&row->key, &was, slot + 1)) {
		atomic_thread_fence(memory_order_seq_cst);
		if (client_held(sb, r) != 0) {
			row->key = was; /* just now it was needed again */
		} else {
			row->requests = row->bandwidth = 0;
			row->key = key;
		}
	}
	us->client_changed = 0;
	return true;
}
