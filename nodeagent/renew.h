/*
 * renew.h: renews this node's certificate at two thirds of its life, from
 * the masters, in order.
 */
#ifndef NODEAGENT_RENEW_H
#define NODEAGENT_RENEW_H

#include "common/base/err.h"

struct agent;
struct renewal;

struct renewal *renewal_new(struct agent *, struct err *);
void renewal_free(struct renewal *);

/* This node's roles may have changed: soon, if its certificate lacks what they
 * ask for. */
void renewal_look(struct renewal *);

#endif
