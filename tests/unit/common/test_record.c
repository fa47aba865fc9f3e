/* test_record.c: records as JSON: nothing is lost on the way, and a record
 * for which memory ran out is none. */
#include "tests/unit/common/scratch.h"

#include "common/registry/record.h"

/* Allocations that still succeed; negative: all do. */
static int allowance = -1;

static void *
counted_malloc(size_t size)
{
	if (allowance == 0)
		return NULL;
	if (allowance > 0)
		allowance--;
	return malloc(size);
}

static struct node
full_node(void)
{
	struct node n;

	node_init(&n, "web1");
	snprintf(n.uuid, sizeof(n.uuid),
	    "8bcf1f88-7eb4-4ab1-87b3-2c1f0cf4e0f9");
	snprintf(n.addr, sizeof(n.addr), "10.0.0.1");
	n.state_since_ms = 1700000000000;
	n.agent_port = 7400;
	n.has_key = true;
	memset(n.key, 0x5a, sizeof(n.key));
	n.serial = UINT32_MAX + 5ULL;
	n.n_roles = 2;
	snprintf(n.roles[0].name, sizeof(n.roles[0].name), "master");
	snprintf(n.roles[1].name, sizeof(n.roles[1].name), "storage");
	n.roles[1].port = 99;
	return n;
}

static void
full_site(struct site *s)
{
	struct err e;

	site_init(s, "a.example");
	assert_int_equal(site_add_alias(s, "*.a.example", &e), 0);
	assert_int_equal(site_add_alias(s, "b.example", &e), 0);
	s->max_active = 7;
	snprintf(s->owner, sizeof(s->owner), "ann");
}

static json_t *
make_record(int kind)
{
	struct operator_row op = { .name = "ann",
		.n_grants = 1,
		.grants = { "exec" },
		.has_key = true };
	struct node n = full_node();
	struct role role;
	struct site s;
	json_t *o;

	switch (kind) {
	case 0:
		return record_from_node(&n, RECORD_ROSTER);
	case 1:
		memset(&role, 0, sizeof(role));
		option_defaults(&role_options, &role);
		snprintf(role.name, sizeof(role.name), "cache");
		role.rise = 9;
		return record_from_role(&role, RECORD_ROSTER);
	case 2:
		return record_from_operator(&op, RECORD_ROSTER);
	default:
		full_site(&s);
		o = record_from_site(&s, RECORD_ROSTER);
		site_fini(&s);
		return o;
	}
}

static void
a_record_is_whole_or_none(void **state)
{
	(void)state;
	for (int kind = 0; kind < 4; kind++) {
		json_t *whole = make_record(kind), *o = NULL;
		int n = 0;

		assert_non_null(whole);
		json_set_alloc_funcs(counted_malloc, free);
		for (; o == NULL; n++) {
			allowance = n;
			o = make_record(kind);
			allowance = -1;
			if (o != NULL)
				assert_true(json_equal(o, whole));
			assert_true(n < 1000);
		}
		assert_true(n > 5);
		json_decref(o);
		json_decref(whole);
		json_set_alloc_funcs(malloc, free);
	}
}

static void
nothing_is_lost(void **state)
{
	struct node n = full_node(), back;
	struct site s, s_back;
	struct err e;
	json_t *o = record_from_node(&n, RECORD_ROSTER);

	(void)state;
	assert_int_equal(record_to_node(o, &back, &e), 0);
	assert_string_equal(back.uuid, n.uuid);
	assert_string_equal(back.addr, n.addr);
	assert_int_equal(back.serial, n.serial);
	assert_int_equal(back.state_since_ms, n.state_since_ms);
	assert_memory_equal(back.key, n.key, sizeof(n.key));
	assert_int_equal(back.roles[1].port, 99);
	json_decref(o);

	full_site(&s);
	o = record_from_site(&s, RECORD_EXPORT);
	assert_int_equal(record_to_site(o, &s_back, &e), 0);
	assert_string_equal(s_back.aliases, s.aliases);
	assert_string_equal(s_back.owner, "ann");
	assert_int_equal(s_back.max_active, 7);
	json_decref(o);
	site_fini(&s);
	site_fini(&s_back);
}

static void
wrong_records_are_refused(void **state)
{
	static const struct {
		const char *json, *part;
	} cases[] = {
		{ "{}", "\"name\"" },
		{ "{\"name\":\"A\"}", "not valid" },
		{ "{\"name\":\"a\"}", "\"addr\"" },
		{ "{\"name\":\"a\",\"addr\":\"x\"}", "not an IP address" },
		{ "{\"name\":\"a\",\"addr\":\"::1\",\"uuid\":\"x\"}",
		    "bad UUID" },
		{ "{\"name\":\"a\",\"addr\":\"::1\",\"key\":\"00\"}",
		    "no key" },
		{ "{\"name\":\"a\",\"addr\":\"::1\",\"key\":\"zz\"}",
		    "no key" },
		{ "{\"name\":\"a\",\"addr\":\"::1\",\"state\":\"x\"}",
		    "up, drain or maintenance" },
		{ "{\"name\":\"a\",\"addr\":\"::1\",\"agent_port\":65536}",
		    "\"agent_port\"" },
		{ "{\"name\":\"a\",\"addr\":\"::1\",\"roles\":[\"A\"]}",
		    "role name" },
		{ "{\"name\":\"a\",\"addr\":\"::1\",\"roles\":[\"a\"],"
		  "\"ports\":{\"a\":-1}}",
		    "field \"a\"" },
	};
	struct node n;
	struct err e;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		json_t *o = json_loads(cases[i].json, 0, NULL);

		assert_int_equal(record_to_node(o, &n, &e), -1);
		if (strstr(e.text, cases[i].part) == NULL)
			fail_msg("%s: %s", cases[i].json, e.text);
		json_decref(o);
	}
}

static void
uuids_are_random_and_well_formed(void **state)
{
	char a[UUID_LEN + 1], b[UUID_LEN + 1];

	(void)state;
	uuid_make(a);
	uuid_make(b);
	assert_true(uuid_valid(a) && uuid_valid(b));
	assert_string_not_equal(a, b);
	assert_int_equal(a[14], '4');
	assert_false(uuid_valid(""));
	a[0] = 'X';
	assert_false(uuid_valid(a));
	a[0] = 'a';
	a[8] = 'a';
	assert_false(uuid_valid(a));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_record_is_whole_or_none),
		cmocka_unit_test(nothing_is_lost),
		cmocka_unit_test(wrong_records_are_refused),
		cmocka_unit_test(uuids_are_random_and_well_formed),
	};

	return cmocka_run_group_tests_name("record", tests, NULL, NULL);
}
