/*
 * join.h: `nodeagent join`: checks this machine, enrolls it with a token, and
 * starts the service.  Killed at any instant, the same line finishes the job.
 */
#ifndef NODEAGENT_JOIN_H
#define NODEAGENT_JOIN_H

#include "common/base/err.h"

struct options;

int join_run(const struct options *, struct err *);

#endif
