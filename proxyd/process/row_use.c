/* row_use.c: see row_use.h. */
#include "proxyd/process/row_use.h"

#include <stdlib.h>
#include <string.h>

struct row_use {
	struct scoreboard *board;
	uint8_t *targets, *accounts; /* a byte a row: named */
};

static bool all_at(const struct scoreboard *, int64_t revision);

struct row_use *
row_use_new(struct scoreboard *board, struct err *e)
{
	struct row_use *u = calloc(1, sizeof(*u));

	if (u != NULL) {
		u->board = board;
		u->targets = calloc(board->head->n_targets, 1);
		u->accounts = calloc(board->head->n_accounts, 1);
		if (u->targets != NULL && u->accounts != NULL)
			return u;
	}
	row_use_free(u);
	err_set(e, ERR_LOCAL, "out of memory for scoreboard rows");
	return NULL;
}

void
row_use_free(struct row_use *u)
{
	if (u == NULL)
		return;
	free(u->targets);
	free(u->accounts);
	free(u);
}

void
row_use_begin(struct row_use *u)
{
	memset(u->targets, 0, u->board->head->n_targets);
	memset(u->accounts, 0, u->board->head->n_accounts);
}

void
row_use_target(struct row_use *u, uint32_t row)
{
	if (row != SB_NONE)
		u->targets[row] = 1;
}

void
row_use_account(struct row_use *u, uint32_t row)
{
	if (row != SB_NONE)
		u->accounts[row] = 1;
}

void
row_use_sweep(struct row_use *u, int64_t revision)
{
	struct scoreboard *sb = u->board;
	uint32_t n_targets = atomic_load(&sb->head->used_targets);
	uint32_t n_accounts = atomic_load(&sb->head->used_accounts);

	if (!all_at(sb, revision))
		return;
	for (uint32_t i = 0; i < n_targets; i++)
		if (!u->targets[i] && atomic_load(&sb_target(sb, i)->role_id))
			sb_target_forget(sb, i);
	for (uint32_t i = 0; i < n_accounts; i++)
		if (!u->accounts[i] && atomic_load(&sb_account(sb, i)->kind))
			sb_account_forget(sb, i);
}

static bool
all_at(const struct scoreboard *sb, int64_t revision)
{
	uint32_t n = atomic_load(&sb->head->used_slots);

	for (uint32_t i = 0; i < n; i++) {
		const struct sb_worker *w = sb_worker(sb, i);

		if (atomic_load(&w->state) != SB_FREE &&
		    atomic_load(&w->revision) != revision)
			return false;
	}
	return true;
}
