/*
 * order.h: a request that is a job: records of the session feed it, its
 * output becomes records, its end becomes the answer.  When the session is
 * lost the job is stopped, unless it was told to go on.
 */
#ifndef NODEAGENT_ORDER_H
#define NODEAGENT_ORDER_H

#include <jansson.h>

#include "common/net/proto.h"
#include "nodeagent/child.h"
#include "nodeagent/job.h"

struct session;

struct order_kind {
	enum record_type input;	    /* the records that feed it */
	enum record_type output[2]; /* what it writes to 1 and 2 becomes */
	enum record_type answer;    /* REC_REPLY or REC_EXIT */
	/* The answer's object, or NULL and why it failed. */
	json_t *(*conclude)(const struct job_result *, struct err *);
};

/* Starts the job and makes it the session's task.  has_input false: it gets
 * an end of file at once. */
int order_start(struct session *, const struct order_kind *,
    const struct child_spec *, int64_t timeout_ms, bool has_input,
    struct err *);

#endif
