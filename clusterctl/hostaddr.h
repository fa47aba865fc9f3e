/*
 * hostaddr.h: what this machine seems to be called and where others reach
 * it, for the defaults of `clusterctl init`.
 */
#ifndef CLUSTERCTL_HOSTADDR_H
#define CLUSTERCTL_HOSTADDR_H

#include <stdint.h>

#include "common/base/addr.h"
#include "common/base/err.h"
#include "common/base/name.h"

/* The address that the default route leaves from, else that of the first
 * interface that is up; never loopback or link-local.  ERR_USAGE asks for
 * --address when there is none. */
int hostaddr_guess(uint16_t port, struct addr *, struct err *);

/* The host name up to its first dot, in lower case.  ERR_USAGE asks for
 * --name when that is no node name. */
int hostname_guess(char name[NAME_MAX_LEN + 1], struct err *);

#endif
