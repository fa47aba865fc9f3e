/*
 * cgroup.h: a control group for each order, where systemd has delegated ours
 * (Delegate=yes, cgroup v2): nothing that an order starts can leave it, so
 * nothing escapes being ended.  Elsewhere none of this exists, and job.c
 * goes by process group and session.
 */
#ifndef NODEAGENT_CGROUP_H
#define NODEAGENT_CGROUP_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

struct cgroup {
	char path[PATH_MAX]; /* "" : none */
};

/*
 * Finds the delegated group of this process and ends what orders of an
 * earlier agent left behind (it was killed).  Once, at the start.
 */
void cgroup_setup(void);

/* A group for one order; no group is no error. */
void cgroup_make(struct cgroup *, bool keep);

/* In the child: moves the calling process in. */
void cgroup_enter(const struct cgroup *);

/* KILLs everything inside. */
void cgroup_kill(const struct cgroup *);
bool cgroup_is_empty(const struct cgroup *);

/* Removes it; processes that were left on purpose move to a common group
 * first. */
void cgroup_remove(struct cgroup *);

#endif
