/*
 * exec_pty.h: --pty: our terminal becomes the terminal of a command on one
 * node: raw keys there, raw bytes here, its size followed.  Ctrl-C is a key
 * like any other; it goes to the command.
 */
#ifndef CLUSTERCTL_EXEC_PTY_H
#define CLUSTERCTL_EXEC_PTY_H

#include <jansson.h>

#include "clusterctl/fanout.h"

struct exec_pty;

/* ERR_USAGE when standard input is no terminal. */
struct exec_pty *exec_pty_new(struct context *, struct err *);
/* Gives the terminal back as it was. */
void exec_pty_free(struct exec_pty *);

/* {"rows", "cols", "term"}, the caller's. */
json_t *exec_pty_request(const struct exec_pty *);

/* The session is open: keys go there from now on. */
int exec_pty_start(struct exec_pty *, struct task *, struct err *);
int exec_pty_output(struct exec_pty *, const void *bytes, size_t n,
    struct err *);
/* The queue is short again: keys are read on. */
void exec_pty_more(struct exec_pty *);
void exec_pty_stop(struct exec_pty *);

#endif
