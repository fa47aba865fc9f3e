/*
 * targets.h: which nodes a command is for: -r ROLE, -n SET, -a, -x SET, -A,
 * or, when none of them is given, a node set as the first argument.
 *
 * -r and -a leave out, with a line that says so, nodes in maintenance
 * (unless -A) and nodes without an agent; what a SET names is meant.
 */
#ifndef CLUSTERCTL_TARGETS_H
#define CLUSTERCTL_TARGETS_H

#include "clusterctl/context.h"
#include "clusterctl/opts.h"

struct target_opts {
	struct opt_list roles, sets, excluded;
	bool all, even_maintenance;
	bool no_stdin;	      /* -n after a target, --no-stdin */
	const char *behind_n; /* the word after such a -n */
};

#define N_TARGET_ROWS 7
extern const struct opt target_rows[N_TARGET_ROWS];

/* A set for a command's table; `type` has a struct target_opts `targets`. */
#define TARGET_OPTS(type)                                                    \
	{                                                                    \
		.title = "Targets", .rows = target_rows, .n = N_TARGET_ROWS, \
		.offset = offsetof(type, targets)                            \
	}

struct targets {
	const struct dir_node **nodes; /* in natural order, each once */
	size_t n;
	struct nodeset *set;
	char *folded; /* "web[1-3]" */
};

/* Whether an option names targets, so that the first argument does not. */
bool targets_given(const struct target_opts *);

/*
 * set: the first argument, if it is a target; else NULL.  ERR_NO_TARGET: an
 * unknown name, role or exclusion, or nothing is left.
 */
int targets_resolve(struct context *, const struct target_opts *,
    const char *set, struct targets *, struct err *);
void targets_fini(struct targets *);

#endif
