/*
 * view.h: what an agent must know of the roster at any moment, in a few
 * kilobytes whatever the size of the cluster: its own row, where the masters
 * are, and who is revoked.  The roster itself stays on disk.
 */
#ifndef NODEAGENT_VIEW_H
#define NODEAGENT_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/addr.h"
#include "common/base/err.h"
#include "common/base/uuid.h"
#include "common/net/cert.h"

#define VIEW_MASTERS_MAX 16
#define VIEW_ROLES_TEXT	 1600 /* every role and a space each */

struct view_master {
	char name[NAME_MAX_LEN + 1];
	uint8_t key[KEY_SIZE];
	struct addr addr;
	bool is_self;
};

struct view {
	int64_t revision; /* 0: no roster yet */
	char cluster_uuid[UUID_LEN + 1];

	/* Our row is there, and no master says otherwise; else the next are
	 * stale. */
	bool enrolled;
	char name[NAME_MAX_LEN + 1];
	struct addr addr;	     /* where we are said to listen */
	char roles[VIEW_ROLES_TEXT]; /* "master storage" */

	size_t n_masters;
	struct view_master *masters;
	size_t n_revoked;
	uint64_t *revoked; /* serials, ascending */
};

/* Reads a roster file; *v must be zero or loaded, and stays as it was on
 * failure. */
int view_load(struct view *v, const char *path,
    const uint8_t authority[KEY_SIZE], const uint8_t own_key[KEY_SIZE],
    struct err *);
void view_fini(struct view *);

bool view_is_revoked(const struct view *, uint64_t serial);

/* Whether a grant for the verb covers this node. */
bool view_grants(const struct view *, const struct cert *, const char *verb);

#endif
