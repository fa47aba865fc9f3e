/*
 * copy.h: what push and pull share: their options, and the run around their
 * jobs: targets, audit, fan-out, one result a node, the summary.
 */
#ifndef CLUSTERCTL_COPY_H
#define CLUSTERCTL_COPY_H

#include "clusterctl/pace.h"
#include "clusterctl/targets.h"

struct copy_opts {
	struct target_opts targets;
	struct pace_opts pace;
	bool quiet;
};

#define N_COPY_SETS 3
extern const struct opt_set copy_sets[N_COPY_SETS];

/* What a run has done, over all nodes. */
struct copy_sum {
	uint64_t n_copied, n_same, bytes;
};

/* One node's part: the first member of what a session of the job holds. */
struct copy_part {
	struct copy_sum sum;
};

/* The arguments that may stand before the options end (all of them). */
struct copy {
	const char *verb; /* "push" */
	const struct copy_opts *opts;
	struct context *cx;
	struct copy_sum sum;
	void *own; /* the job's own */
};

/* Options may follow SET, but never a file's name (command.h). */
int copy_n_leading(const void *opts);

/* Whether argv begins with the target; moves over it. */
const char *copy_target(const struct copy_opts *, int *argc, char ***argv);

/* Refuses what is no path on the nodes; what: FILE or DEST. */
int copy_check_path(const char *what, const char *path, struct err *);

/* Resolves, notes, runs the job (its arg is the struct copy) and says how it
 * went.  The exit status or -1. */
int copy_run(struct copy *, const char *set, const struct fanout_job *,
    struct err *);

/* For the jobs: `ended`, and the words of the progress line. */
void copy_ended(struct task *, struct copy *);
void copy_progress(char *buf, size_t size, void *arg);

#endif
