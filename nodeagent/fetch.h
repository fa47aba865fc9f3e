/*
 * fetch.h: on a machine that runs a proxy and has no registry: brings the
 * keys and chains of sites' certificates here, from a master, as soon as the
 * roster names one that is not in custody; and removes those that no
 * certificate of the roster uses any more.
 *
 * A machine is one that runs a proxy when its roles say so (master, proxy).
 * One that has lost the role keeps none.
 */
#ifndef NODEAGENT_FETCH_H
#define NODEAGENT_FETCH_H

#include "common/base/err.h"
#include "common/custody/custody.h"

/* Of one question: files, and bytes of the answer. */
#define FETCH_FILES 16
#define FETCH_SIZE  (256L * 1024)

struct agent;
struct fetch;

struct fetch *fetch_new(struct agent *, struct err *);
void fetch_free(struct fetch *);

/* The roster, or what this node may do, has changed. */
void fetch_now(struct fetch *);

#endif
