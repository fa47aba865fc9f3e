/*
 * localagent.h: the agent of this machine, through run/nodeagent.sock below
 * the state directory.  One line each way: a request such as {"do":
 * "unlock", "passphrase": ...}, and its answer or, as in an ERROR record,
 * {"code", "word", "text"}.
 */
#ifndef CLUSTERCTL_LOCALAGENT_H
#define CLUSTERCTL_LOCALAGENT_H

#include <stdbool.h>

#include <jansson.h>

#include "common/base/err.h"
#include "common/base/state.h"

/* Whether somebody listens there. */
bool localagent_runs(const struct state *);

/*
 * Sends a request (takes it) and returns the answer, the caller's, or NULL:
 * ERR_UNREACHABLE when no agent runs, else what the agent refused with.
 */
json_t *localagent_ask(const struct state *, json_t *request, struct err *);

#endif
