/*
 * scoreboard.c: see scoreboard.h.
 *
 * The mapping: head, worker rows, target rows, account rows, two open
 * addressing indexes (row numbers plus one) that only the master reads; then
 * limits: a row an account, the clients, and each slot's cells of both.
 */
#include "proxyd/process/scoreboard.h"

#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "common/base/io.h"
#include "proxyd/limits/clients.h"
#include "proxyd/limits/site_limits.h"

#define MAGIC "mstrbord" /* 8 bytes, no NUL */
#define LINE  64	 /* bytes of a cache line */

static int map(struct scoreboard *, uint64_t size, struct err *);
static bool sound(const struct sb_head *, uint64_t size);

static uint64_t
lines(uint64_t n)
{
	return (n + LINE - 1) / LINE * LINE;
}

static uint32_t
index_size(uint32_t rows)
{
	uint32_t n = 16;

	while (n < rows * 2)
		n *= 2;
	return n;
}

/* Where the tables stand. */
static uint64_t
workers_at(void)
{
	return lines(sizeof(struct sb_head));
}

static uint64_t
indexes_at(const struct sb_head *h)
{
	return h->accounts_at + (uint64_t)h->n_accounts * h->account_size;
}

static uint64_t
limits_at(const struct sb_head *h)
{
	uint64_t n =
	    (uint64_t)index_size(h->n_targets) + index_size(h->n_accounts);

	return lines(indexes_at(h) + n * sizeof(uint32_t));
}

static uint64_t
clients_at(const struct sb_head *h)
{
	return limits_at(h) + (uint64_t)h->n_accounts * h->limits_size;
}

/* A slot's cells: of sites, then of clients. */
static uint64_t
cells_at(const struct sb_head *h, uint32_t slot)
{
	uint64_t sites = lines(h->n_accounts * sizeof(uint32_t));

	return clients_at(h) + CLIENT_ROWS * sizeof(struct client_row) +
	    slot * (sites + CLIENT_ROWS * sizeof(uint16_t));
}

static void
set_sizes(struct sb_head *h, uint32_t n_slots, uint32_t n_targets,
    uint32_t n_accounts)
{
	uint32_t cells = n_slots * (uint32_t)sizeof(uint32_t);

	memcpy(h->magic, MAGIC, sizeof(h->magic));
	h->version = SB_VERSION;
	h->n_slots = n_slots;
	h->n_targets = n_targets;
	h->n_accounts = n_accounts;
	h->worker_size = (uint32_t)lines(sizeof(struct sb_worker));
	h->target_size = (uint32_t)lines(sizeof(struct sb_target) + 2 * cells);
	h->account_size = (uint32_t)lines(sizeof(struct sb_account) + cells);
	h->limits_size = (uint32_t)lines(sizeof(struct site_limits));
	h->targets_at = workers_at() + (uint64_t)n_slots * h->worker_size;
	h->accounts_at = h->targets_at + (uint64_t)n_targets * h->target_size;
	h->size = cells_at(h, n_slots);
}

int
scoreboard_create(struct scoreboard *sb, uint32_t n_slots, uint32_t n_targets,
    uint32_t n_accounts, struct err *e)
{
	struct scoreboard s = { NULL, -1 };
	struct sb_head h = { 0 };

	if (n_slots == 0 || n_slots > 1024 || n_targets > 1 << 20 ||
	    n_accounts > 1 << 24)
		return err_set(e, ERR_LOCAL,
		    "a scoreboard of %u workers, %u "
		    "targets, %u accounts is too large",
		    n_slots, n_targets, n_accounts);
	set_sizes(&h, n_slots, n_targets, n_accounts);
	if (getrandom(h.client_secret, sizeof(h.client_secret), 0) == -1)
		return err_errno(e, ERR_LOCAL, "no random bytes");
	if ((s.fd = memfd_create("muster-scoreboard", MFD_CLOEXEC)) == -1 ||
	    ftruncate(s.fd, (off_t)h.size) == -1) {
		err_errno(e, ERR_LOCAL, "cannot make the scoreboard");
		io_close(&s.fd);
		return -1;
	}
	if (map(&s, h.size, e) == -1) {
		io_close(&s.fd);
		return -1;
	}
	*s.head = h;
	*sb = s;
	return 0;
}

int
scoreboard_map(struct scoreboard *sb, int fd, struct err *e)
{
	struct scoreboard s = { NULL, fd };
	struct stat st;

	if (fstat(fd, &st) == -1) {
		err_errno(e, ERR_LOCAL, "cannot stat the scoreboard");
		goto fail;
	}
	if ((size_t)st.st_size < sizeof(struct sb_head)) {
		err_set(e, ERR_VERSION, "the scoreboard is cut off");
		goto fail;
	}
	if (map(&s, (uint64_t)st.st_size, e) == -1)
		goto fail;
	if (!sound(s.head, (uint64_t)st.st_size)) {
		munmap(s.head, (size_t)st.st_size);
		err_set(e, ERR_VERSION, "the scoreboard is not of version %d",
		    SB_VERSION);
		goto fail;
	}
	*sb = s;
	return 0;
fail:
	close(fd);
	return -1;
}

void
scoreboard_unmap(struct scoreboard *sb)
{
	if (sb->head != NULL)
		munmap(sb->head, sb->head->size);
	sb->head = NULL;
	io_close(&sb->fd);
}

struct sb_worker *
sb_worker(const struct scoreboard *sb, uint32_t slot)
{
	return (void *)((char *)sb->head + workers_at() +
	    (uint64_t)slot * sb->head->worker_size);
}

/* --- limits */

struct site_limits *
sb_limits(const struct scoreboard *sb, uint32_t row)
{
	return (void *)((char *)sb->head + limits_at(sb->head) +
	    (uint64_t)row * sb->head->limits_size);
}

_Atomic uint32_t *
sb_limit_cell(const struct scoreboard *sb, uint32_t slot, uint32_t row)
{
	_Atomic uint32_t *cells =
	    (void *)((char *)sb->head + cells_at(sb->head, slot));

	return cells + row;
}

struct client_row *
sb_clients(const struct scoreboard *sb)
{
	return (void *)((char *)sb->head + clients_at(sb->head));
}

_Atomic uint16_t *
sb_client_cells(const struct scoreboard *sb, uint32_t slot)
{
	return (void *)((char *)sb->head + cells_at(sb->head, slot) +
	    lines(sb->head->n_accounts * sizeof(uint32_t)));
}

uint32_t
sb_limit_used(const struct scoreboard *sb, uint32_t row)
{
	uint32_t n =
	    atomic_load_explicit(&sb->head->used_slots, memory_order_relaxed);
	uint32_t sum = 0;

	for (uint32_t i = 0; i < n; i++)
		sum += atomic_load_explicit(sb_limit_cell(sb, i, row),
		    memory_order_relaxed);
	return sum;
}

/* --- rows: found by an index with open addressing, taken from those given
 * back or from the end */

struct key {
	int64_t a, b; /* node and role; kind and id */
};

/* What targets and accounts differ in. */
struct table {
	uint32_t *slots, mask; /* the index: rows plus one, 0: free */
	_Atomic uint32_t *used;
	uint32_t room, *free;
	struct key (*key)(const struct scoreboard *, uint32_t row);
	uint32_t (*set)(const struct scoreboard *, uint32_t row, struct key,
	    uint32_t next_free); /* returns the former next_free */
};

static struct key
target_key(const struct scoreboard *sb, uint32_t row)
{
	struct sb_target *t = sb_target(sb, row);

	return (struct key){ t->node_id, t->role_id };
}

static uint32_t
target_set(const struct scoreboard *sb, uint32_t row, struct key k,
    uint32_t next_free)
{
	struct sb_target *t = sb_target(sb, row);
	uint32_t was = t->next_free;

	memset((void *)t, 0, sb->head->target_size);
	t->next_free = next_free;
	t->node_id = k.a;
	t->role_id = k.b;
	return was;
}

static struct key
account_key(const struct scoreboard *sb, uint32_t row)
{
	struct sb_account *a = sb_account(sb, row);

	return (struct key){ a->kind, a->id };
}

static uint32_t
account_set(const struct scoreboard *sb, uint32_t row, struct key k,
    uint32_t next_free)
{
	struct sb_account *a = sb_account(sb, row);
	uint32_t was = a->next_free;

	memset((void *)a, 0, sb->head->account_size);
	a->next_free = next_free;
	a->id = k.b;
	a->kind = (uint32_t)k.a;
	return was;
}

static struct table
targets(const struct scoreboard *sb)
{
	struct sb_head *h = sb->head;

	return (struct table){
		.slots = (void *)((char *)h + indexes_at(h)),
		.mask = index_size(h->n_targets) - 1,
		.used = &h->used_targets,
		.room = h->n_targets,
		.free = &h->free_targets,
		.key = target_key,
		.set = target_set,
	};
}

static struct table
accounts(const struct scoreboard *sb)
{
	struct sb_head *h = sb->head;
	uint32_t *slots = (void *)((char *)h + indexes_at(h));

	return (struct table){
		.slots = slots + index_size(h->n_targets),
		.mask = index_size(h->n_accounts) - 1,
		.used = &h->used_accounts,
		.room = h->n_accounts,
		.free = &h->free_accounts,
		.key = account_key,
		.set = account_set,
	};
}

static uint32_t
home(const struct table *t, struct key k)
{
	uint64_t h = (uint64_t)k.a * 0x9e3779b97f4a7c15 ^
	    (uint64_t)k.b * 0xc2b2ae3d27d4eb4f;

	h ^= h >> 29;
	return (uint32_t)(h * 0x9e3779b97f4a7c15 >> 32) & t->mask;
}

/* The slot with the key, or the free one where it belongs. */
static uint32_t
slot_of(const struct scoreboard *sb, const struct table *t, struct key k)
{
	uint32_t i = home(t, k);

	for (; t->slots[i] != 0; i = (i + 1) & t->mask) {
		struct key other = t->key(sb, t->slots[i] - 1);

		if (other.a == k.a && other.b == k.b)
			break;
	}
	return i;
}

static uint32_t
take_row(struct scoreboard *sb, struct table t, struct key k)
{
	uint32_t i = slot_of(sb, &t, k), row;

	if (t.slots[i] != 0)
		return t.slots[i] - 1;
	if (*t.free != 0) {
		row = *t.free - 1;
		*t.free = t.set(sb, row, k, 0);
	} else if (*t.used < t.room) {
		row = (*t.used)++;
		t.set(sb, row, k, 0);
	} else {
		return SB_NONE;
	}
	t.slots[i] = row + 1;
	return row;
}

/* What stands behind a freed slot moves up, if it may stand there. */
static void
close_gap(const struct scoreboard *sb, const struct table *t, uint32_t gap)
{
	uint32_t i = gap;

	t->slots[gap] = 0;
	for (;;) {
		uint32_t from;

		i = (i + 1) & t->mask;
		if (t->slots[i] == 0)
			return;
		from = home(t, t->key(sb, t->slots[i] - 1));
		if (((i - from) & t->mask) < ((i - gap) & t->mask))
			continue;
		t->slots[gap] = t->slots[i];
		t->slots[i] = 0;
		gap = i;
	}
}

static void
give_row(struct scoreboard *sb, struct table t, uint32_t row)
{
	struct key k = t.key(sb, row);

	if (k.a == 0 && k.b == 0)
		return; /* free already */
	close_gap(sb, &t, slot_of(sb, &t, k));
	t.set(sb, row, (struct key){ 0, 0 }, *t.free);
	*t.free = row + 1;
}

uint32_t
sb_target_row(struct scoreboard *sb, int64_t node_id, int64_t role_id)
{
	return take_row(sb, targets(sb), (struct key){ node_id, role_id });
}

uint32_t
sb_account_row(struct scoreboard *sb, enum sb_account_kind kind, int64_t id)
{
	return take_row(sb, accounts(sb), (struct key){ kind, id });
}

bool
sb_target_forget(struct scoreboard *sb, uint32_t row)
{
	struct sb_target *t = sb_target(sb, row);

	if (sb_active(sb, t->active) > 0 || sb_active(sb, sb_conns(sb, t)) > 0)
		return false;
	give_row(sb, targets(sb), row);
	return true;
}

bool
sb_account_forget(struct scoreboard *sb, uint32_t row)
{
	struct sb_account *a = sb_account(sb, row);

	if (sb_active(sb, a->active) > 0 ||
	    (a->limits != 0 && sb_limit_used(sb, row) > 0))
		return false;
	give_row(sb, accounts(sb), row);
	return true;
}

/* Plus one, so that a new row differs from every state. */
void
sb_want(struct sb_target *t, uint32_t state, int64_t now_ms)
{
	if (atomic_exchange(&t->wanted, state + 1) != state + 1)
		atomic_store(&t->since_ms, now_ms);
}

uint32_t
sb_slot_take(struct scoreboard *sb, int32_t pid, int64_t now_ms)
{
	for (uint32_t slot = 0; slot < sb->head->n_slots; slot++) {
		struct sb_worker *w = sb_worker(sb, slot);

		if (w->state != SB_FREE)
			continue;
		memset((void *)w, 0, sizeof(*w));
		w->pid = pid;
		w->started_ms = w->beat_ms = now_ms;
		if (sb->head->used_slots <= slot)
			sb->head->used_slots = slot + 1;
		w->state = SB_STARTING;
		return slot;
	}
	return SB_NONE;
}

void
sb_slot_heal(struct scoreboard *sb, uint32_t slot)
{
	for (uint32_t i = 0; i < sb->head->used_targets; i++) {
		sb_target(sb, i)->active[slot] = 0;
		sb_conns(sb, sb_target(sb, i))[slot] = 0;
	}
	for (uint32_t i = 0; i < sb->head->used_accounts; i++)
		sb_account(sb, i)->active[slot] = 0;
	memset((void *)sb_limit_cell(sb, slot, 0), 0,
	    sb->head->used_accounts * sizeof(uint32_t));
	clients_heal(sb, slot);
	sb_worker(sb, slot)->state = SB_FREE;
}

/* --- counting */

void
sb_hold(_Atomic uint32_t *cells, uint32_t slot)
{
	uint32_t n = atomic_load_explicit(&cells[slot], memory_order_relaxed);

	atomic_store_explicit(&cells[slot], n + 1, memory_order_relaxed);
}

void
sb_release(_Atomic uint32_t *cells, uint32_t slot)
{
	uint32_t n = atomic_load_explicit(&cells[slot], memory_order_relaxed);

	atomic_store_explicit(&cells[slot], n - 1, memory_order_relaxed);
}

uint32_t
sb_active(const struct scoreboard *sb, _Atomic uint32_t *cells)
{
	uint32_t n =
	    atomic_load_explicit(&sb->head->used_slots, memory_order_relaxed);
	uint32_t sum = 0;

	for (uint32_t i = 0; i < n; i++)
		sum += atomic_load_explicit(&cells[i], memory_order_relaxed);
	return sum;
}

bool
sb_hold_below(const struct scoreboard *sb, _Atomic uint32_t *cells,
    uint32_t slot, uint32_t max)
{
	sb_hold(cells, slot);
	if (max == 0)
		return true;
	/* Ours must be seen before we look at the others', or two workers
	 * could both take the last place. */
	atomic_thread_fence(memory_order_seq_cst);
	if (sb_active(sb, cells) <= max)
		return true;
	sb_release(cells, slot);
	return false;
}

_Atomic uint32_t *
sb_conns(const struct scoreboard *sb, struct sb_target *t)
{
	return t->active + sb->head->n_slots;
}

void
sb_plead(struct sb_target *t)
{
	atomic_fetch_add_explicit(&t->pleas, 1, memory_order_relaxed);
}

bool
sb_hear(struct sb_target *t)
{
	uint32_t n = atomic_load_explicit(&t->pleas, memory_order_relaxed);

	while (n > 0)
		if (atomic_compare_exchange_weak_explicit(&t->pleas, &n, n - 1,
			memory_order_relaxed, memory_order_relaxed))
			return true;
	return false;
}

/* Four steps an octave: the top bits of us / 16. */
static unsigned
step_of(uint64_t us)
{
	unsigned octave, step;

	if (us < 16)
		return 0;
	octave = 63 - (unsigned)__builtin_clzll(us);
	step = (octave - 4) * 4 + (unsigned)(us >> (octave - 2) & 3) + 1;
	return step < SB_LATENCY_STEPS ? step : SB_LATENCY_STEPS - 1;
}

/* The upper end of a step. */
static uint64_t
step_us(unsigned step)
{
	if (step == 0)
		return 16;
	return (uint64_t)(5 + (step - 1) % 4) << (step - 1) / 4 << 2;
}

void
sb_latency(struct sb_target *t, uint64_t us)
{
	uint32_t average =
	    atomic_load_explicit(&t->average_us, memory_order_relaxed);
	uint32_t now = us < UINT32_MAX ? (uint32_t)us : UINT32_MAX;

	/* Moves by 1/16 of the difference. */
	average = average == 0 ? now : average - average / 16 + now / 16;
	atomic_store_explicit(&t->average_us, average, memory_order_relaxed);
	sb_add(&t->latency_us, us);
	sb_add(&t->steps[step_of(us)], 1);
}

uint64_t
sb_percentile(const uint64_t counts[SB_LATENCY_STEPS], unsigned percent)
{
	uint64_t all = 0, below = 0, wanted;

	for (unsigned i = 0; i < SB_LATENCY_STEPS; i++)
		all += counts[i];
	if (all == 0)
		return 0;
	wanted = (all * percent + 99) / 100;
	for (unsigned i = 0; i < SB_LATENCY_STEPS; i++)
		if ((below += counts[i]) >= wanted)
			return step_us(i);
	return step_us(SB_LATENCY_STEPS - 1);
}

static int
map(struct scoreboard *sb, uint64_t size, struct err *e)
{
	void *p =
	    mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, sb->fd, 0);

	if (p == MAP_FAILED)
		return err_errno(e, ERR_LOCAL, "cannot map the scoreboard");
	sb->head = p;
	return 0;
}

/* Whether a predecessor's has the very layout this binary would make. */
static bool
sound(const struct sb_head *h, uint64_t size)
{
	struct sb_head want = { 0 };

	if (memcmp(h->magic, MAGIC, sizeof(h->magic)) != 0 ||
	    h->version != SB_VERSION || h->n_slots == 0 || h->n_slots > 1024 ||
	    h->n_targets > 1 << 20 || h->n_accounts > 1 << 24)
		return false;
	set_sizes(&want, h->n_slots, h->n_targets, h->n_accounts);
	return want.size == h->size && h->size == size &&
	    want.worker_size == h->worker_size &&
	    want.target_size == h->target_size &&
	    want.account_size == h->account_size &&
	    want.limits_size == h->limits_size &&
	    want.targets_at == h->targets_at &&
	    want.accounts_at == h->accounts_at && h->used_slots <= h->n_slots &&
	    h->used_targets <= h->n_targets &&
	    h->used_accounts <= h->n_accounts;
}
