/*
 * listeners.h: the listening sockets, which the master opens and holds for
 * its life.
 *
 * Each TCP address has one socket a worker (SO_REUSEPORT: the kernel spreads
 * the connections, no worker wakes another); a Unix path has one for all.
 * The sockets outlive a crashed worker, with whatever waits in them.
 */
#ifndef MUSTER_LISTENERS_H
#define MUSTER_LISTENERS_H

#include <stddef.h>

#include "common/base/err.h"

#define LISTENER_TEXT_MAX 128
#define LISTENER_ALL	  (-1) /* for every worker */

struct listener {
	char text[LISTENER_TEXT_MAX]; /* "127.0.0.1:80", "unix:/run/x" */
	int worker;		      /* its position, or LISTENER_ALL */
	int fd;
};

struct listeners {
	struct listener *rows;
	size_t n;
};

/*
 * Opens what `list` (addresses split by one space; "" for none) and the
 * number of workers ask for and is not open yet, then closes what they no
 * longer do.  When one cannot be opened nothing has changed.
 */
int listeners_apply(struct listeners *, const char *list, unsigned n_workers,
    struct err *);

/* Takes one from a predecessor. */
int listeners_take(struct listeners *, const char *text, int worker, int fd,
    struct err *);

void listeners_close(struct listeners *);

/* A Unix socket for us alone (0600). */
int listener_open_private(const char *path, int *fd, struct err *);

#endif
