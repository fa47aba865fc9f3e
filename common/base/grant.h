/*
 * grant.h: what a certificate's holder may do, as text: "verb" on every
 * node, "verb:role" on nodes with the role; the verb may be "*".
 */
#ifndef MUSTER_GRANT_H
#define MUSTER_GRANT_H

#include "common/base/err.h"

#define GRANTS_MAX 24
#define GRANT_LEN  96  /* "exec:worker_http" */
#define GRANTS_LEN 768 /* all together, so that a certificate has room */

/* Checks one grant's form; ERR_USAGE with the rule. */
int grant_check(const char *grant, struct err *);

#endif
