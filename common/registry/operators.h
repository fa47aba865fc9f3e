/*
 * operators.h: the people and scripts that may give orders, and which.
 */
#ifndef MUSTER_OPERATORS_H
#define MUSTER_OPERATORS_H

#include "common/base/grant.h"
#include "common/base/name.h"
#include "common/base/secret.h"
#include "common/registry/registry.h"

struct operator_row {
	char name[NAME_MAX_LEN + 1];
	size_t n_grants;
	char grants[GRANTS_MAX][GRANT_LEN + 1];
	int64_t until_s; /* wall seconds; the grants end then; 0: never */
	bool has_key;	 /* joined */
	uint8_t key[KEY_SIZE];
	uint64_t serial; /* of the newest certificate */
	int64_t cert_not_after_s;
	int64_t created_ms;
};

typedef int operator_fn(const struct operator_row *, void *arg);

/* ERR_NO_TARGET with a "did you mean". */
int operators_get(struct registry *, const char *name, struct operator_row *,
    struct err *);
int operators_each(struct registry *, operator_fn *, void *arg, struct err *);

/* Each is one change.  ERR_CONFLICT: the name is taken. */
int operators_add(struct registry *, const char *name,
    const char *const *grants, size_t n_grants, int64_t until_s, struct err *);
int operators_set(struct registry *, const char *name,
    const char *const *grants, size_t n_grants, int64_t until_s, struct err *);
/* Refuses when nobody but this operator may do everything. */
int operators_check_last(struct registry *, const char *name, struct err *);
/* How many may do everything now. */
int operators_count_full(struct registry *, int64_t *n, struct err *);

/* Takes the grants, revokes every certificate and pending token. */
int operators_revoke(struct registry *, const char *name, struct err *);

#endif
