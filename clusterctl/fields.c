/* fields.c: see fields.h. */
#include "clusterctl/fields.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "clusterctl/output.h"
#include "clusterctl/xalloc.h"
#include "common/base/io.h"

static const struct column columns[] = {
	{ .title = "OPTION", .key = "option" },
	{ .title = "VALUE", .key = "value" },
	{ .title = "DEFAULT", .key = "default" },
	{ .title = "UNIT", .key = "unit" },
	{ .title = "MEANING", .key = "help" },
	{ .title = "RULE", .key = "rule", .where = ON_JSON },
	{ .title = "RESTART",
	    .key = "restart",
	    .kind = COLUMN_BOOL,
	    .where = ON_JSON },
};

static char *title_of(const char *what);
static struct opt row_of(const struct option *, size_t i);
static char *long_name(const char *name);

const struct opt_set *
fields_opts(const struct option_table *table, size_t offset)
{
	static struct {
		const struct option_table *table;
		struct opt_set set;
	} made[8], *m = made;
	struct opt *rows;

	for (; m->table != NULL; m++) {
		if (m->table == table && m->set.offset == offset)
			return &m->set;
		assert(m + 1 < made + nitems(made));
	}
	assert(table->n <= FIELDS_MAX);
	rows = xcalloc(table->n, sizeof(*rows));
	for (size_t row = 0; row < table->n; row++)
		rows[row] = row_of(&table->rows[row], row);
	m->table = table;
	m->set = (struct opt_set){ .title = title_of(table->what),
		.rows = rows,
		.n = table->n,
		.offset = offset };
	return &m->set;
}

bool
fields_given(const struct field_values *values)
{
	for (size_t i = 0; i < nitems(values->v); i++)
		if (values->v[i] != NULL)
			return true;
	return false;
}

int
fields_apply(const struct option_table *table, const struct field_values *v,
    struct registry *r, const char *name,
    int (*set)(struct registry *, const char *, const char *, const char *,
	struct err *),
    struct err *e)
{
	for (size_t i = 0; i < table->n; i++)
		if (v->v[i] != NULL &&
		    set(r, name, table->rows[i].name, v->v[i], e) == -1)
			return -1;
	return 0;
}

int
fields_store(const struct option_table *table, const struct field_values *v,
    void *object, struct err *e)
{
	for (size_t i = 0; i < table->n; i++)
		if (v->v[i] != NULL &&
		    option_set(table, object, table->rows[i].name, v->v[i],
			e) == -1)
			return -1;
	return 0;
}

json_t *
fields_json(const struct option_table *table, const void *object)
{
	json_t *all = json_object();
	char text[OPTION_TEXT_MAX];

	for (size_t i = 0; i < table->n; i++) {
		option_text(&table->rows[i], object, text);
		json_object_set_new(all, table->rows[i].name,
		    json_string(text));
	}
	return all;
}

void
fields_print(const struct option_table *table, const void *object)
{
	struct table *t = table_new(columns, nitems(columns));
	char text[OPTION_TEXT_MAX], rule[256];

	for (size_t i = 0; i < table->n; i++) {
		const struct option *o = &table->rows[i];

		option_text(o, object, text);
		table_put(t, o->name);
		table_put(t, text);
		table_colour(t,
		    option_is_default(o, object) ? COLOUR_NONE : COLOUR_BOLD);
		table_put(t, o->fallback);
		table_put(t, o->unit);
		if (o->restart && !output_is_json())
			table_putf(t, "%s; from its next start on", o->help);
		else
			table_put(t, o->help);
		option_rule(o, rule, sizeof(rule));
		table_put(t, rule);
		table_put_bool(t, o->restart);
	}
	table_end(t);
}

/* "role option" is titled "Role options". */
static char *
title_of(const char *what)
{
	size_t size = strlen(what) + 2;
	char *title = xcalloc(1, size);

	snprintf(title, size, "%ss", what);
	title[0] = (char)toupper((unsigned char)title[0]);
	return title;
}

static struct opt
row_of(const struct option *o, size_t i)
{
	static const char *const args[] = {
		[OPTION_BOOL] = "on|off",
		[OPTION_COUNT] = "N",
		[OPTION_DURATION] = "TIME",
		[OPTION_SIZE] = "SIZE",
		[OPTION_RATE] = "N/s",
		[OPTION_BANDWIDTH] = "SIZE/s",
		[OPTION_WORD] = "WORD",
		[OPTION_TEXT] = "TEXT",
		[OPTION_LIST] = "LIST",
	};

	return (struct opt){ .name = long_name(o->name),
		.type = OPT_TEXT,
		.offset = i * sizeof(const char *),
		.arg = o->words != NULL ? o->words : args[o->type],
		.help = o->help };
}

static char *
long_name(const char *name)
{
	char *text = xstrdup(name);

	for (char *p = text; *p != '\0'; p++)
		if (*p == '_')
			*p = '-';
	return text;
}
