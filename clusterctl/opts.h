/*
 * opts.h: command-line options as tables.  One row describes an option;
 * the same rows parse the command line, print --help and drive the shell
 * completion, so that they cannot disagree.
 *
 * Long options take "--name value" or "--name=value", short ones "-n value"
 * or "-nvalue"; flags bundle ("-gq"); "--" ends the options.  A long option
 * may be cut as long as it stays unique.
 */
#ifndef CLUSTERCTL_OPTS_H
#define CLUSTERCTL_OPTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

#define OPT_LIST_MAX 128
#define OPT_SETS_MAX 6

enum opt_type {
	OPT_FLAG,     /* bool */
	OPT_COUNT,    /* unsigned: how often it was given */
	OPT_TEXT,     /* const char *: borrowed from argv */
	OPT_LIST,     /* struct opt_list: every time it was given */
	OPT_NUMBER,   /* uint64_t, min to max */
	OPT_DURATION, /* int64_t milliseconds, at most max */
	OPT_CHOICE,   /* const char *, one of `choices` */
	OPT_HOOK      /* hook() decides, also whether it takes a value */
};

struct opt_list {
	size_t n;
	const char *v[OPT_LIST_MAX];
};

/* What a hook is told and tells. */
struct opt_word {
	const char *value; /* "--x=value", else the next word, else NULL */
	bool attached;	   /* value stood in the same word */
	int n_args;	   /* arguments seen so far */
	bool used;	   /* set by the hook: the value was taken */
};

struct opt {
	const char *name; /* long, without "--"; NULL: none */
	char letter;	  /* short; 0: none */
	enum opt_type type;
	size_t offset;	     /* of the field in the set's struct */
	const char *arg;     /* what --help calls the value; NULL: none */
	const char *help;    /* one line, no full stop */
	const char *initial; /* parsed when not given; shown by --help */
	uint64_t min, max;
	const char *choices; /* "kill|keep" */
	int (*hook)(void *into, struct opt_word *, struct err *);
};

/* Rows that fill one struct. */
struct opt_set {
	const char *title; /* over its rows in --help */
	const struct opt *rows;
	size_t n;
	size_t offset; /* of that struct in the command's own */
};

/* A set and the storage it fills. */
struct opt_home {
	const struct opt_set *set;
	void *into;
};

struct opt_line {
	const struct opt_home *homes;
	size_t n_homes;
	/* How many arguments may stand before the options end; asked after
	 * each argument.  NULL: options may stand anywhere. */
	int (*n_leading)(const void *opts);
	const void *opts; /* for n_leading */
};

/*
 * Fills the initial values, then parses.  Arguments that are no options are
 * moved to the front of argv, in order; *n_args counts them.  ERR_USAGE, with
 * a suggestion, for what no row knows.
 */
int opts_parse(const struct opt_line *, int argc, char **argv, int *n_args,
    struct err *);

/* Prints the rows of a set as --help shows them. */
void opts_help(const struct opt_set *);

/* The row of a long name or NULL. */
const struct opt *opts_find(const struct opt_set *, const char *name);

#endif
