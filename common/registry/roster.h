/*
 * roster.h: the signed, secret-free copy of the registry that every node
 * keeps: written from the registry, verified and read anywhere.
 *
 * File and wire form are the same bytes.  The first line is
 *   muster-roster 1 CLUSTER_UUID REVISION SIGNED_AT_S SIGNATURE_HEX
 * and each later one a JSON object that begins with its kind {"t":"node",
 * in the order cluster, setting, role, node, revoked, operator, site, site_cert.  The
 * signature is Ed25519 over "muster-roster-1\n", UUID, REVISION and
 * SIGNED_AT_S in decimal, each followed by a newline, and the BLAKE2b-256 of
 * all that follows the first line.
 *
 * Reading takes one line's memory, whatever the size of the roster.
 */
#ifndef MUSTER_ROSTER_H
#define MUSTER_ROSTER_H

#include "common/base/secret.h"
#include "common/registry/nodes.h"
#include "common/registry/operators.h"
#include "common/registry/roles.h"
#include "common/registry/settings.h"
#include "common/registry/site_certs.h"
#include "common/registry/sites.h"

#define ROSTER_LINE_MAX	   65536
#define ROSTER_SIZE_MAX	   (512L * 1024 * 1024)
#define ROSTER_CLUSTER_LEN NAME_MAX_LEN

struct roster;

/* Writes the roster of the registry's present revision, atomically (0600).
 * secret: the authority's 64 bytes. */
int roster_write(struct registry *, const uint8_t *secret, int64_t now_s,
    const char *path, struct err *);

/*
 * Opens and verifies; nothing of it is parsed before that.  NULL and
 * ERR_STRANGER: not signed by this authority; ERR_CORRUPT: not a roster, cut
 * or damaged; ERR_LOCAL: cannot be read.  A file replaced meanwhile does not
 * disturb an open one.
 */
struct roster *roster_open(const char *path, const uint8_t authority[KEY_SIZE],
    struct err *);
/* The same from a descriptor, which it takes. */
struct roster *roster_open_fd(int fd, const uint8_t authority[KEY_SIZE],
    struct err *);
void roster_close(struct roster *);

const char *roster_cluster_uuid(const struct roster *);
const char *roster_cluster_name(const struct roster *);
int64_t roster_revision(const struct roster *);
/* Reads raw bytes at an offset, to send them on.  Returns how many, 0 at the
 * end. */
ssize_t roster_read(struct roster *, size_t offset, void *buf, size_t size,
    struct err *);

/* Walks, one at a time: fn must not begin another on the same roster.  fn
 * returns non-zero to stop; the walk returns that.  -1 with the err of a line
 * that breaks the form. */
int roster_each_node(struct roster *, node_fn *, void *arg, struct err *);
/* Only those whose line has this text, which is cheap to find. */
int roster_each_node_with(struct roster *, const char *text, node_fn *,
    void *arg, struct err *);
int roster_each_role(struct roster *, role_fn *, void *arg, struct err *);
int roster_each_site(struct roster *, site_fn *, void *arg, struct err *);
int roster_each_site_cert(struct roster *, site_cert_fn *, void *arg,
    struct err *);
int roster_each_operator(struct roster *, operator_fn *, void *arg,
    struct err *);
int roster_each_revoked(struct roster *,
    int (*fn)(uint64_t serial, int64_t not_after_s, void *arg), void *arg,
    struct err *);
int roster_settings(struct roster *, struct settings *, struct err *);

/* ERR_NO_TARGET with a "did you mean". */
int roster_get_node(struct roster *, const char *name, struct node *,
    struct err *);

/* ---- receiving one ---------------------------------------------------- */

/*
 * Collects a roster that comes in pieces in a temporary file beside `path`.
 * Free it in any case; what was not adopted leaves nothing.
 */
struct roster_intake;
struct roster_intake *roster_intake_new(const char *path, struct err *);
int roster_intake_add(struct roster_intake *, const void *bytes, size_t size,
    struct err *);
void roster_intake_free(struct roster_intake *);

/*
 * Verifies what came and puts it in the place of `path` if it is newer than
 * what is there.  *adopted tells.  An older revision, another cluster than
 * that of the present file (or cluster_uuid, unless NULL) and a wrong
 * signature are refused with ERR_DENIED, ERR_STRANGER or ERR_CORRUPT, and
 * the present file stands.  A damaged present file is replaced.
 */
int roster_intake_adopt(struct roster_intake *,
    const uint8_t authority[KEY_SIZE], const char *cluster_uuid, bool *adopted,
    struct err *);

#endif
