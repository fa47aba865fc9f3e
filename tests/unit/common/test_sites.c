/* test_sites.c: sites and the hosts that belong to them. */
#include "tests/unit/common/scratch.h"

#include "common/base/clock.h"
#include "common/registry/sites.h"

static int
add(struct scratch *s, const char *name, const char *alias)
{
	struct site site;
	int rv = 0;

	site_init(&site, name);
	if (alias != NULL)
		rv = site_add_alias(&site, alias, &s->e);
	if (rv == 0)
		rv = sites_add(s->r, &site, &s->e);
	site_fini(&site);
	return rv;
}

static void
a_site_comes_back_as_it_went_in(void **state)
{
	struct scratch *s = *state;
	struct site site;

	site_init(&site, "shop.example");
	assert_ok(s, site_add_alias(&site, "www.shop.example", &s->e));
	assert_ok(s, site_add_alias(&site, "*.shop.example", &s->e));
	snprintf(site.owner, sizeof(site.owner), "ann");
	snprintf(site.home, sizeof(site.home), "/home/ann/www");
	site.max_body = 100 << 20;
	site.use_static = 1;
	assert_ok(s, sites_add(s->r, &site, &s->e));
	site_fini(&site);

	assert_ok(s, sites_get(s->r, "www.shop.example", &site, &s->e));
	assert_string_equal(site.name, "shop.example");
	assert_string_equal(site.aliases, "*.shop.example www.shop.example");
	assert_string_equal(site.owner, "ann");
	assert_string_equal(site.home, "/home/ann/www");
	assert_string_equal(site.role, "worker_http");
	assert_string_equal(site.page, "");
	assert_int_equal(site.max_body, 100 << 20);
	assert_int_equal(site.share, 1);
	assert_int_equal(site.max_active, 0);
	assert_true(site.enabled && site.use_static && site.id > 0);
	site_fini(&site);
	assert_refused(s, sites_get(s->r, "shop.exampel", &site, &s->e),
	    ERR_NO_TARGET, "did you mean 'shop.example'");
}

static void
a_host_belongs_to_one_site(void **state)
{
	struct scratch *s = *state;

	assert_ok(s, add(s, "a.example", "*.a.example"));
	assert_refused(s, add(s, "a.example", NULL), ERR_CONFLICT,
	    "site a.example exists already");
	assert_refused(s, add(s, "b.example", "a.example"), ERR_CONFLICT,
	    "host a.example belongs to site a.example already");
	assert_refused(s, add(s, "b.example", "*.a.example"), ERR_CONFLICT,
	    "*.a.example belongs");
	assert_ok(s, add(s, "b.example", NULL));
	assert_refused(s,
	    sites_add_alias(s->r, "b.example", "a.example", &s->e),
	    ERR_CONFLICT, "belongs to site a");
	assert_ok(s, sites_add_alias(s->r, "b.example", "c.example", &s->e));
	assert_refused(s, add(s, "c.example", NULL), ERR_CONFLICT,
	    "belongs to site b.example");
	assert_refused(s, sites_remove(s->r, "c.example", &s->e), ERR_NO_TARGET,
	    "c.example is an alias of site b.example");
	assert_refused(s,
	    sites_remove_alias(s->r, "b.example", "b.example", &s->e),
	    ERR_NO_TARGET, "has no alias");
	assert_ok(s, sites_remove_alias(s->r, "b.example", "c.example", &s->e));
	assert_ok(s, add(s, "c.example", NULL));
	assert_ok(s, sites_remove(s->r, "a.example", &s->e));
	assert_ok(s, add(s, "new.example", "a.example"));
	assert_int_equal(scratch_count_sites(s), 3);
	scratch_assert_sound(s);
}

static void
names_are_checked(void **state)
{
	struct scratch *s = *state;

	assert_refused(s, add(s, "*.a.example", NULL), ERR_USAGE, "host name");
	assert_refused(s, add(s, "A.example", NULL), ERR_USAGE, "lower-case");
	assert_refused(s, add(s, "a.example", "b.*.example"), ERR_USAGE,
	    "the first may be '*'");
	assert_refused(s, add(s, "a..example", NULL), ERR_USAGE, "host name");
	assert_ok(s, add(s, "localhost", NULL));
}

static void
values_are_checked_and_kept(void **state)
{
	static const struct {
		const char *option, *value, *part; /* NULL: taken */
	} cases[] = {
		{ "owner", "ann", NULL },
		{ "owner", "ann; rm", "not an account's name" },
		{ "owner", "", NULL },
		{ "home", "www", "not an absolute path" },
		{ "home", "none", NULL },
		{ "role", "storage", NULL },
		{ "role", "nobody", "no such role" },
		{ "page", "/srv/suspended.html", NULL },
		{ "max_body", "0", "1..1T, or default" },
		{ "max_body", "5M", NULL },
		{ "share", "1001", "1..1000" },
		{ "max_active", "none", NULL },
		{ "static", "on", NULL },
		{ "statics", "on", "did you mean 'static'" },
	};
	struct scratch *s = *state;
	struct site site;

	assert_ok(s, add(s, "a.example", NULL));
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int rv = sites_set(s->r, "a.example", cases[i].option,
		    cases[i].value, &s->e);

		if ((rv == 0) != (cases[i].part == NULL) ||
		    (rv == -1 && strstr(s->e.text, cases[i].part) == NULL))
			fail_msg("%s %s: %d %s", cases[i].option,
			    cases[i].value, rv, s->e.text);
	}
	assert_ok(s, sites_enable(s->r, "a.example", false, &s->e));
	assert_ok(s, sites_get(s->r, "a.example", &site, &s->e));
	assert_false(site.enabled);
	assert_string_equal(site.role, "storage");
	assert_int_equal(site.max_body, 5 << 20);
	site_fini(&site);
	scratch_assert_sound(s);
}

static void
aliases_are_counted(void **state)
{
	struct scratch *s = *state;
	struct site site;
	char host[64];

	site_init(&site, "a.example");
	for (int i = 0; i < SITE_ALIASES_MAX; i++) {
		snprintf(host, sizeof(host), "h%03d.example", i);
		assert_ok(s, site_add_alias(&site, host, &s->e));
	}
	assert_refused(s, site_add_alias(&site, "x.example", &s->e), ERR_USAGE,
	    "the most there can be");
	assert_ok(s, sites_add(s->r, &site, &s->e));
	site_fini(&site);
	assert_refused(s,
	    sites_add_alias(s->r, "a.example", "x.example", &s->e), ERR_USAGE,
	    "the most there can be");
}

static int
count_site(const struct site *site, void *arg)
{
	assert_non_null(site->aliases);
	++*(int64_t *)arg;
	return 0;
}

static void
a_hundred_thousand_are_one_change(void **state)
{
	struct scratch *s = *state;
	char name[64], alias[64];
	int64_t was = scratch_revision(s), began = clock_mono_ms(), n = 0;

	assert_ok(s, registry_begin(s->r, &s->e, "add 100000 sites"));
	for (int i = 0; i < 100000; i++) {
		snprintf(name, sizeof(name), "site%d.example", i);
		snprintf(alias, sizeof(alias), "www.site%d.example", i);
		assert_ok(s, add(s, name, alias));
	}
	assert_ok(s, registry_end(s->r, 0, &s->e));
	assert_int_equal(scratch_revision(s), was + 1);
	assert_ok(s, sites_each(s->r, count_site, &n, &s->e));
	assert_int_equal(n, 100000);
	/* Seconds, said for whoever reads the log; no bound, since the
	 * machine may be busy or this a sanitizer's build. */
	print_message("100000 sites: %d ms\n", (int)(clock_mono_ms() - began));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		scratch_test(a_site_comes_back_as_it_went_in),
		scratch_test(a_host_belongs_to_one_site),
		scratch_test(names_are_checked),
		scratch_test(values_are_checked_and_kept),
		scratch_test(aliases_are_counted),
		scratch_test(a_hundred_thousand_are_one_change),
	};

	return cmocka_run_group_tests_name("sites", tests, NULL, NULL);
}
