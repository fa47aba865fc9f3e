/*
 * json_table.h: JSON objects as rows of a table: what a proxy answers.  With
 * --json an object is printed whole; else its fields as columns, for people
 * (3d4h, 1.5M) on a terminal and as plain numbers in a pipe.
 *
 * Rows come in any order and are printed in that of `before`.
 */
#ifndef CLUSTERCTL_JSON_TABLE_H
#define CLUSTERCTL_JSON_TABLE_H

#include <jansson.h>

#include "clusterctl/output.h"

enum cell_kind {
	CELL_TEXT,
	CELL_STATE, /* text, coloured: up, serving are well */
	CELL_NUMBER,
	CELL_RATE,    /* a real, one digit */
	CELL_SECONDS, /* a real, two digits */
	CELL_AGE,     /* ms */
	CELL_US,      /* a short time in us */
	CELL_KB,      /* kibibytes */
	CELL_BYTES
};

struct json_column {
	const char *title, *field;
	enum cell_kind kind;
};

struct json_table;

/* Columns are borrowed.  before: as in qsort(3), on objects. */
struct json_table *json_table_new(const struct json_column *, size_t n,
    int (*before)(json_t *, json_t *));

/* A row; steals the reference. */
void json_table_add(struct json_table *, json_t *take);

size_t json_table_n(const struct json_table *);

/* Prints, and frees. */
void json_table_end(struct json_table *);

/* For `before`: fields as text, and as numbers, greatest first. */
int json_compare_text(json_t *, json_t *, const char *field);
int json_compare_most(json_t *, json_t *, const char *field);

#endif
