/*
 * options.h: the command line of nodeagent, as a table.
 */
#ifndef NODEAGENT_OPTIONS_H
#define NODEAGENT_OPTIONS_H

#include <stdbool.h>

#include "common/base/err.h"

struct options {
	const char *command; /* "run", "join" ... */
	const char *state;   /* --state, or NULL */
	bool verbose;
	/* run */
	const char *listen; /* NULL: the registered address */
	int ready_fd;	    /* -1: none */
	/* join */
	char *token; /* points into argv, to be scrubbed */
	const char *name, *address;
	bool no_start;
};

/* Borrows argv.  ERR_USAGE with the remedy. */
int options_parse(int argc, char **argv, struct options *, struct err *);

/* What --help shows. */
void options_help(void);

#endif
