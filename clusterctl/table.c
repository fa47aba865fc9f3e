/* table.c: the tables of output.h: rows once, in any of three forms. */
#include "clusterctl/output.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/io.h"
#include "clusterctl/xalloc.h"

struct cell {
	char *text; /* NULL: nothing known */
	enum colour colour;
};

struct table {
	const struct column *columns;
	size_t n_columns;
	unsigned form;			 /* the ON_* bit of this output */
	size_t width[TABLE_COLUMNS_MAX]; /* on a terminal */
	struct cell *cells;		 /* row by row */
	size_t n_cells, cells_room;
};

static void end_cell(struct table *, char *take);
static bool shown(const struct table *, size_t column);
static bool next_shown(const struct table *);
static void print_titles(const struct table *);
static void print_row_tty(const struct table *, const struct cell *);
static void print_row_plain(const struct table *, const struct cell *);
static void print_row_json(const struct table *, const struct cell *);
static json_t *json_of(enum column_kind, const char *text);
static json_t *json_list(const char *text);
static void pad(size_t n);
static void free_cells(struct table *);

struct table *
table_new(const struct column *columns, size_t n)
{
	struct table *t = xcalloc(1, sizeof(*t));

	assert(n <= TABLE_COLUMNS_MAX);
	t->columns = columns;
	t->n_columns = n;
	t->form = output_is_json() ? ON_JSON :
	    output_is_tty()	   ? ON_TTY :
				     ON_PIPE;
	for (size_t i = 0; i < t->n_columns; i++)
		t->width[i] = output_width(columns[i].title);
	return t;
}

void
table_put(struct table *t, const char *text)
{
	end_cell(t, text != NULL && next_shown(t) ? xstrdup(text) : NULL);
}

void
table_putf(struct table *t, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	table_put(t, text);
}

void
table_put_number(struct table *t, int64_t n)
{
	table_putf(t, "%lld", (long long)n);
}

void
table_put_bool(struct table *t, bool yes)
{
	table_put(t, yes ? "yes" : "no");
}

void
table_put_list(struct table *t, const char *const *words, size_t n)
{
	size_t size = 1;
	char *text, *p;

	if (!next_shown(t)) {
		end_cell(t, NULL);
		return;
	}
	for (size_t i = 0; i < n; i++)
		size += strlen(words[i]) + 1;
	p = text = xcalloc(1, size);
	for (size_t i = 0; i < n; i++) {
		if (i > 0)
			*p++ = ',';
		p = stpcpy(p, words[i]);
	}
	end_cell(t, text);
}

void
table_colour(struct table *t, enum colour c)
{
	if (t->n_cells > 0)
		t->cells[t->n_cells - 1].colour = c;
}

void
table_end(struct table *t)
{
	if (t->form == ON_TTY && t->n_cells > 0)
		print_titles(t);
	if (t->form == ON_TTY)
		for (size_t i = 0; i < t->n_cells; i += t->n_columns)
			print_row_tty(t, &t->cells[i]);
	free_cells(t);
	free(t->cells);
	free(t);
}

/* A terminal's table needs all rows for its widths; the other forms print
 * each row when it is complete. */
static void
end_cell(struct table *t, char *take)
{
	size_t column = t->n_cells % t->n_columns, width;

	for (char *p = take; p != NULL && *p != '\0'; p++)
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			*p = '?';
	if (t->n_cells == t->cells_room) {
		t->cells_room = t->cells_room * 2 + 4 * t->n_columns;
		t->cells =
		    xreallocarray(t->cells, t->cells_room, sizeof(*t->cells));
	}
	t->cells[t->n_cells++] = (struct cell){ .text = take };
	if (t->form == ON_TTY) {
		width = take != NULL ? output_width(take) : 1;
		if (width > t->width[column])
			t->width[column] = width;
	} else if (column + 1 == t->n_columns) {
		if (t->form == ON_JSON)
			print_row_json(t, t->cells);
		else
			print_row_plain(t, t->cells);
		free_cells(t);
	}
}

static bool
shown(const struct table *t, size_t column)
{
	unsigned where = t->columns[column].where;

	return where == 0 || (where & t->form) != 0;
}

/* Texts that no row will show are not kept. */
static bool
next_shown(const struct table *t)
{
	return shown(t, t->n_cells % t->n_columns);
}

static void
print_titles(const struct table *t)
{
	struct cell titles[TABLE_COLUMNS_MAX];

	for (size_t i = 0; i < t->n_columns; i++)
		titles[i] =
		    (struct cell){ (char *)t->columns[i].title, COLOUR_BOLD };
	print_row_tty(t, titles);
}

static void
print_row_tty(const struct table *t, const struct cell *row)
{
	size_t owed = 0; /* blanks that the next cell, if any, needs */
	bool first = true;

	for (size_t i = 0; i < t->n_columns; i++) {
		const char *text = row[i].text != NULL ? row[i].text : "-";
		size_t blanks = t->width[i] - output_width(text);
		bool right = t->columns[i].kind == COLUMN_NUMBER;

		if (!shown(t, i))
			continue;
		pad(owed + (first ? 0 : 2) + (right ? blanks : 0));
		if (row[i].colour != COLOUR_NONE)
			printf("%s%s%s", output_colour(row[i].colour), text,
			    output_colour(COLOUR_NONE));
		else
			fputs(text, stdout);
		owed = right ? 0 : blanks;
		first = false;
	}
	putchar('\n');
}

static void
print_row_plain(const struct table *t, const struct cell *row)
{
	bool first = true;

	for (size_t i = 0; i < t->n_columns; i++) {
		if (!shown(t, i))
			continue;
		if (!first)
			putchar('\t');
		fputs(row[i].text != NULL ? row[i].text : "-", stdout);
		first = false;
	}
	putchar('\n');
}

static void
print_row_json(const struct table *t, const struct cell *row)
{
	json_t *o = json_object();

	for (size_t i = 0; i < t->n_columns; i++)
		if (shown(t, i))
			json_object_set_new(o, t->columns[i].key,
			    json_of(t->columns[i].kind, row[i].text));
	output_json(o);
}

static json_t *
json_of(enum column_kind kind, const char *text)
{
	json_t *v = NULL;

	if (text == NULL)
		return json_null();
	switch (kind) {
	case COLUMN_TEXT:
		v = json_string(text);
		break;
	case COLUMN_NUMBER:
		v = strchr(text, '.') != NULL ?
		    json_real(strtod(text, NULL)) :
		    json_integer(strtoll(text, NULL, 10));
		break;
	case COLUMN_BOOL:
		v = json_boolean(strcmp(text, "yes") == 0);
		break;
	case COLUMN_LIST:
		v = json_list(text);
		break;
	}
	return v != NULL ? v : json_null();
}

static json_t *
json_list(const char *text)
{
	json_t *list = json_array();

	while (*text != '\0') {
		size_t n = strcspn(text, ",");

		json_array_append_new(list, json_stringn(text, n));
		text += n + (text[n] == ',');
	}
	return list;
}

static void
pad(size_t n)
{
	printf("%*s", (int)n, "");
}

static void
free_cells(struct table *t)
{
	for (size_t i = 0; i < t->n_cells; i++)
		free(t->cells[i].text);
	t->n_cells = 0;
}
