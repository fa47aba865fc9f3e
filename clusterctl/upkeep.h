/*
 * upkeep.h: what clusterctl does by the way so that nobody has to: a fresh
 * roster where no agent keeps one, and the operator's certificate renewed at
 * two thirds of its life.
 */
#ifndef CLUSTERCTL_UPKEEP_H
#define CLUSTERCTL_UPKEEP_H

#include <stdbool.h>
#include <stdint.h>

#include "clusterctl/context.h"

#define UPKEEP_ROSTER_S	  60 /* older than this is looked up again */
#define UPKEEP_CONNECT_MS 2000

/*
 * Gets the roster from a node and adopts it if it is newer than revision
 * `have` (0: none).  *news tells whether it was.  Needs the operator's
 * identity only, so it serves a machine that has just joined.
 */
int upkeep_fetch_roster(struct context *, const struct dir_node *from,
    int64_t have, bool *news, struct err *);

/* Whether the roster's copy here is old enough to ask. */
bool upkeep_roster_due(const struct context *);

/* Asks one master after the other.  What fails is only remarked: the copy at
 * hand still serves. */
bool upkeep_roster(struct context *, int64_t have);

/* Whether a certificate is past two thirds of its life. */
bool upkeep_certificate_due(const struct cert *, int64_t now_s);

/* Renews the operator's certificate, or stays with the one at hand. */
void upkeep_certificate(struct context *);

#endif
