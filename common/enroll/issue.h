/*
 * issue.h: a certificate for a node or an operator that the registry knows:
 * the grants and the lifetime come from the registry, the serial is entered
 * there, the authority signs.  Used at init, at a join and at a renewal.
 *
 * This folder stands on both common/registry and common/net.
 */
#ifndef MUSTER_ISSUE_H
#define MUSTER_ISSUE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/net/cert.h"
#include "common/registry/nodes.h"
#include "common/registry/registry.h"

struct issued {
	uint8_t bytes[CERT_MAX];
	size_t size;
	int64_t not_after_s;
};

/*
 * One change, or part of the caller's.  `key` becomes the holder's if it has
 * none yet; another key than the holder's is ERR_CONFLICT.  authority_secret:
 * 64 bytes.
 */
int issue_node(struct registry *, const char *name, const uint8_t key[KEY_SIZE],
    const uint8_t *authority_secret, int64_t now_s, struct issued *,
    struct err *);

/* The same; ERR_EXPIRED when the operator's grants have ended. */
int issue_operator(struct registry *, const char *name,
    const uint8_t key[KEY_SIZE], const uint8_t *authority_secret, int64_t now_s,
    struct issued *, struct err *);

/*
 * Whether a node's roles ask for the grant; as text: "master storage".  What
 * its certificate says may be older.
 */
bool issue_node_may(const struct node *, const char *grant);
bool issue_roles_may(const char *roles, const char *grant);

/* Whether a node's certificate has every grant that its roles ask for. */
bool issue_fits(const struct cert *, const char *roles);

#endif
