/*
 * cert_table.h: certificates of sites as a table: one row each, with the days
 * that are left.
 */
#ifndef CLUSTERCTL_CERT_TABLE_H
#define CLUSTERCTL_CERT_TABLE_H

#include "clusterctl/context.h"
#include "common/registry/site_certs.h"

struct cert_table;

struct cert_table *cert_table_new(const struct context *);
void cert_table_put(struct cert_table *, const struct site_cert *);
/* Prints what is left to print, and frees. */
void cert_table_end(struct cert_table *);

/* Whole days until then, negative after it. */
int64_t cert_days_left(int64_t not_after_s);

#endif
