/*
 * exec.h: what the parts of `clusterctl exec` share: the options, and what
 * one session holds.  cmd_exec.c understands the line, exec_job.c talks to
 * the nodes, exec_output.c says what they said, exec_stdin.c feeds them,
 * exec_pty.c lends one of them the terminal.
 */
#ifndef CLUSTERCTL_EXEC_H
#define CLUSTERCTL_EXEC_H

#include "clusterctl/exec_output.h"
#include "clusterctl/exec_pty.h"
#include "clusterctl/exec_stdin.h"
#include "clusterctl/fanout.h"
#include "clusterctl/pace.h"
#include "clusterctl/targets.h"

struct exec_opts {
	struct target_opts targets;
	/* what runs */
	bool shell, argv, pty;
	const char *user, *cwd, *on_disconnect;
	struct opt_list env;
	const char *timeout;
	bool dry_run;
	struct pace_opts pace;
	/* what is said */
	bool gather, prefix, diff, quiet, no_label, remote_status;
	const char *outdir, *errdir;
};

struct exec {
	const struct exec_opts *opts;
	struct context *cx;
	int64_t timeout_ms; /* 0: none */
	char *request;	    /* the same bytes for every node */
	struct exec_output *output;
	struct exec_stdin *input; /* NULL: none is sent */
	struct exec_pty *pty;	  /* NULL: none */
	struct fanout *fanout;
	int worst_status;    /* the largest remote exit status */
	uint64_t stdin_used; /* by the node that used most */
};

/* What a session holds. */
struct exec_task {
	bool began; /* the streams are there */
	struct exec_streams streams;
	struct exec_reader reader;
	double seconds; /* as the node says; 0: unknown */
};

/* The request for argv[argc], the command alone.  NULL and ERR_USAGE: too
 * large, not UTF-8. */
char *exec_request(const struct exec *, int argc, char **argv, struct err *);

extern const struct fanout_job exec_job; /* arg: struct exec */

#endif
