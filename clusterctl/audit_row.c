/* audit_row.c: see audit_row.h. */
#include "clusterctl/audit_row.h"

#include <stdio.h>
#include <stdlib.h>

#include "clusterctl/xalloc.h"
#include "common/base/io.h"

#define ID_ON_TTY 8 /* is enough to see what belongs together */

static const struct column columns[] = {
	{ .title = "TIME", .key = "time" },
	{ .title = "LOG", .key = "log" },
	{ .title = "EVENT", .key = "event" },
	{ .title = "WHO", .key = "who" },
	{ .title = "ORDER", .key = "order" },
	{ .title = "WHAT", .key = "what" },
};

/* What is told of an event, in this order, as far as it has it. */
static const struct {
	const char *member, *before;
	const char *unless; /* this one tells more */
} details[] = {
	{ "typed", "", NULL },
	{ "verb", "", "typed" },
	{ "path", "", NULL },
	{ "target", "to ", NULL },
	{ "name", "", NULL },
	{ "files", "", NULL },
	{ "nodes", "on ", NULL },
	{ "result", "", "seconds" },
	{ "exit", "exit ", NULL },
	{ "signal", "signal ", NULL },
	{ "timeout", "timed out", NULL },
	{ "classes", "", NULL },
	{ "text", "", NULL },
	{ "revision", "revision ", NULL },
};

static const char *text_of(const json_t *event, const char *member);
static void put_order(struct table *, const json_t *event);
static void put_what(struct table *, const json_t *event);
static void say(FILE *, const json_t *value);

struct table *
audit_table(void)
{
	return table_new(columns, nitems(columns));
}

void
audit_row_put(struct table *t, const char *log, const json_t *event)
{
	const char *who = text_of(event, "who");

	table_put(t, text_of(event, "time"));
	table_put(t, log);
	table_put(t, text_of(event, "event"));
	if (who == NULL)
		who = text_of(event, "operator");
	table_put(t, who != NULL && *who != '\0' ? who : NULL);
	put_order(t, event);
	put_what(t, event);
}

static const char *
text_of(const json_t *event, const char *member)
{
	return json_string_value(json_object_get(event, member));
}

static void
put_order(struct table *t, const json_t *event)
{
	const char *id = text_of(event, "id");

	if (id == NULL)
		id = text_of(event, "order");
	if (id != NULL && output_is_tty())
		table_putf(t, "%.*s", ID_ON_TTY, id);
	else
		table_put(t, id);
}

static void
put_what(struct table *t, const json_t *event)
{
	const char *between = "";
	char *text = NULL;
	size_t size = 0;
	FILE *f = xmemopen(&text, &size);

	for (size_t i = 0; i < nitems(details); i++) {
		const char *unless = details[i].unless;
		const json_t *value = json_object_get(event, details[i].member);

		if (value == NULL || json_is_false(value) ||
		    (unless != NULL && json_object_get(event, unless) != NULL))
			continue;
		fprintf(f, "%s%s", between, details[i].before);
		say(f, value);
		between = ", ";
	}
	xmemclose(f);
	table_put(t, *text != '\0' ? text : NULL);
	free(text);
}

/* An object is {"ok": "web[1-2]", "failed": "web3"}; a list, of texts. */
static void
say(FILE *f, const json_t *value)
{
	const char *key, *between = "";
	json_t *inner;
	size_t i;

	if (json_is_string(value))
		fputs(json_string_value(value), f);
	else if (json_is_integer(value))
		fprintf(f, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
	else if (json_is_array(value))
		json_array_foreach ((json_t *)(uintptr_t)value, i, inner) {
			fputs(between, f);
			say(f, inner);
			between = " ";
		}
	else if (json_is_object(value))
		json_object_foreach ((json_t *)(uintptr_t)value, key, inner) {
			fprintf(f, "%s%s ", between, key);
			say(f, inner);
			between = ", ";
		}
}
