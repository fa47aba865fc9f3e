/*
 * tell.h: a master tells the nodes that there is a new roster: other masters
 * at once, everybody else at most every two seconds, a few at a time.
 */
#ifndef NODEAGENT_TELL_H
#define NODEAGENT_TELL_H

#include "common/base/err.h"

struct agent;
struct tell;

struct tell *tell_new(struct agent *, struct err *);
void tell_free(struct tell *);

/* The roster on disk is new. */
void tell_changed(struct tell *);

#endif
