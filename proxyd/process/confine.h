/*
 * confine.h: a worker gives up what it does not need: the account, the file
 * system, capabilities, new privileges, and the system calls that only an
 * intruder would want.
 */
#ifndef MUSTER_CONFINE_H
#define MUSTER_CONFINE_H

#include "common/base/err.h"

/*
 * user: the account to become; "" or when we are not root: stay what we are.
 * Root that cannot be left is an error; a kernel without seccomp is not.
 */
int confine(const char *user, struct err *);

#endif
