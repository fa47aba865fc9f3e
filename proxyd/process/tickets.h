/*
 * tickets.h: the master's part in session tickets: it makes their keys,
 * replaces them on time, and gives them to the workers.
 */
#ifndef MUSTER_TICKETS_H
#define MUSTER_TICKETS_H

#include <stdint.h>

#include <event2/event.h>

#include "common/base/err.h"
#include "proxyd/process/crew.h"
#include "proxyd/tls/ticket_keys.h"

struct tickets;

/* Begins with a predecessor's keys, which are to be replaced in so many ms;
 * with none of them (n 0) it makes one.  The crew is borrowed. */
struct tickets *tickets_new(struct event_base *, struct crew *,
    const struct ticket_keys *, int64_t left_ms, struct err *);
void tickets_free(struct tickets *);

/* For a successor. */
const struct ticket_keys *tickets_keys(const struct tickets *);
int64_t tickets_left_ms(const struct tickets *);

#endif
