/* json_table.c: see json_table.h. */
#include "clusterctl/json_table.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clusterctl/xalloc.h"
#include "common/base/text.h"

/* A row and where it came, so that the order of equals is theirs. */
struct row {
	json_t *o;
	size_t at;
};

struct json_table {
	const struct json_column *columns;
	size_t n_columns;
	int (*before)(json_t *, json_t *);
	struct row *rows;
	size_t n, room;
};

static int compare_rows(const void *, const void *, void *);
static void print(const struct json_table *);
static void put_cell(struct table *, enum cell_kind, json_t *);
static void put_state(struct table *, const char *);
static void put_scaled(struct table *, enum cell_kind, json_int_t);

struct json_table *
json_table_new(const struct json_column *columns, size_t n,
    int (*before)(json_t *, json_t *))
{
	struct json_table *t = xcalloc(1, sizeof(*t));

	assert(n <= TABLE_COLUMNS_MAX);
	t->columns = columns;
	t->n_columns = n;
	t->before = before;
	return t;
}

void
json_table_add(struct json_table *t, json_t *take)
{
	if (t->n == t->room) {
		t->room = t->room * 2 + 64;
		t->rows = xreallocarray(t->rows, t->room, sizeof(*t->rows));
	}
	t->rows[t->n] = (struct row){ take, t->n };
	t->n++;
}

size_t
json_table_n(const struct json_table *t)
{
	return t->n;
}

void
json_table_end(struct json_table *t)
{
	if (t->n > 0)
		qsort_r(t->rows, t->n, sizeof(*t->rows), compare_rows, t);
	if (output_is_json())
		for (size_t i = 0; i < t->n; i++)
			output_json(json_incref(t->rows[i].o));
	else
		print(t);
	for (size_t i = 0; i < t->n; i++)
		json_decref(t->rows[i].o);
	free(t->rows);
	free(t);
}

int
json_compare_text(json_t *a, json_t *b, const char *field)
{
	const char *x = json_string_value(json_object_get(a, field));
	const char *y = json_string_value(json_object_get(b, field));

	return strcmp(x != NULL ? x : "", y != NULL ? y : "");
}

int
json_compare_most(json_t *a, json_t *b, const char *field)
{
	json_int_t x = json_integer_value(json_object_get(a, field));
	json_int_t y = json_integer_value(json_object_get(b, field));

	return (x < y) - (x > y);
}

static int
compare_rows(const void *a, const void *b, void *arg)
{
	const struct json_table *t = arg;
	const struct row *x = a, *y = b;
	int c = t->before(x->o, y->o);

	return c != 0 ? c : (x->at > y->at) - (x->at < y->at);
}

static void
print(const struct json_table *t)
{
	struct column columns[TABLE_COLUMNS_MAX] = { 0 };
	struct table *table;

	for (size_t i = 0; i < t->n_columns; i++) {
		columns[i].title = t->columns[i].title;
		columns[i].kind = t->columns[i].kind > CELL_STATE ?
		    COLUMN_NUMBER :
		    COLUMN_TEXT;
	}
	table = table_new(columns, t->n_columns);
	for (size_t i = 0; i < t->n; i++)
		for (size_t j = 0; j < t->n_columns; j++)
			put_cell(table, t->columns[j].kind,
			    json_object_get(t->rows[i].o, t->columns[j].field));
	table_end(table);
}

static void
put_cell(struct table *t, enum cell_kind kind, json_t *v)
{
	const char *text = json_string_value(v);

	if (text != NULL) {
		if (kind == CELL_STATE)
			put_state(t, text);
		else
			table_put(t, *text != '\0' ? text : NULL);
	} else if (json_is_boolean(v)) {
		table_put_bool(t, json_is_true(v));
	} else if (!json_is_number(v)) {
		table_put(t, NULL);
	} else if (kind == CELL_RATE || kind == CELL_SECONDS) {
		table_putf(t, kind == CELL_RATE ? "%.1f" : "%.2f",
		    json_number_value(v));
	} else if (output_is_tty()) {
		put_scaled(t, kind, json_integer_value(v));
	} else {
		table_put_number(t, json_integer_value(v));
	}
}

static void
put_state(struct table *t, const char *state)
{
	static const struct {
		const char *state;
		enum colour colour;
	} colours[] = {
		{ "up", COLOUR_GREEN },
		{ "serving", COLOUR_GREEN },
		{ "down", COLOUR_RED },
		{ "ejected", COLOUR_RED },
		{ NULL, COLOUR_YELLOW },
	};
	size_t i = 0;

	while (colours[i].state != NULL && strcmp(colours[i].state, state) != 0)
		i++;
	table_put(t, state);
	table_colour(t, colours[i].colour);
}

static void
put_scaled(struct table *t, enum cell_kind kind, json_int_t n)
{
	char text[32];

	switch (kind) {
	case CELL_AGE:
		text_format_duration(n >= 1000 ? n / 1000 * 1000 : n, text,
		    sizeof(text));
		break;
	case CELL_US:
		if (n < 1000)
			snprintf(text, sizeof(text), "%lldus", (long long)n);
		else if (n < 1000000)
			snprintf(text, sizeof(text), "%.1fms",
			    (double)n / 1000);
		else
			text_format_duration(n / 1000, text, sizeof(text));
		break;
	case CELL_KB:
		text_format_size((uint64_t)n * 1024, text, sizeof(text));
		break;
	case CELL_BYTES:
		text_format_size((uint64_t)n, text, sizeof(text));
		break;
	default:
		snprintf(text, sizeof(text), "%lld", (long long)n);
		break;
	}
	table_put(t, text);
}
