/*
 * metrics.h: the scoreboard in the Prometheus text format (version 0.0.4).
 *
 * The number of series is bounded: sites beyond the busiest METRICS_SITES
 * are summed up in one series, site="other".
 */
#ifndef MUSTER_METRICS_H
#define MUSTER_METRICS_H

#include <event2/buffer.h>

#include "proxyd/admin/report.h"

#define METRICS_SITES 100

int metrics_write(const struct report *, struct evbuffer *, struct err *);

#endif
