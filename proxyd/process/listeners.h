/*
 * listeners.h: the listening sockets, which the master opens and holds for
 * its life.
 *
 * Each TCP address has one socket a worker (SO_REUSEPORT: the kernel spreads
 * the connections, no worker wakes another); a Unix path has one for all.
 * The sockets outlive a crashed worker, with whatever waits in them.
 *
 * Those of an address stay as many as there ever were workers: closing one
 * would cut off who waits in it.  With fewer workers the kernel is told to
 * send nothing new to the rest, and another worker takes what waits there.
 */
#ifndef MUSTER_LISTENERS_H
#define MUSTER_LISTENERS_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/err.h"

#define LISTENER_TEXT_MAX 128
#define LISTENER_ALL	  (-1) /* for every worker */
#define LISTENER_SECURE	  "tls:"

enum listener_kind { LISTENER_PLAIN, LISTENER_TLS };

struct listener {
	/* "127.0.0.1:80", "unix:/run/x", "tls:127.0.0.1:443" */
	char text[LISTENER_TEXT_MAX];
	int worker; /* of its address: 0, 1, ..., or LISTENER_ALL */
	int fd;
};

struct listeners {
	struct listener *rows;
	size_t n;
};

/*
 * Opens what the lists (addresses split by one space; "" for none) of plain
 * and of TLS listeners and the number of workers ask for and is not open yet,
 * then closes the addresses that are no longer there.  When one cannot be
 * opened nothing has changed; *changed says whether something has.
 */
int listeners_apply(struct listeners *, const char *plain, const char *secure,
    unsigned n_workers, bool *changed, struct err *);

/* What its clients speak. */
enum listener_kind listener_kind(const struct listener *);

/* Whether a listener is for the worker at a position, of so many. */
bool listener_is_for(const struct listener *, unsigned position,
    unsigned n_workers);

/* Takes one from a predecessor. */
int listeners_take(struct listeners *, const char *text, int worker, int fd,
    struct err *);

void listeners_close(struct listeners *);

#endif
