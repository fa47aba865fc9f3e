/*
 * tokens.h: enrollment tokens: what each admits, for how long, how often.
 * The registry knows only the psk (a keyed hash of the secret).  A used token
 * stays used, whatever becomes of who joined with it.
 */
#ifndef MUSTER_TOKENS_H
#define MUSTER_TOKENS_H

#include "common/base/addr.h"
#include "common/base/name.h"
#include "common/base/secret.h"
#include "common/registry/certs.h"
#include "common/registry/nodes.h"
#include "common/registry/operators.h"

#define TOKEN_USES_MAX 100000

struct token_row {
	uint8_t id[TOKEN_ID_SIZE];
	uint8_t psk[KEY_SIZE];
	enum cert_holder kind;
	char name[NAME_MAX_LEN + 1]; /* "": the joiner's wish (nodes only) */
	size_t n_roles;
	char roles[NODE_ROLES_MAX][NAME_MAX_LEN + 1];
	char from[ADDR_TEXT_MAX]; /* CIDR; "": anywhere */
	int64_t uses, used;
	int64_t created_ms, expires_ms;
	bool approve; /* the node waits until somebody approves */
};

typedef int token_fn(const struct token_row *, void *arg);

/* One change.  Checks name, roles and CIDR.  An operator's token names an
 * operator that exists. */
int tokens_add(struct registry *, const struct token_row *, struct err *);
/* ERR_STRANGER: unknown. */
int tokens_get(struct registry *, const uint8_t id[TOKEN_ID_SIZE],
    struct token_row *, struct err *);
int tokens_each(struct registry *, token_fn *, void *arg, struct err *);
int tokens_revoke(struct registry *, const uint8_t id[TOKEN_ID_SIZE],
    struct err *);

/* ---- joining ---------------------------------------------------------- */

struct join {
	const uint8_t *token_id;
	const uint8_t *key;	 /* the joiner's, proven by the handshake */
	const struct addr *peer; /* where it calls from */
	const char *name;	 /* its wish; NULL or "": its host name */
	const char *hostname;
	const char *address; /* where its agent listens; NULL: peer's IP */
	uint16_t port;	     /* 0: PROTO_DEFAULT_PORT is the caller's to put */
	const char *version;
	int64_t now_ms;
};

enum join_status { JOIN_ADMITTED, JOIN_PENDING };

/*
 * Consumes a use of the token and inserts the node, or the request that waits
 * for approval, in one transaction: of two racing joins one wins.  The same
 * key with the same token gets the same answer again, and no further use.
 * Of a node that waits only the name is filled in.
 * The certificate is certs_issue(), best inside the same change.
 *
 * A token made for a node that has no agent yet (nodes_add) gives it one.
 * ERR_STRANGER: no such token; ERR_EXPIRED; ERR_DENIED: used up, or from a
 * foreign address; ERR_CONFLICT: the name has another key (then, with the
 * change ended, conflicts_note() keeps it for a person to see).
 */
int join_node(struct registry *, const struct join *, struct node *,
    enum join_status *, struct err *);

/* The same for an operator's token. */
int join_operator(struct registry *, const struct join *, struct operator_row *,
    struct err *);

/* ---- who waits, and who was refused ----------------------------------- */

struct join_request {
	char name[NAME_MAX_LEN + 1];
	uint8_t key[KEY_SIZE];
	char addr[ADDR_TEXT_MAX];
	uint16_t port;
	int64_t at_ms;
	bool copied; /* the key is the node's own: two machines have it */
};

typedef int join_request_fn(const struct join_request *, void *arg);

int pending_each(struct registry *, join_request_fn *, void *arg, struct err *);
/* One change: the request becomes a node with its token's roles. */
int pending_approve(struct registry *, const char *name, struct err *);
int pending_reject(struct registry *, const char *name, struct err *);

/* Keeps a refused join; the caller has no change open. */
int conflicts_note(struct registry *, const struct join *, struct err *);
/* And that another machine calls from there with the node's key. */
int conflicts_note_copy(struct registry *, const char *name,
    const struct addr *from, int64_t at_ms, struct err *);
/* The newest first. */
int conflicts_each(struct registry *, join_request_fn *, void *arg,
    struct err *);
int conflicts_clear(struct registry *, const char *name, struct err *);

#endif
