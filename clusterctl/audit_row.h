/*
 * audit_row.h: events of an audit log as rows of a table, for people; the
 * events themselves are for programs (muster-audit(5)).
 */
#ifndef CLUSTERCTL_AUDIT_ROW_H
#define CLUSTERCTL_AUDIT_ROW_H

#include <jansson.h>

#include "clusterctl/output.h"

struct table *audit_table(void);

/* log: which one it is from. */
void audit_row_put(struct table *, const char *log, const json_t *event);

#endif
