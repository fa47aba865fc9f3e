/*
 * offer.h: a token of this master: its secret half for the one line to
 * paste, its public half in the registry.
 */
#ifndef CLUSTERCTL_OFFER_H
#define CLUSTERCTL_OFFER_H

#include "clusterctl/context.h"
#include "common/base/err.h"
#include "common/net/token.h"
#include "common/registry/tokens.h"

struct offer {
	struct token_row row;
	char text[TOKEN_TEXT_MAX]; /* holds the secret */
};

/*
 * Fills id, psk and times of offer->row (expires in ttl_ms), enters it, and
 * gives the text.  One change, or part of the caller's.  Needs
 * NEEDS_REGISTRY.
 */
int offer_make(struct context *, struct offer *, int64_t ttl_ms, struct err *);

/*
 * Prints the line to paste, alone on standard output, and on a terminal what
 * it is for; with --json an object.  A remark warns when this master's agent
 * is not there to answer.
 */
void offer_print(const struct context *, const struct offer *,
    const char *command);

void offer_wipe(struct offer *);

#endif
