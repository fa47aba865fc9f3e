/*
 * err.h: one failure, as one sentence that reaches a person.
 *
 * A function that can fail returns 0 or -1 and fills its last argument.  The
 * code decides the exit status of clusterctl and travels on the wire; the
 * text names the object, the operation, the cause and the remedy.
 */
#ifndef MUSTER_ERR_H
#define MUSTER_ERR_H

#define PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))

/* Numbers below 16 are exit statuses; all of them are wire codes, and never
 * change their meaning. */
enum err_code {
	ERR_NONE = 0,
	ERR_COMMAND = 1,     /* a remote command failed */
	ERR_USAGE = 2,	     /* a refused value, name or option */
	ERR_NO_TARGET = 3,   /* no such node, role, site, operator, token */
	ERR_UNREACHABLE = 4, /* no answer, refused connection, broken off */
	ERR_TIMEOUT = 5,
	ERR_BUDGET = 6, /* --max-fail is spent */
	ERR_DENIED = 7, /* not allowed (also: expired, revoked) */
	ERR_LOCAL = 8,	/* this machine: files, registry, memory */
	/* Finer codes: each has an exit status in the table of err.c. */
	ERR_EXPIRED = 16, /* certificate or token is past its time */
	ERR_NOT_YET = 17, /* certificate is from the future (clocks) */
	ERR_REVOKED = 18,
	ERR_STRANGER = 19, /* no certificate of this cluster */
	ERR_CONFLICT = 20, /* the name is taken by another key */
	ERR_BUSY = 21,
	ERR_PROTOCOL = 22, /* the peer broke the protocol */
	ERR_VERSION = 23,  /* no protocol version in common, newer schema */
	ERR_LOCKED = 24,   /* the authority key is under its passphrase */
	ERR_CORRUPT = 25,  /* a stored file or record is damaged */
	ERR_PENDING = 26,  /* waits for an approval */
	ERR_LATE = 27	   /* came too late: nothing was begun */
};

struct err {
	int code;	/* enum err_code */
	char text[240]; /* one sentence; no newline, no secret */
};

/* Sets code and text.  Control bytes in the text become '?'.  Returns -1. */
int err_set(struct err *, int code, const char *fmt, ...) PRINTF(3, 4);

/* As err_set, with ": " and the words for errno behind it.  Returns -1. */
int err_errno(struct err *, int code, const char *fmt, ...) PRINTF(3, 4);

/* Puts "<fmt>: " before the text; the code stays.  Returns -1. */
int err_wrap(struct err *, const char *fmt, ...) PRINTF(2, 3);

/* The exit status that stands for a code (see clusterctl(8)). */
int err_exit_status(int code);

/* A stable word for a code ("denied", "expired"), for logs and JSON. */
const char *err_word(int code);

#endif
