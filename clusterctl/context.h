/*
 * context.h: where a command runs: the state directory, and, opened only
 * when a command's row asks for it, what the cluster knows, the registry,
 * the operator's identity.
 *
 * On a master the registry answers; on any other machine the signed roster
 * does.  A machine with nothing but an operator identity fetches the roster
 * from a master first when its copy is older than a minute.
 */
#ifndef CLUSTERCTL_CONTEXT_H
#define CLUSTERCTL_CONTEXT_H

#include <stdbool.h>
#include <stddef.h>

#include <event2/event.h>

#include "clusterctl/directory.h"
#include "common/base/err.h"
#include "common/base/state.h"
#include "common/net/channel.h"

enum {
	NEEDS_NOTHING = 0,
	NEEDS_STATE = 1,    /* an existing, safe state directory */
	NEEDS_CLUSTER = 2,  /* nodes and roles: registry or roster */
	NEEDS_REGISTRY = 4, /* the registry, to change it: on a master only */
	NEEDS_OPERATOR = 8, /* an identity to open sessions with */
	NEEDS_VIEW = 16	    /* registry or roster, to read; see view.h */
};

struct context;
struct registry;
struct roster;

/* state: --state or NULL.  typed: the command line, for the audit log. */
struct context *context_new(const char *state, const char *typed);
void context_free(struct context *);

/* Opens what the NEEDS_* bits name, once.  "changes are made on a master:
 * NAME (ADDRESS)" where the registry is not here. */
int context_need(struct context *, unsigned needs, struct err *);

/* Reads the cluster anew, for a command that goes on for long; what was there
 * stays when that fails.  Whatever the directory lent is gone. */
int context_refresh(struct context *, struct err *);

/* Each valid after context_need() of its bit. */
const struct state *context_state(const struct context *);
const struct directory *context_directory(const struct context *);
struct registry *context_registry(const struct context *);
/* Where the registry is not here; else NULL, and context_registry() is
 * there to read. */
struct roster *context_roster(const struct context *);
/* "operator admin": who the change log says it was; with NEEDS_REGISTRY. */
const char *context_actor(const struct context *);
const struct channel_identity *context_identity(const struct context *);
const struct cert *context_operator(const struct context *);

/* From here on sessions are opened as this node: what a master may ask of
 * the others takes no operator. */
int context_be_node(struct context *, struct err *);

/* Where --state pointed, also when nothing is there yet (init, join). */
const char *context_state_dir(const struct context *);
/* The command line as typed. */
const char *context_typed(const struct context *);
/* The event loop, made at the first call. */
struct event_base *context_base(struct context *);

/* Words joined so that a shell would read them back, values of --env hidden;
 * malloc'ed. */
char *context_quote(int argc, char *const *argv);

#endif
