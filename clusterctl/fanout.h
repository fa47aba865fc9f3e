/*
 * fanout.h: one order to many nodes at once: a sliding window of sessions on
 * one event loop.  The engine connects, watches time and signs of life,
 * obeys Ctrl-C and the failure budget, and gives every target exactly one
 * result; a job (exec, push, ask) says what goes over each session.
 *
 * Memory is bounded by the window: a target that waits or has ended holds
 * its row only.
 */
#ifndef CLUSTERCTL_FANOUT_H
#define CLUSTERCTL_FANOUT_H

#include <sys/queue.h>
#include <stdint.h>

#include "clusterctl/context.h"
#include "clusterctl/outcome.h"

#define FANOUT_DEFAULT	   "128"
#define FANOUT_MAX	   10000
#define FANOUT_CONNECT_S   "5s"
#define FANOUT_SILENCE_S   30	/* without any sign of life: lost */
#define FANOUT_GRACE_MS	   3000 /* between TERM and KILL of Ctrl-C */
#define FANOUT_INT_AGAIN_S 5	/* a second Ctrl-C within this ends it */

struct fanout;

/* One target. */
struct task {
	size_t index;
	const struct dir_node *node;
	struct result result;
	int64_t started_ms, ended_ms; /* monotonic; 0: never */
	int64_t skew_ms;	      /* its clock minus ours */
	/* While the session lives: */
	struct channel *channel;
	void *own; /* the job's, own_size bytes, zeroed at the start */
	struct fanout *fanout;
	/* The engine's. */
	unsigned state, silent;
	int64_t limit_at_ms;
	uint64_t heard_bytes;
	TAILQ_ENTRY(task) link;
};

/*
 * What a job does.  start, record and drained run while the session is open;
 * a -1 ends the target with the err, as a failure of this machine.
 * REC_ERROR is the engine's: it ends the target with its class.
 */
struct fanout_job {
	/* The session is open: send the request. */
	int (*start)(struct task *, void *arg, struct err *);
	int (*record)(struct task *, enum record_type, const uint8_t *body,
	    size_t size, void *arg, struct err *);
	int (*drained)(struct task *, void *arg, struct err *); /* or NULL */
	/* Ctrl-C twice: end what runs there, first kindly (kill: false).
	 * NULL: the session is just closed. */
	void (*cancel)(struct task *, bool kill, void *arg);
	/* Once for each target that was started, result known; own is freed
	 * after it. */
	void (*ended)(struct task *, void *arg);
	/* What progress says beside the counts ("3.2M sent"); or NULL. */
	void (*progress)(char *buf, size_t size, void *arg);
	size_t own_size;
	unsigned n_fds; /* descriptors of each session beside its socket */
};

struct fanout_plan {
	const struct dir_node *const *nodes; /* borrowed */
	size_t n;
	uint64_t window;
	int64_t connect_ms;
	/* From the session's start to its end, 0: none; then limit_outcome. */
	int64_t limit_ms;
	enum outcome limit_outcome;
	int64_t max_fail;   /* more failures than this end the run; -1: any */
	bool show_progress; /* on standard error, if that is a terminal */
	bool quick;	    /* nothing runs there: the first Ctrl-C ends it */
	const struct fanout_job *job; /* borrowed, with arg */
	void *arg;
};

/* ERR_LOCAL when the window needs more descriptors than the limit allows. */
struct fanout *fanout_new(struct context *, const struct fanout_plan *,
    struct err *);
void fanout_free(struct fanout *);

/* Runs until every target has its result. */
int fanout_run(struct fanout *, struct err *);

/* Ends all as a second Ctrl-C does: nobody reads what they say. */
void fanout_cancel(struct fanout *);

size_t fanout_n(const struct fanout *);
struct task *fanout_task(struct fanout *, size_t i);
bool fanout_interrupted(const struct fanout *);
bool fanout_budget_spent(const struct fanout *);

/* The worst class as an exit status; 130 when interrupted, 6 when the budget
 * is spent. */
int fanout_exit_status(struct fanout *);

/* outcome_summary() of its targets. */
void fanout_summary(struct fanout *);

/* The job knows how it ended; closes the session.  why may be NULL. */
void task_end(struct task *, enum outcome, const struct err *why);

/* Sends one record; a failure is an err of the session. */
int task_send(struct task *, enum record_type, const void *body, size_t size,
    struct err *);

#endif
