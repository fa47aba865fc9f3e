/*
 * confine.h: a child gives up what it does not need: the account, the file
 * system, capabilities, new privileges, and the system calls that only an
 * intruder would want.
 */
#ifndef MUSTER_CONFINE_H
#define MUSTER_CONFINE_H

#include "common/base/err.h"

enum confine_kind {
	CONFINE_WORKER, /* opens no file */
	CONFINE_OPENER, /* opens files (openat2 alone), and no socket */
};

/*
 * user: the account to become; "" or when we are not root: stay what we are.
 * Root that cannot be left is an error; a kernel without seccomp is not.
 */
int confine(const char *user, enum confine_kind, struct err *);

#endif
