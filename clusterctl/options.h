/*
 * options.h: command-line options as tables.  One row describes an option;
 * the same rows parse the command line, print --help and drive the shell
 * completion, so that they cannot disagree.
 *
 * Long options take "--name value" or "--name=value", short ones "-n value"
 * or "-nvalue"; flags bundle ("-gq"); "--" ends the options.  A long option
 * may be cut as long as it stays unique.
 */
#ifndef CLUSTERCTL_OPTIONS_H
#define CLUSTERCTL_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

#define OPTION_LIST_MAX 128
#define OPTION_SETS_MAX 6

enum option_type {
	OPTION_FLAG,	 /* bool */
	OPTION_COUNT,	 /* unsigned: how often it was given */
	OPTION_TEXT,	 /* const char *: borrowed from argv */
	OPTION_LIST,	 /* struct option_list: every time it was given */
	OPTION_NUMBER,	 /* uint64_t, min to max */
	OPTION_DURATION, /* int64_t milliseconds, at most max */
	OPTION_CHOICE,	 /* const char *, one of `choices` */
	OPTION_HOOK	 /* hook() decides, also whether it takes a value */
};

struct option_list {
	size_t n;
	const char *v[OPTION_LIST_MAX];
};

/* What a hook is told and tells. */
struct option_word {
	const char *value; /* "--x=value", else the next word, else NULL */
	bool attached;	   /* value stood in the same word */
	int n_args;	   /* arguments seen so far */
	bool used;	   /* set by the hook: the value was taken */
};

struct option {
	const char *name; /* long, without "--" */
	char letter;	  /* short; 0: none */
	enum option_type type;
	size_t offset;	     /* of the field in the set's struct */
	const char *arg;     /* what --help calls the value; NULL: none */
	const char *help;    /* one line, no full stop */
	const char *initial; /* parsed when not given; shown by --help */
	uint64_t min, max;
	const char *choices; /* "kill|keep" */
	int (*hook)(void *into, struct option_word *, struct err *);
};

/* Rows that fill one struct. */
struct option_set {
	const char *title; /* over its rows in --help */
	const struct option *rows;
	size_t n;
	size_t offset; /* of that struct in the command's own */
};

/* A set and the storage it fills. */
struct option_home {
	const struct option_set *set;
	void *into;
};

struct options {
	const struct option_home *homes;
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
int options_parse(const struct options *, int argc, char **argv, int *n_args,
    struct err *);

/* Prints the rows of a set as --help shows them. */
void options_help(const struct option_set *);

/* The row of a long name or NULL. */
const struct option *options_find(const struct option_set *, const char *name);

#endif
