/*
 * output.h: everything that clusterctl says.  Results go to standard output:
 * tables on a terminal, plain tab-separated lines in a pipe, one JSON object
 * a line with --json.  Remarks and errors go to standard error, each as
 * "clusterctl: sentence".
 *
 * One table serves the three forms, so a command lists its rows once.
 */
#ifndef CLUSTERCTL_OUTPUT_H
#define CLUSTERCTL_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "common/base/err.h"

enum colour {
	COLOUR_NONE,
	COLOUR_RED,
	COLOUR_GREEN,
	COLOUR_YELLOW,
	COLOUR_BOLD,
	COLOUR_DIM
};

enum column_kind {
	COLUMN_TEXT,
	COLUMN_NUMBER, /* to the right; a JSON number */
	COLUMN_BOOL,   /* "yes" or "no"; true or false */
	COLUMN_LIST    /* comma-separated; a JSON array of strings */
};

enum { ON_TTY = 1, ON_PIPE = 2, ON_JSON = 4 };

struct column {
	const char *title; /* on a terminal */
	const char *key;   /* JSON field */
	enum column_kind kind;
	unsigned where; /* ON_* bits; 0: everywhere */
};

struct table;

#define TABLE_COLUMNS_MAX 32

/* Once, at the start.  Colours: on a terminal, unless no_color or $NO_COLOR. */
void output_open(bool json, bool no_color);

bool output_is_json(void);
bool output_is_tty(void); /* standard output is a terminal */
bool output_has_colour(void);

/* The escape sequence that starts a colour, "" where there are none;
 * COLOUR_NONE ends it. */
const char *output_colour(enum colour);

/* Columns are borrowed. */
struct table *table_new(const struct column *, size_t n);

/* The next cell; the last one of a row ends it.  NULL: "-", JSON null.
 * Control bytes become '?'. */
void table_put(struct table *, const char *text);
void table_putf(struct table *, const char *fmt, ...) PRINTF(2, 3);
void table_put_number(struct table *, int64_t);
void table_put_bool(struct table *, bool);
void table_put_list(struct table *, const char *const *words, size_t n);

/* Colours the cell that was put last. */
void table_colour(struct table *, enum colour);

/* Prints what is left to print, and frees. */
void table_end(struct table *);

/* One object, one line; steals the reference. */
void output_json(json_t *take);

/* "clusterctl: ..." on standard error. */
void output_error(const struct err *);
void output_note(const char *fmt, ...) PRINTF(1, 2);

/*
 * Flushes.  Returns the exit status to leave with: `status`, or ERR_LOCAL's
 * after saying what could not be written.  A reader that went away (head)
 * ends the program quietly, by SIGPIPE as any filter.
 */
int output_close(int status);

/* Ends the program so. */
_Noreturn void output_reader_gone(void);

/* Columns that a text takes on a terminal. */
size_t output_width(const char *text);

#endif
