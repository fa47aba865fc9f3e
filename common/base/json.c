/* json.c: see json.h. */
#include "common/base/json.h"

#include <string.h>

static int wrong(const char *field, const char *rule, struct err *);
static bool string_fits(const json_t *, size_t max_len);

json_t *
json_parse_object(const void *bytes, size_t size, size_t max, struct err *e)
{
	json_error_t why;
	json_t *o;

	if (size > max) {
		err_set(e, ERR_PROTOCOL,
		    "JSON of %zu bytes is over the "
		    "limit of %zu",
		    size, max);
		return NULL;
	}
	o = json_loadb(bytes, size, JSON_REJECT_DUPLICATES, &why);
	if (o == NULL) {
		err_set(e, ERR_PROTOCOL, "bad JSON at byte %d: %s",
		    why.position, why.text);
		return NULL;
	}
	if (!json_is_object(o)) {
		json_decref(o);
		err_set(e, ERR_PROTOCOL, "bad JSON: not an object");
		return NULL;
	}
	return o;
}

int
json_get_string(json_t *o, const char *field, size_t max_len,
    const char **value, struct err *e)
{
	const json_t *v = json_object_get(o, field);

	if (!string_fits(v, max_len))
		return wrong(field, "a string that fits", e);
	*value = json_string_value(v);
	return 0;
}

int
json_opt_string(json_t *o, const char *field, size_t max_len,
    const char *fallback, const char **value, struct err *e)
{
	const json_t *v = json_object_get(o, field);

	if (v == NULL || json_is_null(v)) {
		*value = fallback;
		return 0;
	}
	return json_get_string(o, field, max_len, value, e);
}

int
json_get_int(json_t *o, const char *field, int64_t min, int64_t max,
    int64_t *value, struct err *e)
{
	const json_t *v = json_object_get(o, field);
	int64_t n = json_integer_value(v);

	if (!json_is_integer(v) || n < min || n > max)
		return wrong(field, "a whole number in range", e);
	*value = n;
	return 0;
}

int
json_opt_int(json_t *o, const char *field, int64_t min, int64_t max,
    int64_t fallback, int64_t *value, struct err *e)
{
	const json_t *v = json_object_get(o, field);

	if (v == NULL || json_is_null(v)) {
		*value = fallback;
		return 0;
	}
	return json_get_int(o, field, min, max, value, e);
}

int
json_opt_bool(json_t *o, const char *field, bool fallback, bool *value,
    struct err *e)
{
	const json_t *v = json_object_get(o, field);

	if (v == NULL || json_is_null(v)) {
		*value = fallback;
		return 0;
	}
	if (!json_is_boolean(v))
		return wrong(field, "true or false", e);
	*value = json_boolean_value(v);
	return 0;
}

int
json_opt_strings(json_t *o, const char *field, size_t max_items, size_t max_len,
    json_t **array, struct err *e)
{
	json_t *v = json_object_get(o, field), *item;
	size_t i;

	if (v == NULL || json_is_null(v)) {
		*array = NULL;
		return 0;
	}
	if (!json_is_array(v) || json_array_size(v) > max_items)
		return wrong(field, "a list that fits", e);
	json_array_foreach (v, i, item)
		if (!string_fits(item, max_len))
			return wrong(field, "a list of strings that fit", e);
	*array = v;
	return 0;
}

static int
wrong(const char *field, const char *rule, struct err *e)
{
	return err_set(e, ERR_PROTOCOL, "field \"%s\" is not %s", field, rule);
}

static bool
string_fits(const json_t *v, size_t max_len)
{
	return json_is_string(v) && json_string_length(v) <= max_len &&
	    strlen(json_string_value(v)) == json_string_length(v);
}
