/*
 * certificates.h: the follower's part in TLS certificates: which ones the
 * registry or the roster names, whose files are in custody, made into an
 * image (cert_image.h) whenever something about that has changed.
 *
 * What was in the last image is not read from its file again.  One whose key
 * or chain is not here is left out, said once, and taken as soon as the files
 * come; until then a renewed site keeps what it had.
 */
#ifndef MUSTER_CERTIFICATES_H
#define MUSTER_CERTIFICATES_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/base/state.h"
#include "proxyd/process/source.h"

struct certificates;

struct certificates *certificates_new(const struct state *, struct err *);
void certificates_free(struct certificates *);

/*
 * Looks.  *fd: an image for everybody, the caller's, or -1: the last one is
 * still right.  fallback: the site whose certificates are for unknown names,
 * or "".
 */
int certificates_look(struct certificates *, struct source *,
    const char *fallback, int *fd, struct err *);

/* Whether to look though the revision is the same: files were missing, and
 * some have come, or nobody was told yet.  Cheap. */
bool certificates_due(const struct certificates *);

/* Says once a day which ones are about to expire. */
void certificates_remind(struct certificates *, int64_t now_s);

#endif
