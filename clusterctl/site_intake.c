/* site_intake.c: see site_intake.h. */
#include "clusterctl/site_intake.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clusterctl/slurp.h"
#include "common/base/json.h"

static int add_lines(char *text, size_t size, struct registry *,
    const struct field_values *defaults, struct site_tally *n, struct err *);
static int add_line(char *line, size_t len, struct registry *,
    const struct field_values *defaults, struct site_tally *n, struct err *);
static int from_json(const char *line, struct site *, struct err *);
static int set_field(struct site *, const char *key, json_t *value,
    struct err *);
static int add_aliases(struct site *, json_t *value, struct err *);

int
site_intake(struct registry *r, const char *path,
    const struct field_values *defaults, struct site_tally *n, struct err *e)
{
	size_t size;
	char *text;
	int rv;

	/* The whole of it first: nobody else can change the registry while a
	 * change is open, and who writes into a pipe may take long. */
	if (slurp(path, SITE_FILE_MAX, &text, &size, e) == -1)
		return -1;
	*n = (struct site_tally){ 0 };
	if (registry_begin(r, e, "add sites from %.150s", path) == -1)
		rv = -1;
	else
		rv = registry_end(r, add_lines(text, size, r, defaults, n, e),
		    e);
	free(text);
	return rv;
}

int
site_intake_line(const char *line, const struct field_values *defaults,
    struct site *s, struct err *e)
{
	site_init(s, "");
	if (fields_store(&site_options, defaults, s, e) == -1)
		return -1;
	if (*line == '{') {
		if (from_json(line, s, e) == -1)
			return -1;
	} else if (name_check_host(line, false, e) == -1)
		return -1;
	else
		snprintf(s->name, sizeof(s->name), "%s", line);
	return 0;
}

static int
add_lines(char *text, size_t size, struct registry *r,
    const struct field_values *defaults, struct site_tally *n, struct err *e)
{
	char *const end = text + size;
	size_t at = 0;

	for (char *line = text, *next; line < end; line = next) {
		next = memchr(line, '\n', (size_t)(end - line));
		next = next != NULL ? next + 1 : end + 1;
		next[-1] = '\0'; /* at the end there is one already */
		at++;
		if (add_line(line, (size_t)(next - line) - 1, r, defaults, n,
			e) == -1)
			return err_wrap(e, "line %zu", at);
	}
	return 0;
}

/* Not every line is a site. */
static int
add_line(char *line, size_t len, struct registry *r,
    const struct field_values *defaults, struct site_tally *n, struct err *e)
{
	struct site s;
	int rv;

	if (len > SITE_LINE_MAX)
		return err_set(e, ERR_USAGE, "longer than %d bytes",
		    SITE_LINE_MAX);
	if (strlen(line) != len)
		return err_set(e, ERR_USAGE, "it holds a NUL byte");
	line += strspn(line, " \t");
	line[strcspn(line, "\r")] = '\0';
	if (*line == '\0' || *line == '#')
		return 0;
	if ((rv = site_intake_line(line, defaults, &s, e)) == 0)
		rv = sites_add(r, &s, e);
	n->n++;
	n->n_homeless += site_lacks_home(&s);
	site_fini(&s);
	return rv;
}

static int
from_json(const char *line, struct site *s, struct err *e)
{
	json_t *o = json_parse_object(line, strlen(line), SITE_LINE_MAX, e);
	const char *name, *key;
	json_t *value;
	int rv = 0;

	if (o == NULL) {
		e->code = ERR_USAGE;
		return -1;
	}
	if (json_get_string(o, "name", HOST_MAX_LEN, &name, e) == -1 ||
	    name_check_host(name, false, e) == -1)
		rv = -1;
	else
		snprintf(s->name, sizeof(s->name), "%s", name);
	json_object_foreach (o, key, value)
		if (rv == 0)
			rv = set_field(s, key, value, e);
	json_decref(o);
	if (rv == -1)
		e->code = ERR_USAGE;
	return rv;
}

static int
set_field(struct site *s, const char *key, json_t *value, struct err *e)
{
	char number[32];

	if (strcmp(key, "name") == 0)
		return 0;
	if (strcmp(key, "aliases") == 0)
		return add_aliases(s, value, e);
	if (strcmp(key, "enabled") == 0 && json_is_boolean(value)) {
		s->enabled = json_is_true(value);
		return 0;
	}
	if (json_is_string(value))
		return option_set(&site_options, s, key,
		    json_string_value(value), e);
	if (json_is_boolean(value))
		return option_set(&site_options, s, key,
		    json_is_true(value) ? "on" : "off", e);
	if (json_is_integer(value)) {
		snprintf(number, sizeof(number), "%lld",
		    (long long)json_integer_value(value));
		return option_set(&site_options, s, key, number, e);
	}
	return err_set(e, ERR_USAGE,
	    "field '%.60s' is neither text, number nor true or false", key);
}

static int
add_aliases(struct site *s, json_t *value, struct err *e)
{
	json_t *host;
	size_t i;

	if (!json_is_array(value))
		return err_set(e, ERR_USAGE, "field 'aliases' is no list");
	json_array_foreach (value, i, host) {
		if (!json_is_string(host))
			return err_set(e, ERR_USAGE,
			    "field 'aliases' holds something that is no text");
		if (site_add_alias(s, json_string_value(host), e) == -1)
			return -1;
	}
	return 0;
}
