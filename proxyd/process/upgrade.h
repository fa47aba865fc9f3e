/*
 * upgrade.h: one master hands everything over to a new one, which may be
 * another version of the program: listening sockets, scoreboard, lock, admin
 * socket, keys of session tickets.  The old one goes on until the new one serves; then it drains.
 */
#ifndef MUSTER_UPGRADE_H
#define MUSTER_UPGRADE_H

#include <sys/types.h>
#include <stdbool.h>

#include <event2/event.h>

#include "common/base/err.h"
#include "proxyd/process/listeners.h"
#include "proxyd/process/scoreboard.h"
#include "proxyd/tls/ticket_keys.h"

struct legacy {
	struct listeners listeners, status;
	struct scoreboard board;
	int lock_fd, admin_fd;	 /* -1: none */
	struct ticket_keys keys; /* of session tickets; n 0: none */
	int64_t keys_ms;	 /* until they are replaced */
};

/* ---- the old one's side ------------------------------------------------ */

struct upgrade;

/* done: the successor serves (NULL), or why it does not; it is gone then. */
struct upgrade *upgrade_new(struct event_base *,
    void (*done)(const struct err *, void *arg), void *arg, struct err *);
void upgrade_free(struct upgrade *);

/* Starts the successor and gives it all of this. */
int upgrade_start(struct upgrade *, const char *program,
    const char *const *args, const struct legacy *, struct err *);

/* Kills a successor that does not serve yet. */
void upgrade_cancel(struct upgrade *);

/* From the reaper: whether the process was the successor. */
bool upgrade_reaped(struct upgrade *, pid_t, int wait_status);

/* ---- the new one's side ------------------------------------------------ */

/* Takes it from IPC_CHILD_FD.  A scoreboard that this version cannot read is
 * left out (board.head NULL). */
int upgrade_take(struct legacy *, struct err *);

/* Tells the old one: that we serve (NULL), or why not. */
void upgrade_tell(const struct err *);

#endif
