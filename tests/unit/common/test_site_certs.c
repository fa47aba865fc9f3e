/* test_site_certs.c: certificates of sites in the registry, the roster and an
 * export; a registry from before they were. */
#include "tests/unit/common/scratch.h"

#include <sqlite3.h>

#include "common/registry/export.h"
#include "common/registry/record.h"
#include "common/registry/roster.h"
#include "common/registry/site_certs.h"

static struct site_cert
sample(const char *site, enum site_cert_kind kind, uint8_t chain)
{
	struct site_cert c = { .kind = kind,
		.key = { 0xab, 1 },
		.chain = { chain },
		.not_before_s = 1700000000,
		.not_after_s = 1800000000,
		.issuer = "Test \"CA\"",
		.names = (char *)(uintptr_t) "a.example *.a.example" };

	snprintf(c.site, sizeof(c.site), "%s", site);
	return c;
}

static void
add_site(struct scratch *s, const char *name, const char *alias)
{
	struct site site;

	site_init(&site, name);
	assert_ok(s, site_add_alias(&site, alias, &s->e));
	assert_ok(s, sites_add(s->r, &site, &s->e));
	site_fini(&site);
}

static void
set(struct scratch *s, const char *site, enum site_cert_kind kind,
    uint8_t chain)
{
	struct site_cert c = sample(site, kind, chain);

	assert_ok(s, site_certs_set(s->r, &c, &s->e));
}

static int
describe(const struct site_cert *c, void *arg)
{
	char *text = arg;
	size_t len = strlen(text);

	snprintf(text + len, 600 - len, "%s %s %02x %d %s|%s;", c->site,
	    site_cert_kind_name(c->kind), c->chain[0], c->has_staple, c->names,
	    c->hosts);
	assert_int_equal(c->key[0], 0xab);
	assert_int_equal(c->not_before_s, 1700000000);
	assert_int_equal(c->not_after_s, 1800000000);
	assert_string_equal(c->issuer, "Test \"CA\"");
	return 0;
}

static const char *
list(struct scratch *s, const char *site)
{
	static char text[600];

	text[0] = '\0';
	assert_ok(s, site_certs_each(s->r, site, describe, text, &s->e));
	return text;
}

static void
one_of_each_kind(void **state)
{
	struct scratch *s = *state;
	struct site_cert c;
	int64_t was;

	add_site(s, "b.example", "www.b.example");
	add_site(s, "a.example", "*.a.example");
	set(s, "b.example", SITE_CERT_ECDSA, 1);
	set(s, "a.example", SITE_CERT_ECDSA, 2);
	set(s, "a.example", SITE_CERT_RSA, 3);
	assert_string_equal(list(s, NULL),
	    "a.example rsa 03 0 a.example *.a.example|a.example *.a.example;"
	    "a.example ecdsa 02 0 a.example *.a.example|a.example *.a.example;"
	    "b.example ecdsa 01 0 a.example *.a.example|"
	    "b.example www.b.example;");
	was = scratch_revision(s);
	set(s, "b.example", SITE_CERT_ECDSA, 1);
	assert_int_equal(scratch_revision(s), was); /* nothing new */
	c = sample("b.example", SITE_CERT_ECDSA, 1);
	c.has_staple = true;
	assert_ok(s, site_certs_set(s->r, &c, &s->e));
	assert_int_equal(scratch_revision(s), was + 1);
	set(s, "b.example", SITE_CERT_ECDSA, 9);
	assert_string_equal(list(s, "b.example"),
	    "b.example ecdsa 09 0 a.example *.a.example|"
	    "b.example www.b.example;");
	assert_ok(s,
	    site_certs_remove(s->r, "a.example", SITE_CERT_RSA, &s->e));
	assert_refused(s,
	    site_certs_remove(s->r, "a.example", SITE_CERT_RSA, &s->e),
	    ERR_NO_TARGET, "site a.example has no rsa certificate");
	assert_ok(s, sites_remove(s->r, "b.example", &s->e));
	assert_string_equal(list(s, NULL),
	    "a.example ecdsa 02 0 a.example *.a.example|"
	    "a.example *.a.example;");
	scratch_assert_sound(s);
}

static void
what_is_wrong_is_refused(void **state)
{
	struct scratch *s = *state;
	struct site_cert c = sample("gone.example", SITE_CERT_RSA, 1);
	enum site_cert_kind kind;

	add_site(s, "a.example", "www.a.example");
	assert_refused(s, site_certs_set(s->r, &c, &s->e), ERR_NO_TARGET,
	    "no such site");
	c = sample("www.a.example", SITE_CERT_RSA, 1);
	assert_refused(s, site_certs_set(s->r, &c, &s->e), ERR_NO_TARGET,
	    "is an alias of site a.example");
	c = sample("a.example", SITE_CERT_RSA, 1);
	c.names = (char *)(uintptr_t) "a.example UPPER";
	assert_refused(s, site_certs_set(s->r, &c, &s->e), ERR_USAGE,
	    "'UPPER' is not valid");
	c.names = (char *)(uintptr_t) "";
	assert_refused(s, site_certs_set(s->r, &c, &s->e), ERR_USAGE,
	    "one name at least");
	assert_refused(s, site_cert_kind_parse("dsa", &kind, &s->e), ERR_USAGE,
	    "rsa or ecdsa");
	assert_string_equal(list(s, NULL), "");
}

static void
the_roster_carries_them(void **state)
{
	struct scratch *s = *state;
	uint8_t authority[KEY_SIZE], secret[64];
	char path[PATH_MAX], text[600] = "";
	struct roster *r;

	assert_int_not_equal(sodium_init(), -1);
	crypto_sign_keypair(authority, secret);
	add_site(s, "a.example", "*.a.example");
	set(s, "a.example", SITE_CERT_RSA, 3);
	scratch_path(s, "roster", path);
	assert_ok(s, roster_write(s->r, secret, 1, path, &s->e));
	assert_non_null(r = roster_open(path, authority, &s->e));
	assert_ok(s, roster_each_site_cert(r, describe, text, &s->e));
	assert_string_equal(text,
	    "a.example rsa 03 0 a.example *.a.example|"
	    "a.example *.a.example;");
	roster_close(r);
}

static void
tell(const char *line, void *arg)
{
	size_t len = strlen(arg);

	snprintf((char *)arg + len, 600 - len, "%s\n", line);
}

static const char *
apply(struct scratch *s, const char *json)
{
	static char told[600];
	size_t n;

	told[0] = '\0';
	assert_ok(s,
	    registry_apply(s->r, json, strlen(json), false, tell, told, &n,
		&s->e));
	return told;
}

static void
an_export_says_which_they_are(void **state)
{
	struct scratch *s = *state;
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	add_site(s, "a.example", "*.a.example");
	set(s, "a.example", SITE_CERT_RSA, 3);
	assert_ok(s, registry_export(s->r, f, &s->e));
	fclose(f);
	assert_non_null(strstr(text, "\"kind\":\"rsa\""));
	assert_null(strstr(text, "hosts"));
	assert_string_equal(apply(s, text), "");
	set(s, "a.example", SITE_CERT_RSA, 4);
	set(s, "a.example", SITE_CERT_ECDSA, 5);
	assert_string_equal(apply(s, text),
	    "remove the ecdsa certificate of site a.example\n"
	    "set the rsa certificate of site a.example\n");
	assert_string_equal(list(s, NULL),
	    "a.example rsa 03 0 a.example *.a.example|"
	    "a.example *.a.example;");
	/* A member that is missing leaves them alone. */
	assert_string_equal(apply(s, "{\"settings\":{}}"), "");
	assert_string_equal(apply(s, "{\"site_certs\":[]}"),
	    "remove the rsa certificate of site a.example\n");
	free(text);
}

static void
a_record_is_checked(void **state)
{
#define GOOD_HASH \
	"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define RECORD(hash, names)                                             \
	"{\"site\":\"a.example\",\"kind\":\"rsa\",\"key\":\"" GOOD_HASH \
	"\",\"chain\":\"" hash "\",\"not_before_s\":1,"                 \
	"\"not_after_s\":2,\"names\":\"" names "\"}"
	static const struct {
		const char *json;
		bool good;
	} cases[] = {
		{ RECORD(GOOD_HASH, "a.example"), true },
		{ RECORD("01", "a.example"), false },
		{ RECORD("xy", "a.example"), false },
		{ RECORD(GOOD_HASH, ""), false },
		{ RECORD(GOOD_HASH, "a..b"), false },
		{ "{\"site\":\"a.example\",\"kind\":\"rsa\"}", false },
		{ "{\"site\":\"A\"}", false },
		{ "{}", false },
	};
	struct site_cert c;
	struct err e;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		json_t *o = json_loads(cases[i].json, 0, NULL);

		assert_non_null(o);
		assert_int_equal(record_to_site_cert(o, &c, &e),
		    cases[i].good ? 0 : -1);
		if (cases[i].good)
			site_cert_fini(&c);
		json_decref(o);
	}
}

static void
covering(void **state)
{
	(void)state;
	assert_true(site_cert_covers("a.b *.c", "a.b", 3));
	assert_true(site_cert_covers("a.b *.c", "x.c", 3));
	assert_true(site_cert_covers("a.b *.c", "*.c", 3));
	assert_false(site_cert_covers("a.b *.c", "c", 1));
	assert_false(site_cert_covers("a.b *.c", ".c", 2));
	assert_false(site_cert_covers("a.b *.c", "x.y.c", 5));
	assert_false(site_cert_covers("a.b *.c", "*.b", 3));
	/* A wildcard does not cover a wildcard below it. */
	assert_false(site_cert_covers("*.c", "*.x.c", 5));
	assert_false(site_cert_covers("", "a", 1));
}

/* As a registry was before schema 2. */
static void
an_older_registry_learns_of_them(void **state)
{
	struct scratch *s = *state;
	sqlite3 *db;

	add_site(s, "a.example", "*.a.example");
	registry_close(s->r);
	assert_int_equal(sqlite3_open(s->db, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db,
			     "DROP TABLE site_certs; PRAGMA user_version = 1",
			     NULL, NULL, NULL),
	    SQLITE_OK);
	sqlite3_close(db);
	s->r = registry_open(s->db, REGISTRY_WRITE, &s->e);
	assert_non_null(s->r);
	assert_string_equal(list(s, NULL), "");
	set(s, "a.example", SITE_CERT_RSA, 1);
	scratch_assert_sound(s);
}

#define TEST(fn) \
	cmocka_unit_test_setup_teardown(fn, scratch_setup, scratch_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(one_of_each_kind),
		TEST(what_is_wrong_is_refused),
		TEST(the_roster_carries_them),
		TEST(an_export_says_which_they_are),
		TEST(a_record_is_checked),
		cmocka_unit_test(covering),
		TEST(an_older_registry_learns_of_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
