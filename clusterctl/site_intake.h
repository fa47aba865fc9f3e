/*
 * site_intake.h: many sites from a file: a host name or a JSON object a
 * line; empty lines and those that begin with # count for nothing.
 */
#ifndef CLUSTERCTL_SITE_INTAKE_H
#define CLUSTERCTL_SITE_INTAKE_H

#include <stddef.h>

#include "clusterctl/fields.h"
#include "common/base/err.h"
#include "common/registry/registry.h"
#include "common/registry/sites.h"

#define SITE_LINE_MAX 65536
#define SITE_FILE_MAX (256 * 1024 * 1024)

/* One line as a site: site_fini() it, also after a failure.  defaults: what
 * the line does not say. */
int site_intake_line(const char *line, const struct field_values *defaults,
    struct site *, struct err *);

struct site_tally {
	size_t n;
	size_t n_homeless; /* of them, as site_lacks_home() says */
};

/* All sites of a file ("-": standard input), in one change.  An err names the
 * line. */
int site_intake(struct registry *, const char *path,
    const struct field_values *defaults, struct site_tally *, struct err *);

#endif
