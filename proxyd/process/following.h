/*
 * following.h: the master's end of the follower (follower.h): starts it,
 * starts another when it dies, and takes what it sends.
 *
 * Only one follower may run: it alone gives out rows of the scoreboard.  So
 * it is stopped, and its end awaited, before a new master starts its own.
 */
#ifndef MUSTER_FOLLOWING_H
#define MUSTER_FOLLOWING_H

#include <sys/types.h>
#include <stdbool.h>
#include <stdint.h>

#include <event2/event.h>

#include "common/base/err.h"
#include "proxyd/process/scoreboard.h"

struct following;

struct following_handlers {
	void (*settings)(const char *json, void *arg);
	/* fd: a certificate image, the receiver's. */
	void (*certs)(int fd, void *arg);
	/* Settings came before.  fd is the receiver's. */
	void (*snapshot)(int fd, int64_t revision, void *arg);
	/* There is no first snapshot, and why. */
	void (*failed)(const struct err *, void *arg);
	/* It has ended, as it was asked to. */
	void (*stopped)(void *arg);
};

/* args: of the program for the follower, ending with NULL.  Borrows all. */
struct following *following_new(struct event_base *, const char *const *args,
    const struct scoreboard *, const struct following_handlers *, void *arg,
    struct err *);
void following_free(struct following *);

/* fresh_board: counters are to be restored from disk.  Once only. */
int following_start(struct following *, bool fresh_board, struct err *);

/* Asks it to save what must be kept, and to end; `stopped` is called then,
 * or now if none runs. */
void following_stop(struct following *);

/* From the reaper: whether the process was it. */
bool following_reaped(struct following *, pid_t, int wait_status);

#endif
