/*
 * ipc.h: messages between the master and its children (workers, the
 * follower) and between an old master and a new one: a sequenced-packet
 * socket, one message a packet, at most one descriptor with it.
 *
 * Both ends are the same program, or two versions of it in an upgrade; what
 * crosses an upgrade is text and descriptors only.
 */
#ifndef MUSTER_IPC_H
#define MUSTER_IPC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

#define IPC_TEXT_MAX 8192
#define IPC_CHILD_FD 3 /* where a child finds its end */

enum ipc_type {
	/* To a worker. */
	IPC_SCOREBOARD = 1, /* fd; number: the slot */
	IPC_LOG_RING,	    /* fd */
	IPC_SNAPSHOT,	    /* fd; number: the revision */
	IPC_LISTENER,	    /* fd; text: its address; number: its kind */
	IPC_UNLISTEN,	    /* close all listeners; others may follow */
	IPC_START,	    /* text: the account to run as, "" for ours */
	IPC_DRAIN,	    /* number: ms from now until what is left is cut */
	/* From a worker, and from a new master. */
	IPC_READY,
	IPC_FAILED, /* number: err code; text: why it does not start */
	/* From the follower: IPC_SETTINGS, IPC_CERTS if there is something new,
	 * IPC_SNAPSHOT; or IPC_FAILED. */
	IPC_SETTINGS, /* text: the settings, as JSON */
	/* To a new master: IPC_SCOREBOARD, IPC_LISTENER, and */
	IPC_LOCK,	     /* fd */
	IPC_ADMIN,	     /* fd */
	IPC_STATUS_LISTENER, /* fd; text: its address */
	IPC_END,	     /* that was all */
	/* Later ones stand here: the numbers cross an upgrade. */
	IPC_CERTS,   /* from the follower, to a worker: fd */
	IPC_TICKETS, /* to a worker, to a new master: text: ticket keys */
	IPC_SPOOL,   /* to a worker: fd: its file for bodies */
	IPC_OPENER, /* to a worker: fd: its opener's socket, also a new one's */
	IPC_N_TYPES
};

struct ipc_message {
	uint32_t type; /* enum ipc_type */
	int64_t number;
	int fd; /* -1: none; a received one is the receiver's */
	char text[IPC_TEXT_MAX];
};

/* Both ends close-on-exec; fds[0] non-blocking, for the event loop. */
int ipc_pair(int fds[2], struct err *);

/* text may be NULL.  ERR_BUSY: the other end does not read.  ERR_UNREACHABLE:
 * it has ended, which is for whoever reaps it to judge, not a fault here. */
int ipc_send(int fd, enum ipc_type, int64_t number, int pass_fd,
    const char *text, struct err *);

/* Returns 1, 0 at the end of the stream, -1; ERR_BUSY: nothing there now. */
int ipc_recv(int fd, struct ipc_message *, struct err *);

/* Waits so long for the other end to go away; whether it has. */
bool ipc_has_ended(int fd, int wait_ms);

#endif
