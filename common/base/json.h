/*
 * json.h: fields of objects that came from outside, checked.  A wrong type
 * or a missing field is a sentence with the field's name.
 */
#ifndef MUSTER_JSON_H
#define MUSTER_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "common/base/err.h"

/* One object of at most `max` bytes; no duplicate keys, no NUL, nesting
 * bounded by jansson.  NULL and ERR_PROTOCOL otherwise.  The caller's. */
json_t *json_parse_object(const void *bytes, size_t size, size_t max,
    struct err *);

/* Borrowed string of 0 to max_len bytes.  json_opt_string: `fallback` (may be
 * NULL) when the field is absent or null. */
int json_get_string(json_t *, const char *field, size_t max_len,
    const char **value, struct err *);
int json_opt_string(json_t *, const char *field, size_t max_len,
    const char *fallback, const char **value, struct err *);

int json_get_int(json_t *, const char *field, int64_t min, int64_t max,
    int64_t *value, struct err *);
int json_opt_int(json_t *, const char *field, int64_t min, int64_t max,
    int64_t fallback, int64_t *value, struct err *);
int json_opt_bool(json_t *, const char *field, bool fallback, bool *value,
    struct err *);

/* Borrowed array of at most max_items strings of at most max_len bytes;
 * *array is NULL when the field is absent. */
int json_opt_strings(json_t *, const char *field, size_t max_items,
    size_t max_len, json_t **array, struct err *);

#endif
