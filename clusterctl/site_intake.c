/* site_intake.c: see site_intake.h. */
#include "clusterctl/site_intake.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/json.h"

static int read_lines(FILE *, struct registry *,
    const struct field_values *defaults, size_t *n, struct err *);
static int add_line(struct registry *, const char *line,
    const struct field_values *defaults, struct err *);
static int from_json(const char *line, struct site *, struct err *);
static int set_field(struct site *, const char *key, json_t *value,
    struct err *);
static int add_aliases(struct site *, json_t *value, struct err *);

int
site_intake(struct registry *r, const char *path,
    const struct field_values *defaults, size_t *n, struct err *e)
{
	bool is_stdin = strcmp(path, "-") == 0;
	FILE *f = is_stdin ? stdin : fopen(path, "re");
	int rv;

	if (f == NULL)
		return err_errno(e, ERR_LOCAL, "cannot open %s", path);
	*n = 0;
	if (registry_begin(r, e, "add sites from %.150s", path) == -1)
		rv = -1;
	else
		rv = registry_end(r, read_lines(f, r, defaults, n, e), e);
	if (!is_stdin)
		fclose(f);
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
read_lines(FILE *f, struct registry *r, const struct field_values *defaults,
    size_t *n, struct err *e)
{
	char *line = NULL;
	size_t size = 0, at = 0;
	ssize_t len;
	int rv = 0;

	while (rv == 0 && (len = getline(&line, &size, f)) != -1) {
		char *text = line + strspn(line, " \t");

		at++;
		line[strcspn(line, "\r\n")] = '\0';
		if (*text == '\0' || *text == '#')
			continue;
		if (len > SITE_LINE_MAX)
			rv = err_set(e, ERR_USAGE, "longer than %d bytes",
			    SITE_LINE_MAX);
		else
			rv = add_line(r, text, defaults, e);
		if (rv == -1)
			err_wrap(e, "line %zu", at);
		++*n;
	}
	if (rv == 0 && ferror(f))
		rv = err_errno(e, ERR_LOCAL, "cannot read the sites");
	free(line);
	return rv;
}

static int
add_line(struct registry *r, const char *line,
    const struct field_values *defaults, struct err *e)
{
	struct site s;
	int rv = site_intake_line(line, defaults, &s, e);

	if (rv == 0)
		rv = sites_add(r, &s, e);
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
