/*
 * passphrase.h: asking for the passphrase of the authority key.
 */
#ifndef CLUSTERCTL_PASSPHRASE_H
#define CLUSTERCTL_PASSPHRASE_H

#include <stdbool.h>

#include "common/base/err.h"
#include "common/net/authority.h"

#define PASSPHRASE_SIZE (AUTHORITY_PASSPHRASE_MAX + 1)

/*
 * One line from the descriptor that --passphrase-fd names, or from the
 * terminal when fd is NULL, there twice if it is a new one.  The caller
 * wipes buf.
 */
int passphrase_read(const char *fd, bool is_new, char buf[PASSPHRASE_SIZE],
    struct err *);

#endif
