/* test_export.c: a registry as text, and made to match a text. */
#include "tests/unit/common/scratch.h"

#include "common/registry/certs.h"
#include "common/registry/export.h"
#include "common/registry/operators.h"
#include "common/registry/roles.h"
#include "common/registry/settings.h"
#include "common/registry/sites.h"

struct told {
	char text[4000];
};

static void
take(const char *line, void *arg)
{
	struct told *told = arg;
	size_t len = strlen(told->text);

	snprintf(told->text + len, sizeof(told->text) - len, "%s\n", line);
}

static char *export(struct scratch *s)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	assert_non_null(f);
	assert_ok(s, registry_export(s->r, f, &s->e));
	fclose(f);
	return text;
}

static void
fill(struct scratch *s)
{
	static const char *const grants[] = { "exec", "push:storage" };
	struct site site;

	assert_ok(s, scratch_add_node(s, "web1", "10.0.0.5", "worker_http"));
	assert_ok(s, nodes_set(s->r, "web1", "weight", "4", &s->e));
	assert_ok(s, nodes_set_port(s->r, "web1", "worker_http", 81, &s->e));
	assert_ok(s, roles_add(s->r, "cache", &s->e));
	assert_ok(s, roles_set(s->r, "cache", "rise", "5", &s->e));
	assert_ok(s, nodes_add_role(s->r, "web1", "cache", &s->e));
	assert_ok(s, operators_add(s->r, "ann", grants, 2, 77, &s->e));
	assert_ok(s, settings_set(s->r, "proxy.retries", "1", &s->e));
	site_init(&site, "a.example");
	assert_ok(s, site_add_alias(&site, "*.a.example", &s->e));
	assert_ok(s, site_add_alias(&site, "b.example", &s->e));
	snprintf(site.owner, sizeof(site.owner), "ann");
	assert_ok(s, sites_add(s->r, &site, &s->e));
	site_fini(&site);
}

static size_t
apply(struct scratch *s, const char *text, bool dry_run, struct told *told)
{
	size_t n = 99;

	told->text[0] = '\0';
	assert_ok(s,
	    registry_apply(s->r, text, strlen(text), dry_run, take, told, &n,
		&s->e));
	return n;
}

static void
an_export_is_canonical_and_without_secrets(void **state)
{
	static const uint8_t key[KEY_SIZE] = { 0xab };
	struct scratch *s = *state;
	char *first, *again;
	uint64_t serial;

	fill(s);
	assert_ok(s,
	    certs_issue(s->r, HOLDER_NODE, "web1", key, 9, &serial, &s->e));
	first = export(s);
	again = export(s);
	assert_string_equal(first, again);
	assert_null(strstr(first, "ab00"));
	assert_null(strstr(first, "uuid"));
	assert_non_null(strstr(first,
	    "\n{\"aliases\":[\"*.a.example\","
	    "\"b.example\"]"));
	free(first);
	free(again);
}

static void
what_was_exported_is_no_change(void **state)
{
	struct scratch *s = *state;
	struct told told;
	int64_t was;
	char *text;

	fill(s);
	text = export(s);
	was = scratch_revision(s);
	assert_int_equal(apply(s, text, false, &told), 0);
	assert_string_equal(told.text, "");
	assert_int_equal(scratch_revision(s), was);
	free(text);
}

static void
an_empty_registry_becomes_the_exported_one(void **state)
{
	struct scratch *s = *state;
	char *want, *have, path[PATH_MAX];
	struct told told;
	int64_t was;

	fill(s);
	want = export(s);
	registry_close(s->r);
	s->r = registry_create(scratch_path(s, "second", path), "test", &s->e);
	assert_non_null(s->r);
	was = scratch_revision(s);
	assert_true(apply(s, want, true, &told) > 5);
	assert_int_equal(scratch_revision(s), was);
	assert_true(apply(s, want, false, &told) > 5);
	assert_int_equal(scratch_revision(s), was + 1);
	have = export(s);
	assert_string_equal(have, want);
	free(want);
	free(have);
	scratch_assert_sound(s);
}

static void
each_difference_is_told(void **state)
{
	static const char text[] =
	    "{\"settings\":{\"proxy.keepalive\":\"5s\"},"
	    "\"roles\":[{\"name\":\"master\"},{\"name\":\"storage\"},"
	    "{\"name\":\"worker_http\",\"options\":{\"port\":\"8080\"}},"
	    "{\"name\":\"worker_mysql\",\"options\":{\"port\":\"3306\","
	    "\"health\":\"mysql\"}}],"
	    "\"nodes\":[{\"name\":\"m1\",\"addr\":\"10.0.0.1\","
	    "\"roles\":[\"master\",\"storage\"],\"state\":\"drain\"},"
	    "{\"name\":\"web2\",\"addr\":\"10.0.0.6\"}],"
	    "\"operators\":[],"
	    "\"sites\":[{\"name\":\"b.example\",\"enabled\":false},"
	    "{\"name\":\"c.example\",\"aliases\":[\"a.example\"]}]}";
	struct scratch *s = *state;
	struct told told;

	fill(s);
	apply(s, text, false, &told);
	assert_string_equal(told.text,
	    "set proxy.keepalive 5s (was 1m)\n"
	    "set proxy.retries 2 (was 1)\n"
	    "set role worker_http port 8080 (was 80)\n"
	    "remove node web1\n"
	    "set node m1 state drain (was up)\n"
	    "add role storage to node m1\n"
	    "add node web2 10.0.0.6\n"
	    "remove operator ann\n"
	    "remove site a.example\n"
	    "add site b.example\n"
	    "add site c.example\n"
	    "remove role cache\n");
	assert_int_equal(apply(s, text, false, &told), 0);
	scratch_assert_sound(s);
}

static void
an_alias_moves_between_sites(void **state)
{
	struct scratch *s = *state;
	struct told told;
	struct site site;

	apply(s,
	    "{\"sites\":[{\"name\":\"a.example\",\"aliases\":[\"x.example\"]},"
	    "{\"name\":\"b.example\",\"aliases\":[\"y.example\"]}]}",
	    false, &told);
	apply(s,
	    "{\"sites\":[{\"name\":\"a.example\",\"aliases\":[\"y.example\"]},"
	    "{\"name\":\"b.example\",\"aliases\":[\"x.example\"]}]}",
	    false, &told);
	assert_ok(s, sites_get(s->r, "x.example", &site, &s->e));
	assert_string_equal(site.name, "b.example");
	site_fini(&site);
}

/* Taken away by removal, by other grants, or by an end in the past; another
 * one in the same text is as good. */
static void
the_last_full_operator_stays(void **state)
{
#define OP(name, grant, until)                                                 \
	"{\"name\":\"" name "\",\"grants\":[\"" grant "\"],\"until_s\":" until \
	"}"
	static const char *const refused[] = {
		"{\"operators\":[]}",
		"{\"operators\":[" OP("adm", "exec", "0") "]}",
		"{\"operators\":[" OP("adm", "*", "1") "]}",
		"{\"operators\":[" OP("bob", "exec", "0") "]}",
	};
	static const char good[] = "{\"operators\":[" OP("bob", "*", "0") "]}";
#undef OP
	static const char *const all[] = { "*" };
	struct scratch *s = *state;
	struct told told = { "" };
	struct operator_row op;
	size_t n;

	assert_ok(s, operators_add(s->r, "adm", all, 1, 0, &s->e));
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		for (int dry = 0; dry < 2; dry++) {
			assert_int_equal(registry_apply(s->r, refused[i],
					     strlen(refused[i]), dry, take,
					     &told, &n, &s->e),
			    -1);
			assert_int_equal(s->e.code, ERR_USAGE);
			assert_non_null(strstr(s->e.text, "do everything"));
		}
		assert_ok(s, operators_get(s->r, "adm", &op, &s->e));
		assert_string_equal(op.grants[0], "*");
	}
	assert_int_equal(apply(s, good, false, &told), 2);
	assert_ok(s, operators_get(s->r, "bob", &op, &s->e));
}

static void
one_bad_value_changes_nothing(void **state)
{
	static const struct {
		const char *text, *part;
	} cases[] = {
		{ "", "bad JSON" },
		{ "[]", "not an object" },
		{ "{\"format\":\"other\"}", "no export" },
		{ "{\"settings\":[]}", "not an object" },
		{ "{\"settings\":{\"proxy.retries\":\"3\",\"proxy.x\":\"1\"}}",
		    "no such setting 'proxy.x'" },
		{ "{\"settings\":{\"proxy.retries\":\"99\"}}",
		    "'99' is not 0..10" },
		{ "{\"settings\":{\"proxy.retries\":3}}", "not a string" },
		{ "{\"sites\":{}}", "not a list" },
		{ "{\"sites\":[{\"name\":\"z.example\"},{}]}", "has no name" },
		{ "{\"sites\":[{\"name\":\"z.example\"},"
		  "{\"name\":\"z.example\"}]}",
		    "is there twice" },
		{ "{\"sites\":[{\"name\":\"z.example\"},{\"name\":\"Z\"}]}",
		    "host name" },
		{ "{\"nodes\":[]}", "only master" },
		{ "{\"nodes\":[{\"name\":\"m1\",\"addr\":\"10.0.0.1\","
		  "\"roles\":[\"master\",\"nix\"]}]}",
		    "no such role" },
		{ "{\"nodes\":[{\"name\":\"m1\",\"addr\":\"10.0.0.1\","
		  "\"roles\":[\"master\"],\"weight\":1000}]}",
		    "\"weight\"" },
		{ "{\"roles\":[]}", "predefined" },
		{ "{\"operators\":[{\"name\":\"x\",\"grants\":[\"!\"]}]}",
		    "grant" },
	};
	struct scratch *s = *state;
	struct told told = { "" };
	int64_t was = scratch_revision(s);
	char *before = export(s), *after;
	size_t n;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(registry_apply(s->r, cases[i].text,
				     strlen(cases[i].text), false, take, &told,
				     &n, &s->e),
		    -1);
		if (strstr(s->e.text, cases[i].part) == NULL)
			fail_msg("%s: %s", cases[i].text, s->e.text);
	}
	assert_int_equal(scratch_revision(s), was);
	after = export(s);
	assert_string_equal(before, after);
	free(before);
	free(after);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		scratch_test(an_export_is_canonical_and_without_secrets),
		scratch_test(what_was_exported_is_no_change),
		scratch_test(an_empty_registry_becomes_the_exported_one),
		scratch_test(each_difference_is_told),
		scratch_test(an_alias_moves_between_sites),
		scratch_test(the_last_full_operator_stays),
		scratch_test(one_bad_value_changes_nothing),
	};

	return cmocka_run_group_tests_name("export", tests, NULL, NULL);
}
