/*
 * queue.h: requests that wait for a place on a role's nodes, fairly between
 * sites: each site's turn comes by its share, however many it has waiting.
 *
 * One queue a role and worker.  Entries are embedded in whatever waits.
 */
#ifndef MUSTER_QUEUE_H
#define MUSTER_QUEUE_H

#include <sys/queue.h>
#include <stdbool.h>
#include <stdint.h>

struct queue_site;

struct queue_entry {
	TAILQ_ENTRY(queue_entry) in_site;  /* first come, first served */
	TAILQ_ENTRY(queue_entry) in_queue; /* by deadline */
	struct queue_site *site;	   /* NULL: not queued */
	int64_t deadline_ms;
};

struct queue;

struct queue *queue_new(void);	 /* NULL: no memory */
void queue_free(struct queue *); /* empty */

/* Joins the end of its site's line; false when `max` wait already or memory
 * is short.  The wait is the same for all of a queue. */
bool queue_push(struct queue *, struct queue_entry *, int64_t site_id,
    uint32_t share, uint32_t max, int64_t deadline_ms);

/* Whose turn it is, still queued; `after`: the next site's, when that one
 * cannot go.  NULL: nobody's. */
struct queue_entry *queue_next(struct queue *, struct queue_entry *after);

/* Leaves, because it is served (charged to its site) or gives up. */
void queue_leave(struct queue *, struct queue_entry *, bool served);

/* The first whose deadline has passed, still queued; or NULL. */
struct queue_entry *queue_expired(struct queue *, int64_t now_ms);

uint32_t queue_length(const struct queue *);

#endif
