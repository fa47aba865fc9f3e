/*
 * fields.h: the options of roles, sites and nodes, whose tables are the
 * registry's (common/registry/option.h), as options of a command line:
 * "queue_timeout" is --queue-timeout.  The values are checked where they are
 * stored, in the registry; here they are text.
 */
#ifndef CLUSTERCTL_FIELDS_H
#define CLUSTERCTL_FIELDS_H

#include <stdbool.h>

#include <jansson.h>

#include "clusterctl/opts.h"
#include "common/base/err.h"
#include "common/registry/option.h"
#include "common/registry/registry.h"

#define FIELDS_MAX 48

/* What was typed: one for each row of the table; NULL: not given. */
struct field_values {
	const char *v[FIELDS_MAX];
};

/* The rows as a set that fills a struct field_values at `offset`.  Made once
 * and kept. */
const struct opt_set *fields_opts(const struct option_table *, size_t offset);

bool fields_given(const struct field_values *);

/* Calls roles_set(), sites_set() or nodes_set() for each value. */
int fields_apply(const struct option_table *, const struct field_values *,
    struct registry *, const char *name,
    int (*set)(struct registry *, const char *name, const char *option,
	const char *value, struct err *),
    struct err *);

/* Stores each value in an object that is not in the registry yet. */
int fields_store(const struct option_table *, const struct field_values *,
    void *object, struct err *);

/* All fields as an object of strings, each as it would be typed. */
json_t *fields_json(const struct option_table *, const void *object);

/* The fields as a table of option, value, default, unit and help. */
void fields_print(const struct option_table *, const void *object);

#endif
