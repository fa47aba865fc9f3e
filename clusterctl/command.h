/*
 * command.h: what a command of clusterctl is: one row that says everything
 * about it.  Each cmd_<verb>.c defines its rows; commands.c lists them.
 *
 * A name of two words ("node add") makes a family; --help of the first word
 * alone lists it.
 */
#ifndef CLUSTERCTL_COMMAND_H
#define CLUSTERCTL_COMMAND_H

#include <stdbool.h>
#include <stddef.h>

#include "clusterctl/context.h"
#include "clusterctl/fields.h"
#include "clusterctl/opts.h"
#include "common/base/err.h"

enum command_section {
	SECTION_RUN,	  /* orders to nodes */
	SECTION_NODES,	  /* nodes, roles, enrollment */
	SECTION_SITES,	  /* sites and traffic */
	SECTION_REGISTRY, /* registry, settings, operators, audit */
	SECTION_SELF,	  /* help, version, completion */
	N_SECTIONS
};

#define ANY_NUMBER (-1)

struct command {
	const char *name;     /* "exec", "node add" */
	const char *usage;    /* behind the name: "[options] SET COMMAND..." */
	const char *summary;  /* one line, no full stop */
	const char *about;    /* whole lines, or NULL */
	const char *examples; /* whole lines, or NULL */
	enum command_section section;
	unsigned needs; /* NEEDS_* of context.h, opened before run() */
	const struct opt_set *sets; /* its own options; may be NULL */
	size_t n_sets;
	size_t opts_size; /* of the struct that the sets fill */
	/* Options that a table of the registry describes; fields.h. */
	const struct option_table *fields;
	size_t fields_offset;	/* of a struct field_values in that struct */
	int min_args, max_args; /* max: ANY_NUMBER */
	/* As in struct opt_line: where the options end. */
	int (*n_leading)(const void *opts);
	/* The exit status, or -1 with an err that is printed.  argv holds the
	 * arguments alone. */
	int (*run)(struct context *, const void *opts, int argc, char **argv,
	    struct err *);
};

/* Shorthand for the usual case: one set that fills the whole struct. */
#define OPTS_OF(table, type)                                 \
	.sets = &(const struct opt_set){ .title = "Options", \
		.rows = (table),                             \
		.n = nitems(table) },                        \
	.n_sets = 1, .opts_size = sizeof(type)

/* Options that every command knows. */
struct global_opts {
	const char *state;
	bool json, no_color, version, help;
	unsigned verbose;
};

/* A command line, understood. */
struct invocation {
	const struct command *command; /* NULL: help alone */
	const char *family;	       /* "node" when only that was given */
	struct global_opts global;
	void *opts; /* of command->opts_size bytes */
	int argc;
	char **argv;
};

/* The command of index i in help order, or NULL behind the last. */
const struct command *command_at(size_t i);

/* A command by name ("node add"), or NULL. */
const struct command *command_find(const char *name);

/* The sets of options of a command, its fields last; NULL behind them. */
const struct opt_set *command_set(const struct command *, size_t i);

/* Options that hold for every command. */
const struct opt_set *command_global_opts(void);

/* Understands argv (without the program's name).  opts is the caller's to
 * free, also after a failure. */
int command_parse(struct invocation *, int argc, char **argv, struct err *);

/* --help of a command, of a family ("node"), of all (NULL, NULL). */
void command_help(const struct command *, const char *family);

/* "unknown command 'exce'; did you mean exec?"  Returns -1. */
int command_unknown(const char *name, struct err *);

#endif
