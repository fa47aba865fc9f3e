/*
 * record.h: nodes, roles, operators, sites and their certificates as JSON
 * objects, as they stand
 * in a roster and in an export; private to this folder.
 */
#ifndef MUSTER_RECORD_H
#define MUSTER_RECORD_H

#include <jansson.h>

#include "common/registry/nodes.h"
#include "common/registry/operators.h"
#include "common/registry/roles.h"
#include "common/registry/site_certs.h"
#include "common/registry/sites.h"

enum record_form {
	RECORD_ROSTER, /* begins with "t", holds keys and serials */
	RECORD_EXPORT  /* what a person may write */
};

/* The caller's; NULL when out of memory. */
json_t *record_from_node(const struct node *, enum record_form);
json_t *record_from_role(const struct role *, enum record_form);
json_t *record_from_operator(const struct operator_row *, enum record_form);
json_t *record_from_site(const struct site *, enum record_form);
/* record_site_cert.c; an export says nothing of hosts. */
json_t *record_from_site_cert(const struct site_cert *, enum record_form);

/* Everything is checked.  What is absent has its default; unknown members
 * are skipped. */
int record_to_node(json_t *, struct node *, struct err *);
int record_to_role(json_t *, struct role *, struct err *);
int record_to_operator(json_t *, struct operator_row *, struct err *);
int record_to_site(json_t *, struct site *, struct err *); /* site_fini() */
int record_to_site_cert(json_t *, struct site_cert *, struct err *); /* fini */

#endif
