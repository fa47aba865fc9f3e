/*
 * roster_form.h: the form of a roster that its writer and its reader share;
 * private to this folder.
 */
#ifndef MUSTER_ROSTER_FORM_H
#define MUSTER_ROSTER_FORM_H

#include <jansson.h>
#include <sodium.h>

#include "common/registry/roster.h"

#define ROSTER_HEAD_MAX 256

struct roster_head {
	char cluster_uuid[UUID_LEN + 1];
	int64_t revision, signed_at_s;
	uint8_t signature[crypto_sign_BYTES];
};

/* The first line with its newline; returns its length. */
size_t roster_head_format(const struct roster_head *,
    char line[ROSTER_HEAD_MAX]);
/* Only what roster_head_format() writes is taken. */
int roster_head_parse(const char *line, size_t len, struct roster_head *,
    struct err *);

/* What is signed; body_hash: of all that follows the first line. */
#define ROSTER_MESSAGE_MAX 160
size_t roster_message(const struct roster_head *,
    const uint8_t body_hash[crypto_generichash_BYTES],
    uint8_t message[ROSTER_MESSAGE_MAX]);

/*
 * Calls fn with the object of each line of this kind that contains `needle`
 * (NULL: each), until it returns non-zero; returns that.  fn sets the err
 * for -1.
 */
typedef int roster_line_fn(json_t *, void *arg, struct err *);
int roster_each_line(struct roster *, const char *kind, const char *needle,
    roster_line_fn *, void *arg, struct err *);

#endif
