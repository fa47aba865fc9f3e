/* option.c: see option.h. */
#include "common/registry/option.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "common/base/name.h"
#include "common/registry/option_type.h"

#define OPTION_ROWS_MAX 128

static int parse_value(const struct option *, void *object, const char *text,
    struct err *);
static bool take_word(const struct option *, const char *text, void *field);

const struct option *
option_find(const struct option_table *t, const char *name, struct err *e)
{
	const char *names[OPTION_ROWS_MAX], *near;

	assert(t->n <= OPTION_ROWS_MAX);
	for (size_t i = 0; i < t->n; i++) {
		if (strcmp(t->rows[i].name, name) == 0)
			return &t->rows[i];
		names[i] = t->rows[i].name;
	}
	if ((near = name_suggest(name, names, t->n)) != NULL)
		err_set(e, ERR_USAGE, "no such %s '%.64s'; did you mean '%s'?",
		    t->what, name, near);
	else
		err_set(e, ERR_USAGE, "no such %s '%.64s'", t->what, name);
	return NULL;
}

void
option_defaults(const struct option_table *t, void *object)
{
	struct err e;

	for (size_t i = 0; i < t->n; i++) {
		int rv =
		    parse_value(&t->rows[i], object, t->rows[i].fallback, &e);

		assert(rv == 0);
	}
}

int
option_set(const struct option_table *t, void *object, const char *name,
    const char *text, struct err *e)
{
	const struct option *o = option_find(t, name, e);

	if (o == NULL)
		return -1;
	return parse_value(o, object, text, e);
}

void
option_text(const struct option *o, const void *object,
    char text[OPTION_TEXT_MAX])
{
	const char *field = (const char *)object + o->offset;
	bool number = o->type != OPTION_TEXT && o->type != OPTION_LIST;

	if (o->word != NULL &&
	    (number ? *(const int64_t *)(const void *)field == o->word_value :
		      *field == '\0'))
		snprintf(text, OPTION_TEXT_MAX, "%s", o->word);
	else
		option_types[o->type].format(o, field, text);
}

bool
option_is_default(const struct option *o, const void *object)
{
	char text[OPTION_TEXT_MAX];

	option_text(o, object, text);
	return strcmp(text, o->fallback) == 0;
}

void
option_rule(const struct option *o, char *buf, size_t size)
{
	size_t n;

	option_types[o->type].rule(o, buf, size);
	n = strlen(buf);
	if (o->word != NULL)
		snprintf(buf + n, size - n, ", or %s", o->word);
}

json_t *
option_to_json(const struct option_table *t, const void *object)
{
	char text[OPTION_TEXT_MAX];
	json_t *o = json_object();

	for (size_t i = 0; o != NULL && i < t->n; i++) {
		if (option_is_default(&t->rows[i], object))
			continue;
		option_text(&t->rows[i], object, text);
		if (json_object_set_new(o, t->rows[i].name,
			json_string(text)) == -1) {
			json_decref(o);
			return NULL;
		}
	}
	return o;
}

int
option_from_json(const struct option_table *t, void *object, const json_t *o,
    struct err *e)
{
	option_defaults(t, object);
	for (size_t i = 0; i < t->n; i++) {
		const json_t *v = json_object_get(o, t->rows[i].name);

		if (v == NULL)
			continue;
		if (!json_is_string(v))
			return err_set(e, ERR_USAGE, "%s %s is not a string",
			    t->what, t->rows[i].name);
		if (parse_value(&t->rows[i], object, json_string_value(v), e) ==
		    -1)
			return -1;
	}
	return 0;
}

static int
parse_value(const struct option *o, void *object, const char *text,
    struct err *e)
{
	void *field = (char *)object + o->offset;

	if (take_word(o, text, field))
		return 0;
	return option_types[o->type].parse(o, text, field, e);
}

static bool
take_word(const struct option *o, const char *text, void *field)
{
	if (o->word == NULL || strcmp(text, o->word) != 0)
		return false;
	if (o->type == OPTION_TEXT || o->type == OPTION_LIST)
		*(char *)field = '\0';
	else
		*(int64_t *)field = o->word_value;
	return true;
}
