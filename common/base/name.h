/*
 * name.h: the names of nodes, roles, operators and sites, checked at every
 * entrance.
 */
#ifndef MUSTER_NAME_H
#define MUSTER_NAME_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/err.h"

#define NAME_MAX_LEN 63	 /* nodes, roles, operators */
#define HOST_MAX_LEN 253 /* sites: RFC 1035, section 2.3.4 */

/* [a-z0-9]([a-z0-9._-]*[a-z0-9])?, 1 to 63 bytes. */
bool name_valid(const char *name);

/* The same, with a sentence that quotes the rule; `what` is "node name". */
int name_check(const char *what, const char *name, struct err *);

/* A role name: as a node's, but '_' may stand anywhere and '.' nowhere. */
int name_check_role(const char *name, struct err *);

/* A site's host name: labels of letters, digits, '-' and '_', lower case;
 * `wildcard` allows a first label "*". */
int name_check_host(const char *host, bool wildcard, struct err *);

/*
 * The entry of names[n] closest to `wrong` by edit distance, if it is close
 * enough to be worth a "did you mean"; else NULL.
 */
const char *name_suggest(const char *wrong, const char *const *names, size_t n);

#endif
