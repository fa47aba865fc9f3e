/*
 * join.h: what the two halves of joining share, join.c (a token redeemed)
 * and pending.c (who waits and who was refused); private to this folder.
 */
#ifndef MUSTER_JOIN_H
#define MUSTER_JOIN_H

#include "common/registry/tokens.h"

/* What the joiner will be: the token's name, else its wish, else its host
 * name up to the first dot.  Roles come from the token alone. */
int join_describe(const struct token_row *, const struct join *,
    struct join_request *, struct err *);

/*
 * Makes the node: a new one with the token's roles, or the agent of a node
 * that was registered without one, if the token is for just that name.
 * ERR_CONFLICT: the name is taken.  Part of the caller's change.
 */
int join_admit(struct registry *, const struct join_request *,
    const struct token_row *, struct err *);

/* ERR_CONFLICT: a node or another request has the name. */
int pending_insert(struct registry *, const struct join_request *,
    const uint8_t token_id[TOKEN_ID_SIZE], struct err *);

/* Takes an operator's key and revokes what was issued to it. */
int operator_forget_key(struct registry *, const char *name, struct err *);

#endif
