/*
 * outcome.h: how an order ends on one node.  Every target of every command
 * ends in exactly one class; the table says what the class means, so that
 * "not delivered", "delivered, result unknown" and "finished" are never
 * confused, and which exit status it stands for.
 */
#ifndef CLUSTERCTL_OUTCOME_H
#define CLUSTERCTL_OUTCOME_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/err.h"

enum outcome {
	OUTCOME_NONE,	     /* has not ended */
	OUTCOME_OK,	     /* finished, exit status 0 */
	OUTCOME_FAILED,	     /* finished: another status, or a signal */
	OUTCOME_REFUSED,     /* the node could not do it (no such user) */
	OUTCOME_TIMEOUT,     /* finished: ended by its time-out */
	OUTCOME_LOST,	     /* delivered, result unknown */
	OUTCOME_UNREACHABLE, /* not delivered */
	OUTCOME_DENIED,	     /* not allowed */
	OUTCOME_LOCAL,	     /* given up for a failure of this machine */
	OUTCOME_SKIPPED,     /* never started */
	OUTCOME_CANCELLED,   /* ended by Ctrl-C */
	N_OUTCOMES
};

/* "ok", "failed", "unreachable": the JSON field "class". */
const char *outcome_word(enum outcome);

/* The exit status that the class alone stands for. */
int outcome_exit_status(enum outcome);

/* The worse of two: the one whose exit status a mixed run leaves with. */
enum outcome outcome_worse(enum outcome, enum outcome);

/* Whether it counts against --max-fail. */
bool outcome_is_failure(enum outcome);

/* The class of an error that came before (delivered: after) the request
 * left. */
enum outcome outcome_of_err(const struct err *, bool delivered);

/* The class of an ERROR record, the node's own answer to a request. */
enum outcome outcome_of_answer(const struct err *);

/* How one target ended, in full. */
struct result {
	enum outcome outcome;
	bool begun;	/* DENIED: the right was lost while it ran */
	int exit;	/* -1: none */
	int signal;	/* 0: none */
	struct err why; /* of the classes that are no plain end */
};

/* "exited with status 1", "not delivered: unreachable: ...": no object, no
 * full stop. */
void result_sentence(const struct result *, char *buf, size_t size);

/* One line a set of nodes that ended alike, on standard error, e.g.
 * "clusterctl: web[1-3] (3): exited with status 1".  Those that are OK are
 * not mentioned.  at(i) tells name and result of target i. */
void outcome_summary(size_t n,
    const struct result *(*at)(size_t i, const char **name, void *arg),
    void *arg);

#endif
