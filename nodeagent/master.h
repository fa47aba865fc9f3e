/*
 * master.h: what an agent does beside, on the node that has the registry:
 * signs a roster of each new revision, admits joiners, renews certificates,
 * and remembers when each node was last seen.
 */
#ifndef NODEAGENT_MASTER_H
#define NODEAGENT_MASTER_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "common/base/addr.h"
#include "common/base/err.h"
#include "common/enroll/issue.h"
#include "common/net/cert.h"
#include "common/net/token.h"

struct agent;
struct master;
struct registry;

/* A locked authority key is no failure. */
struct master *master_new(struct agent *, struct err *);
void master_free(struct master *);

struct registry *master_registry(struct master *);

/* Opens the authority key; ERR_DENIED for a wrong passphrase. */
int master_unlock(struct master *, const char *passphrase, struct err *);
/* The 64 bytes, or NULL and ERR_LOCKED with the remedy. */
const uint8_t *master_secret(struct master *, struct err *);

/* Signs a new roster if the registry's revision has moved. */
int master_refresh(struct master *, struct err *);

/* See channel_policy.join_psk. */
int master_join_psk(struct master *, const uint8_t id[TOKEN_ID_SIZE],
    const struct addr *from, uint8_t psk[KEY_SIZE], struct err *);

/* The node with this key gets another certificate. */
int master_renew_node(struct master *, const uint8_t key[KEY_SIZE],
    struct issued *, struct err *);

/* A node has called: what it says of itself. */
struct sighting {
	const char *name, *version;
	const char *run; /* twin.h */
	const struct addr *from;
	int64_t skew_ms;
};

/* Returns whether another machine is at work with its key. */
bool master_saw(struct master *, const struct sighting *);
json_t *master_sights(const struct master *);

#endif
