/*
 * opener_link.h: a worker's end of its opener: jobs go out, a few at a time,
 * and each comes back once, with an answer or without.
 */
#ifndef MUSTER_OPENER_LINK_H
#define MUSTER_OPENER_LINK_H

#include <sys/queue.h>

#include <event2/event.h>

#include "common/base/err.h"
#include "proxyd/static/wire.h"

/* The kernel holds ten packets of a socket for one who does not read. */
#define LINK_FLYING   8
#define LINK_STUCK_MS 1000

/* What came back.  fd is taken over by whoever sets it to -1. */
struct link_answer {
	struct wire_answer a;
	const char *fields, *content;
	int fd;
};

/* Embedded in what waits.  done gets NULL when the opener is gone. */
struct link_job {
	TAILQ_ENTRY(link_job) link; /* of those not sent yet */
	struct wire_ask ask;	    /* its ticket is the link's */
	const char *site, *path;    /* of WIRE_LOOKUP */
	int fd;			    /* borrowed, of WIRE_WARM; -1 */
	int64_t asked_ms;
	uint8_t state; /* enum link_job_state */
	void (*done)(struct link_job *, struct link_answer *);
};

enum link_job_state { LINK_IDLE, LINK_QUEUED, LINK_FLOWN };

struct opener_link;

/* To no opener yet. */
struct opener_link *opener_link_new(struct event_base *, struct err *);

/* Forgets all jobs without a word; the opener ends by itself. */
void opener_link_free(struct opener_link *);

/* To this one from now on (taken); a snapshot must follow. */
int opener_link_attach(struct opener_link *, int fd, struct err *);

/* Sends the opener a snapshot (borrowed). */
int opener_link_snapshot(struct opener_link *, int fd, struct err *);

/* False: the opener is gone.  Never calls done by itself. */
bool opener_link_ask(struct opener_link *, struct link_job *, int64_t now_ms);

/* Whether jobs wait for the disk so long that no more should. */
bool opener_link_is_stuck(const struct opener_link *, int64_t now_ms);

/* Nobody waits for it any more; done is not called. */
void opener_link_cancel(struct opener_link *, struct link_job *);

#endif
