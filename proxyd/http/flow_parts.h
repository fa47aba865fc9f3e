/*
 * flow_parts.h: what the files of a flow share: flow.c, which moves and
 * writes, flow_in.c, which reads and turns, and flow_collect.c.  Everybody else sees flow.h.
 */
#ifndef MUSTER_FLOW_PARTS_H
#define MUSTER_FLOW_PARTS_H

#include "proxyd/http/flow.h"

/* Whether the flow goes through a pipe, now that it has one. */
bool flow_may_splice(struct flow *, struct flow_tools *, const struct sock *src,
    const struct sock *dst);

/* FLOW_WAITS_SRC: something was read, or there was nothing. */
enum flow_result flow_read(struct flow *, struct flow_tools *, struct sock *src,
    enum why *);
enum flow_result flow_splice(struct flow *, struct sock *src);

/* So many bytes were read. */
void flow_count_read(struct flow *, size_t);

/* The source has ended, rightly or not. */
enum flow_result flow_source_ended(struct flow *, struct flow_tools *);

/* Whether the filter has something to do before more is read. */
bool flow_must_turn(const struct flow *);

/* A turn of the filter: FLOW_WAITS_SRC, or why not. */
enum flow_result flow_turn(struct flow *, struct flow_tools *,
    enum filter_push);

#endif
