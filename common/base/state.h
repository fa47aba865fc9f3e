/*
 * state.h: the state directory: where each file lives, and that nobody else
 * can write there.
 */
#ifndef MUSTER_STATE_H
#define MUSTER_STATE_H

#include <limits.h>
#include <stddef.h>

#include "common/base/err.h"

#define STATE_DEFAULT_DIR "/var/lib/muster"

enum state_file {
	STATE_REGISTRY,	      /* registry.db: masters only */
	STATE_AUTHORITY_KEY,  /* authority.key: masters only; secret */
	STATE_AUTHORITY_PUB,  /* authority.pub */
	STATE_NODE_KEY,	      /* node.key; secret */
	STATE_NODE_CERT,      /* node.cert */
	STATE_OPERATOR_KEY,   /* operator.key; secret */
	STATE_OPERATOR_CERT,  /* operator.cert */
	STATE_ROSTER,	      /* roster */
	STATE_AUDIT_NODE,     /* audit-node.log */
	STATE_AUDIT_OPERATOR, /* audit-operator.log */
	STATE_TLS,	      /* tls/: keys of sites; see custody.h */
	STATE_SPOOL,	      /* spool/: proxyd's files without a name */
	STATE_RUN,	      /* run/: sockets, locks; or $RUNTIME_DIRECTORY */
	STATE_N_FILES
};

struct state {
	char dir[PATH_MAX - 64];
};

/* Where --state (or NULL), $MUSTER_STATE or the default point. */
const char *state_dir(const char *option);

/*
 * Opens an existing state directory: it and every parent must belong to root
 * or to us and be writable by nobody else (a sticky parent such as /tmp is
 * allowed).  ERR_LOCAL with the offending path and the remedy otherwise.
 * Removes what killed writers left in it.
 */
int state_open(struct state *, const char *dir, struct err *);

/* Makes the directory (0700) and its parents where missing, then opens it. */
int state_create(struct state *, const char *dir, struct err *);

/* The path of a file; lives in buf. */
const char *state_path(const struct state *, enum state_file,
    char buf[PATH_MAX]);

/* Whether the file exists. */
int state_has(const struct state *, enum state_file);

/*
 * Reads a secret of exactly `size` bytes.  The file must be plain, ours and
 * 0600 (or 0400), and no symbolic link.
 */
int state_read_secret(const struct state *, enum state_file, void *secret,
    size_t size, struct err *);

#endif
