/*
 * report_certs.h: which certificates are about to expire, as JSON; a part of
 * report.h.
 */
#ifndef MUSTER_REPORT_CERTS_H
#define MUSTER_REPORT_CERTS_H

#include "proxyd/admin/report.h"

#define REPORT_CERTS_SOON_S (30 * 86400)
#define REPORT_CERTS_MAX    100

/* How many there are, when the first of them ends: {"certificates",
 * "not_after_s"}; the latter is missing without any. */
json_t *report_certs(const struct report *);

/* Those that end within REPORT_CERTS_SOON_S, soonest first, at most
 * REPORT_CERTS_MAX: [{"site", "kind", "not_after_s"}].  NULL: no memory. */
json_t *report_certs_soon(const struct report *, int64_t now_s);

/* Days until what clients of a host get ends, negative after it; null: they
 * get none, or no HTTPS is served with. */
json_t *report_cert_days(const struct report *, const char *host,
    int64_t now_s);

#endif
