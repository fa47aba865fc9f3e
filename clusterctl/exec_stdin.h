/*
 * exec_stdin.h: standard input for every node.  It is read once, kept in a
 * spool, and each node gets the whole stream from its beginning, as fast as
 * it takes it.
 */
#ifndef CLUSTERCTL_EXEC_STDIN_H
#define CLUSTERCTL_EXEC_STDIN_H

#include <stdbool.h>
#include <stdint.h>

#include "clusterctl/fanout.h"
#include "clusterctl/window.h"

struct exec_stdin;

/* Where one node is. */
struct exec_reader {
	struct window window;
	bool ended; /* EOF was sent */
	bool joined;
	TAILQ_ENTRY(exec_reader) link;
	struct task *task;
};

/* Whether standard input holds anything to send: no terminal, and not
 * /dev/null. */
bool exec_stdin_there(void);

struct exec_stdin *exec_stdin_new(struct context *, struct err *);

/*
 * When standard input is a file, leaves it at what the nodes used at most,
 * so that a loop of the shell around us goes on with its next line.
 */
void exec_stdin_free(struct exec_stdin *, uint64_t used);

/* The session is open: its node gets all from the beginning. */
int exec_stdin_join(struct exec_stdin *, struct exec_reader *, struct task *,
    struct err *);
/* There may be room again: sends on. */
int exec_stdin_more(struct exec_stdin *, struct exec_reader *, struct err *);
void exec_stdin_leave(struct exec_stdin *, struct exec_reader *);

#endif
