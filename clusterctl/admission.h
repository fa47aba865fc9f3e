/*
 * admission.h: asks a master, by a token, for an operator's certificate.
 */
#ifndef CLUSTERCTL_ADMISSION_H
#define CLUSTERCTL_ADMISSION_H

#include "clusterctl/context.h"
#include "common/base/addr.h"
#include "common/base/err.h"
#include "common/net/cert.h"
#include "common/net/channel.h"
#include "common/net/token.h"

struct admission {
	struct addr master; /* the one of the token's addresses that answered */
	uint8_t authority[KEY_SIZE];
	uint8_t cert[CERT_MAX];
	size_t cert_size;
	struct cert holder; /* what the certificate says, verified */
};

/* Asks one address of the token after the other until one answers, also with
 * a refusal. */
int admission_ask(struct context *, const struct token *,
    const struct channel_identity *, struct admission *, struct err *);

#endif
