/* test_settings.c: options and settings: every type, every broken rule. */
#include "tests/unit/common/scratch.h"

#include "common/registry/roles.h"
#include "common/registry/settings.h"
#include "common/registry/sites.h"

static const struct option_table *const tables[] = { &settings_table,
	&role_options, &site_options, &site_limits, &node_options };

static union {
	struct settings settings;
	struct role role;
	struct site site;
	struct node node;
} object;

static void
every_row_is_whole(void **state)
{
	char text[OPTION_TEXT_MAX], rule[OPTION_TEXT_MAX];
	struct err e;

	(void)state;
	for (size_t t = 0; t < sizeof(tables) / sizeof(*tables); t++) {
		option_defaults(tables[t], &object);
		for (size_t i = 0; i < tables[t]->n; i++) {
			const struct option *o = &tables[t]->rows[i];

			/* A default is written as it is shown. */
			option_text(o, &object, text);
			assert_string_equal(text, o->fallback);
			assert_true(option_is_default(o, &object));
			option_rule(o, rule, sizeof(rule));
			assert_true(strlen(rule) > 0);
			assert_true(strlen(o->help) > 0);
			assert_non_null(o->unit);
			assert_ptr_equal(option_find(tables[t], o->name, &e),
			    o);
			if (o->type == OPTION_TEXT || o->type == OPTION_LIST)
				continue;
			assert_int_equal(o->size,
			    o->type == OPTION_RATE ||
				    o->type == OPTION_BANDWIDTH ?
				sizeof(struct rate) :
				sizeof(int64_t));
		}
	}
}

static void
wrong_values_are_told_the_rule(void **state)
{
	static const struct {
		const char *key, *value, *part;
	} cases[] = {
		{ "proxy.workers", "0", "'0' is not 1..256, or auto" },
		{ "proxy.workers", "-1", "not 1..256" },
		{ "proxy.workers", "", "not 1..256" },
		{ "proxy.workers", "99999999999999999999", "not 1..256" },
		{ "proxy.worker", "1", "did you mean 'proxy.workers'" },
		{ "nonsense", "1", "no such setting 'nonsense'" },
		{ "proxy.keepalive", "fast", "is not 0ms..1h" },
		{ "proxy.keepalive", "2h", "is not 0ms..1h" },
		{ "proxy.header_size", "1M", "is not 1K..96K" },
		{ "proxy.header_size", "64Q", "is not 1K..96K" },
		{ "proxy.access_log_format", "xml", "common|combined|json" },
		{ "proxy.access_log", "log", "not an absolute path" },
		{ "proxy.access_log", "/a\nb", "printable" },
		{ "proxy.http.listen", "", "a list of 1..64 items" },
		{ "proxy.http.listen", "0.0.0.0", "has no port" },
		{ "proxy.http.listen", "web:80", "not an IP address" },
		{ "proxy.http.listen", "unix:x", "not unix: and an absolute" },
		{ "proxy.trusted", "10.0.0.1/8", "behind its prefix" },
		{ "proxy.http10_keepalive", "maybe", "is not on|off" },
		{ "proxy.default_site", "Bad Host", "host name" },
	};
	struct scratch *s = *state;
	int64_t was = scratch_revision(s);

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_refused(s,
		    settings_set(s->r, cases[i].key, cases[i].value, &s->e),
		    ERR_USAGE, cases[i].part);
	assert_int_equal(scratch_revision(s), was);
}

static void
values_are_kept_in_one_spelling(void **state)
{
	static const struct {
		const char *key, *value, *text;
	} cases[] = {
		{ "proxy.workers", "4", "4" },
		{ "proxy.workers", "auto", "auto" },
		{ "proxy.keepalive", "60000ms", "1m" },
		{ "proxy.keepalive", "90", "90s" },
		{ "proxy.header_size", "65536", "64K" },
		{ "proxy.http10_keepalive", "true", "on" },
		{ "proxy.access_log", "/var/log/x", "/var/log/x" },
		{ "proxy.access_log", "off", "off" },
		{ "proxy.http.listen", "1.2.3.4:80,[::1]:81  unix:/a",
		    "1.2.3.4:80 [::1]:81 unix:/a" },
		{ "proxy.trusted", "none", "none" },
		{ "proxy.default_site", "a.example", "a.example" },
		{ "exec.timeout", "none", "none" },
	};
	struct scratch *s = *state;
	char text[OPTION_TEXT_MAX];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct settings set;

		assert_ok(s,
		    settings_set(s->r, cases[i].key, cases[i].value, &s->e));
		assert_ok(s, settings_load(s->r, &set, &s->e));
		option_text(option_find(&settings_table, cases[i].key, &s->e),
		    &set, text);
		assert_string_equal(text, cases[i].text);
	}
}

static void
fields_are_typed_and_reset(void **state)
{
	struct scratch *s = *state;
	struct settings set;

	assert_ok(s, settings_set(s->r, "proxy.connect_timeout", "1s", &s->e));
	assert_ok(s, settings_set(s->r, "proxy.body_size", "5M", &s->e));
	assert_ok(s,
	    settings_set(s->r, "proxy.access_log_format", "json", &s->e));
	assert_ok(s, settings_load(s->r, &set, &s->e));
	assert_int_equal(set.connect_timeout_ms, 1000);
	assert_int_equal(set.body_size, 5 << 20);
	assert_int_equal(set.access_log_format, LOG_JSON);
	assert_int_equal(set.workers, 0);
	assert_string_equal(set.access_log, "");
	assert_ok(s, settings_reset(s->r, "proxy.body_size", &s->e));
	assert_ok(s, settings_load(s->r, &set, &s->e));
	assert_int_equal(set.body_size, 1 << 30);
	assert_refused(s, settings_reset(s->r, "nonsense", &s->e), ERR_USAGE,
	    "no such setting");
}

static void
json_holds_what_is_set(void **state)
{
	struct role role, back;
	struct err e;
	json_t *o;

	(void)state;
	option_defaults(&role_options, &role);
	option_defaults(&role_options, &back);
	assert_int_equal(option_set(&role_options, &role, "rise", "7", &e), 0);
	o = option_to_json(&role_options, &role);
	assert_int_equal(json_object_size(o), 1);
	json_object_set_new(o, "of_a_newer_version", json_string("x"));
	assert_int_equal(option_from_json(&role_options, &back, o, &e), 0);
	assert_int_equal(back.rise, 7);
	json_object_set_new(o, "rise", json_integer(7));
	assert_int_equal(option_from_json(&role_options, &back, o, &e), -1);
	json_decref(o);
}

static void
rates_are_numbers_by_time(void **state)
{
	static const struct {
		const char *option, *value, *text; /* NULL: refused */
		int64_t n, per_ms, burst;
	} cases[] = {
		{ "requests", "10/s", "10/s", 10, 1000, 0 },
		{ "requests", "600/m,burst=50", "600/m,burst=50", 600, 60000,
		    50 },
		{ "requests", "1/h", "1/h", 1, 3600000, 0 },
		{ "requests", "off", "off", 0, 0, 0 },
		{ "bandwidth", "1048576/s", "1M/s", 1 << 20, 1000, 0 },
		{ "bandwidth", "1M/s,burst=8192K", "1M/s,burst=8M", 1 << 20,
		    1000, 8 << 20 },
		{ "requests", "10", NULL, 0, 0, 0 },
		{ "requests", "/s", NULL, 0, 0, 0 },
		{ "requests", "0/s", NULL, 0, 0, 0 },
		{ "requests", "10/", NULL, 0, 0, 0 },
		{ "requests", "10/d", NULL, 0, 0, 0 },
		{ "requests", "10/s,", NULL, 0, 0, 0 },
		{ "requests", "10/s,burst=", NULL, 0, 0, 0 },
		{ "requests", "10/s,burst=0", NULL, 0, 0, 0 },
		{ "requests", "10/s,burst=5/s", NULL, 0, 0, 0 },
		{ "requests", "1K/s", NULL, 0, 0, 0 },
		{ "requests", "99999999999999999999999999999999999/s", NULL, 0,
		    0, 0 },
		{ "bandwidth", "1M/m", NULL, 0, 0, 0 },
		{ "bandwidth", "1/s", NULL, 0, 0, 0 },
	};
	char text[OPTION_TEXT_MAX];
	struct site site = { 0 };
	struct err e;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct option *o =
		    option_find(&site_options, cases[i].option, &e);
		const struct rate *r =
		    strcmp(cases[i].option, "requests") == 0 ? &site.requests :
							       &site.bandwidth;
		int rv = option_set(&site_options, &site, cases[i].option,
		    cases[i].value, &e);

		if (cases[i].text == NULL) {
			assert_int_equal(rv, -1);
			assert_non_null(strstr(e.text, ",burst="));
			assert_non_null(strstr(e.text, ", or off"));
			continue;
		}
		assert_int_equal(rv, 0);
		option_text(o, &site, text);
		assert_string_equal(text, cases[i].text);
		assert_int_equal(r->n, cases[i].n);
		if (r->n == 0)
			continue;
		assert_int_equal(r->per_ms, cases[i].per_ms);
		assert_int_equal(r->burst, cases[i].burst);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_row_is_whole),
		scratch_test(wrong_values_are_told_the_rule),
		scratch_test(values_are_kept_in_one_spelling),
		scratch_test(fields_are_typed_and_reset),
		cmocka_unit_test(json_holds_what_is_set),
		cmocka_unit_test(rates_are_numbers_by_time),
	};

	return cmocka_run_group_tests_name("settings", tests, NULL, NULL);
}
