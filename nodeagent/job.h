/*
 * job.h: the children that run (child.h), with their pipes on the event
 * loop: output goes out no faster than it is taken, input waits until it is
 * read, and a job that is stopped ends wholly: TERM, a grace, KILL.
 *
 * A job ends when its first process has ended and what it wrote is taken.
 * Processes that it left in the background do not hold it up.
 */
#ifndef NODEAGENT_JOB_H
#define NODEAGENT_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <event2/event.h>

#include "common/base/err.h"
#include "nodeagent/child.h"

#define JOB_GRACE_MS   2000 /* between TERM and KILL */
#define JOB_REPORT_MAX 4096

struct jobs; /* all of an agent */
struct job;

enum job_stream { JOB_STDOUT, JOB_STDERR };
enum job_cause {
	JOB_RAN,
	JOB_TIMEOUT,
	JOB_CANCEL,
	JOB_AGENT_STOP,
	JOB_LEFT /* it runs on, without the agent */
};

struct job_result {
	enum job_cause cause; /* why it ended */
	int status;	      /* as of waitpid(2) */
	int64_t ms;
	uint64_t input_used; /* bytes of input that were taken */
	const char *report;  /* what the child reported (child.h); a string */
	size_t report_size;  /* 0: nothing */
};

/* Calls from the event loop.  `ended` comes exactly once and last; the job is
 * gone when it returns. */
struct job_handlers {
	/* false: no more, until job_more() */
	bool (*output)(enum job_stream, const uint8_t *, size_t, void *arg);
	/* Some of what job_input() kept is taken. */
	void (*input_taken)(void *arg);
	void (*ended)(const struct job_result *, void *arg);
};

struct jobs *jobs_new(struct event_base *, struct err *);
void jobs_free(struct jobs *); /* those that are left run on: JOB_LEFT */

/* timeout_ms 0: none. */
struct job *job_start(struct jobs *, const struct child_spec *,
    int64_t timeout_ms, const struct job_handlers *, void *arg, struct err *);

/* What cannot be written at once is kept, in memory. */
void job_input(struct job *, const void *bytes, size_t size);
size_t job_input_kept(const struct job *);
void job_input_end(struct job *);
void job_more(struct job *);
void job_resize(struct job *, uint16_t rows, uint16_t columns);
void job_signal(struct job *, int sig);

/* TERM, then KILL to all of it; `ended` follows.  The first cause stays. */
void job_stop(struct job *, enum job_cause);

/* All; those that end with the agent. */
size_t jobs_count(const struct jobs *);
size_t jobs_count_bound(const struct jobs *);

/* Stops those that end with the agent. */
void jobs_stop(struct jobs *);

/* KILLs the same at once, without waiting: the agent is about to exit. */
void jobs_kill(struct jobs *);

#endif
