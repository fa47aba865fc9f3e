/* test_fields.c: the registry's option tables as command-line options. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>

#include "clusterctl/fields.h"
#include "common/base/io.h"
#include "common/registry/roles.h"
#include "common/registry/sites.h"

struct line {
	int before;
	struct field_values fields;
};

static void
names_and_places(void **state)
{
	const struct opt_set *set =
	    fields_opts(&role_options, offsetof(struct line, fields));
	const struct opt *o = opts_find(set, "queue-timeout");

	(void)state;
	assert_non_null(o);
	assert_string_equal(o->arg, "TIME");
	assert_int_equal(set->n, role_options.n);
	/* Made once for each place. */
	assert_ptr_equal(set,
	    fields_opts(&role_options, offsetof(struct line, fields)));
	assert_ptr_not_equal(set, fields_opts(&role_options, 0));
}

static void
from_line_to_object(void **state)
{
	char port[] = "--port=8080", timeout[] = "--queue-timeout", ms[] = "7s";
	char *argv[] = { port, timeout, ms, NULL };
	struct line line = { 0 };
	struct opt_home home = { fields_opts(&role_options,
				     offsetof(struct line, fields)),
		&line.fields };
	struct opt_line what = { .homes = &home, .n_homes = 1 };
	struct role r = { .rise = 2 };
	struct err e;
	int n;

	(void)state;
	assert_false(fields_given(&line.fields));
	assert_int_equal(opts_parse(&what, 3, argv, &n, &e), 0);
	assert_true(fields_given(&line.fields));
	assert_int_equal(fields_store(&role_options, &line.fields, &r, &e), 0);
	assert_int_equal(r.port, 8080);
	assert_int_equal(r.queue_timeout_ms, 7000);
	assert_int_equal(r.rise, 2); /* what was not typed stays */
}

static void
a_bad_value_names_the_rule(void **state)
{
	struct field_values v = { { "70000" } };
	struct role r = { 0 };
	struct err e;

	(void)state;
	assert_string_equal(role_options.rows[0].name, "port");
	assert_int_equal(fields_store(&role_options, &v, &r, &e), -1);
	assert_int_equal(e.code, ERR_USAGE);
	assert_string_equal(e.text, "port '70000' is not 1..65535, or none");
}

static void
as_json(void **state)
{
	struct site s;
	json_t *all;

	(void)state;
	site_init(&s, "a.example");
	all = fields_json(&site_options, &s);
	assert_int_equal(json_object_size(all), site_options.n);
	assert_string_equal(json_string_value(json_object_get(all, "role")),
	    "worker_http");
	json_decref(all);
	site_fini(&s);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_and_places),
		cmocka_unit_test(from_line_to_object),
		cmocka_unit_test(a_bad_value_names_the_rule),
		cmocka_unit_test(as_json),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
