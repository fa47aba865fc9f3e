/*
 * preflight.h: what `nodeagent join` looks at before it changes anything:
 * each check is a line, and one that fails says what to do about it.
 */
#ifndef NODEAGENT_PREFLIGHT_H
#define NODEAGENT_PREFLIGHT_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/addr.h"
#include "common/base/err.h"
#include "common/base/state.h"
#include "common/net/token.h"

struct preflight {
	size_t n_failed;
	int code;			 /* of the first that failed */
	bool agent_running;		 /* with this state directory */
	bool reachable[TOKEN_ADDRS_MAX]; /* of the token's addresses */
};

/* Prints "ok" with a text, or "FAIL" and the err. */
void preflight_ok(const char *fmt, ...) PRINTF(1, 2);
void preflight_fail(struct preflight *, const struct err *);

void preflight_token(struct preflight *, const struct token *);
/* Makes the directory if need be, and opens it. */
void preflight_state(struct preflight *, const char *dir, struct state *);
/* That the directory does not belong to a master or to another cluster. */
void preflight_cluster(struct preflight *, const struct state *,
    const struct token *);
void preflight_name(struct preflight *, const char *name, const char *hostname);
/* Whether the agent will be able to listen; address NULL: any, default
 * port. */
void preflight_port(struct preflight *, const struct state *,
    const char *address);
void preflight_master(struct preflight *, const struct token *);

/* After the handshake: 0, or -1 with the err told already. */
int preflight_clock(struct preflight *, int64_t skew_ms, struct err *);

/* -1 and a sentence that refers to the lines above, if any check failed. */
int preflight_result(const struct preflight *, struct err *);

#endif
