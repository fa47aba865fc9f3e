/*
 * secret.h: a process that handles keys: libsodium ready, no core dumps,
 * memory for secrets that is locked and wiped.
 */
#ifndef MUSTER_SECRET_H
#define MUSTER_SECRET_H

#include <stddef.h>

#include "common/base/err.h"

#define KEY_SIZE      32 /* X25519 and Ed25519 public keys, hashes */
#define TOKEN_ID_SIZE 8	 /* the public half of an enrollment token */

/* Starts libsodium and forbids core dumps and ptrace by others.  Once, at
 * the start of each program. */
int secret_init(struct err *);

/* Wipes; never optimised away. */
void secret_wipe(void *, size_t);

/* Overwrites a secret that came in argv, so that ps shows it no longer. */
void secret_scrub_arg(char *arg);

/*
 * Reads one line (a passphrase) from fd, without its newline, or from the
 * terminal without echo when fd is -1.  `prompt` goes to the terminal.
 */
int secret_read_line(int fd, const char *prompt, char *buf, size_t size,
    struct err *);

#endif
