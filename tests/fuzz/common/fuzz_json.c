/*
 * fuzz_json.c: objects from outside: parsed, and taken as each kind of
 * record.  A record that was taken and written is taken again, and the same.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/json.h"
#include "common/registry/record.h"

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size);

/* Aborts unless the two objects, which it takes, are equal. */
static void
same(json_t *a, json_t *b)
{
	if (!json_equal(a, b))
		abort();
	json_decref(a);
	json_decref(b);
}

static void
try_node(json_t *o)
{
	struct node n, again;
	struct err e;
	json_t *out;

	if (record_to_node(o, &n, &e) == -1)
		return;
	out = record_from_node(&n, RECORD_ROSTER);
	if (record_to_node(out, &again, &e) == -1)
		abort();
	same(out, record_from_node(&again, RECORD_ROSTER));
}

static void
try_role(json_t *o)
{
	struct role role, again;
	struct err e;
	json_t *out;

	if (record_to_role(o, &role, &e) == -1)
		return;
	out = record_from_role(&role, RECORD_ROSTER);
	if (record_to_role(out, &again, &e) == -1)
		abort();
	same(out, record_from_role(&again, RECORD_ROSTER));
}

static void
try_operator(json_t *o)
{
	struct operator_row op, again;
	struct err e;
	json_t *out;

	if (record_to_operator(o, &op, &e) == -1)
		return;
	out = record_from_operator(&op, RECORD_ROSTER);
	if (record_to_operator(out, &again, &e) == -1)
		abort();
	same(out, record_from_operator(&again, RECORD_ROSTER));
}

static void
try_site(json_t *o)
{
	struct site site, again;
	struct err e;
	json_t *out;

	if (record_to_site(o, &site, &e) == -1)
		return;
	out = record_from_site(&site, RECORD_ROSTER);
	if (record_to_site(out, &again, &e) == -1)
		abort();
	same(out, record_from_site(&again, RECORD_ROSTER));
	site_fini(&site);
	site_fini(&again);
}

int
LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	struct err e;
	json_t *o, *list;
	const char *text;
	int64_t n;
	bool b;

	if ((o = json_parse_object(input, size, 65536, &e)) == NULL) {
		if (e.text[0] == '\0')
			abort();
		return 0;
	}
	try_node(o);
	try_role(o);
	try_operator(o);
	try_site(o);
	if (json_get_string(o, "name", 10, &text, &e) == 0 && strlen(text) > 10)
		abort();
	if (json_get_int(o, "serial", 3, 9, &n, &e) == 0 && (n < 3 || n > 9))
		abort();
	json_opt_strings(o, "roles", 3, 3, &list, &e);
	json_opt_bool(o, "enabled", true, &b, &e);
	json_decref(o);
	return 0;
}
