/* test_certificates.c: when the follower makes a new image of certificates,
 * and of which. */
#include "tests/unit/common/scratch.h"

#include "common/custody/custody.h"
#include "common/registry/site_certs.h"
#include "common/registry/sites.h"
#include "proxyd/process/certificates.h"
#include "proxyd/process/source.h"
#include "proxyd/tls/cert_image.h"

#define P256                                                              \
	0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, \
	    0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07

struct fixture {
	struct scratch *s;
	struct state st;
	struct custody custody;
	struct source *source;
	struct certificates *certs;
};

static void
set_up(struct fixture *f, void **state)
{
	f->s = *state;
	assert_int_not_equal(sodium_init(), -1);
	snprintf(f->st.dir, sizeof(f->st.dir), "%s", f->s->dir);
	assert_ok(f->s, custody_open(&f->custody, &f->st, &f->s->e));
	assert_non_null(f->source = source_new(&f->st, &f->s->e));
	assert_non_null(f->certs = certificates_new(&f->st, &f->s->e));
}

static void
tear_down(struct fixture *f)
{
	certificates_free(f->certs);
	source_free(f->source);
	custody_close(&f->custody);
}

static void
add_site(struct fixture *f, const char *name)
{
	struct site site;

	site_init(&site, name);
	assert_ok(f->s, sites_add(f->s->r, &site, &f->s->e));
}

/* A certificate whose key and chain are known by n; the registry names it. */
static struct site_cert
set_cert(struct fixture *f, const char *site, uint8_t n)
{
	const uint8_t chain[] = { 0x30, 0x01, n };
	const uint8_t info[] = { 0x30, 0x19, P256, 0x03, 0x02, 0x00, n };
	struct site_cert c = { .kind = SITE_CERT_ECDSA,
		.not_after_s = 4000000000,
		.names = (char *)(uintptr_t) "a.example" };

	snprintf(c.site, sizeof(c.site), "%s", site);
	crypto_hash_sha256(c.chain, chain, sizeof(chain));
	crypto_hash_sha256(c.key, info, sizeof(info));
	assert_ok(f->s, site_certs_set(f->s->r, &c, &f->s->e));
	return c;
}

static void
write_files(struct fixture *f, const struct site_cert *c, uint8_t n)
{
	const uint8_t chain[] = { 0x30, 0x01, n };
	const uint8_t key[] = { 0x30, 0x28, 0x02, 0x01, 0x00, P256, 0x04, 0x0e,
		0x30, 0x0c, 0x02, 0x01, 0x01, 0x04, 0x01, 0x09, 0xa1, 0x04,
		0x03, 0x02, 0x00, n };

	assert_ok(f->s,
	    custody_write(&f->custody, CUSTODY_CHAIN, c->chain, chain,
		sizeof(chain), false, &f->s->e));
	assert_ok(f->s,
	    custody_write(&f->custody, CUSTODY_KEY, c->key, key, sizeof(key),
		false, &f->s->e));
}

/* What a look brings: the n of the certificate that a.example gets, 0 for
 * none, -1 when there is no new image. */
static int
look(struct fixture *f, const char *host)
{
	struct cert_image_found found;
	struct cert_image *image;
	int64_t revision;
	int fd, n = 0;

	assert_ok(f->s, source_revision(f->source, &revision, &f->s->e));
	assert_ok(f->s,
	    certificates_look(f->certs, f->source, "", &fd, &f->s->e));
	if (fd == -1)
		return -1;
	assert_non_null(image = cert_image_map(fd, &f->s->e));
	close(fd);
	if (cert_image_find(image, host, strlen(host), &found))
		n = cert_image_at(image,
		    found.by_kind[CERT_IMAGE_ECDSA]->chain[0])[2];
	cert_image_release(image);
	return n;
}

/* As the follower does: until there is nothing to look at. */
static void
settle(struct fixture *f)
{
	for (int i = 0; i < 1000000 && certificates_due(f->certs); i++)
		look(f, "a.example");
	assert_false(certificates_due(f->certs));
}

static void
only_what_concerns_it_makes_an_image(void **state)
{
	struct site_cert c;
	struct fixture f;

	set_up(&f, state);
	assert_int_equal(look(&f, "a.example"), 0); /* the first, empty */
	assert_int_equal(look(&f, "a.example"), -1);
	add_site(&f, "a.example");
	add_site(&f, "b.example");
	assert_int_equal(look(&f, "a.example"), -1);
	c = set_cert(&f, "a.example", 5);
	write_files(&f, &c, 5);
	assert_int_equal(look(&f, "a.example"), 5);
	assert_ok(f.s, sites_set(f.s->r, "a.example", "share", "3", &f.s->e));
	assert_ok(f.s,
	    sites_add_alias(f.s->r, "b.example", "x.example", &f.s->e));
	assert_int_equal(look(&f, "a.example"), -1);
	assert_ok(f.s,
	    sites_add_alias(f.s->r, "a.example", "y.example", &f.s->e));
	assert_int_equal(look(&f, "y.example"), 5);
	assert_ok(f.s, sites_remove(f.s->r, "a.example", &f.s->e));
	assert_int_equal(look(&f, "a.example"), 0);
	tear_down(&f);
}

static bool
keep_nothing(enum custody_kind kind, const uint8_t *hash, void *arg)
{
	(void)kind;
	(void)hash;
	(void)arg;
	return false;
}

/* A file is read once: that it is swept meanwhile does not matter. */
static void
what_is_in_the_last_image_needs_no_file(void **state)
{
	struct site_cert c;
	struct fixture f;

	set_up(&f, state);
	add_site(&f, "a.example");
	c = set_cert(&f, "a.example", 5);
	write_files(&f, &c, 5);
	assert_int_equal(look(&f, "a.example"), 5);
	assert_ok(f.s, custody_sweep(&f.custody, keep_nothing, NULL, &f.s->e));
	assert_ok(f.s,
	    sites_add_alias(f.s->r, "a.example", "y.example", &f.s->e));
	assert_int_equal(look(&f, "a.example"), 5);
	assert_false(certificates_due(f.certs));
	tear_down(&f);
}

static void
a_renewed_one_waits_for_its_files(void **state)
{
	struct site_cert c;
	struct fixture f;

	set_up(&f, state);
	add_site(&f, "a.example");
	c = set_cert(&f, "a.example", 5);
	assert_int_equal(look(&f, "a.example"), 0);
	settle(&f); /* nothing has come */
	write_files(&f, &c, 5);
	assert_true(certificates_due(f.certs));
	assert_int_equal(look(&f, "a.example"), 5);
	assert_false(certificates_due(f.certs));
	c = set_cert(&f, "a.example", 6);
	assert_int_equal(look(&f, "a.example"), 5); /* what it had */
	settle(&f);
	assert_int_equal(look(&f, "a.example"), -1);
	write_files(&f, &c, 6);
	assert_true(certificates_due(f.certs));
	assert_int_equal(look(&f, "a.example"), 6);
	assert_int_equal(look(&f, "a.example"), -1);
	tear_down(&f);
}

#define TEST(fn) \
	cmocka_unit_test_setup_teardown(fn, scratch_setup, scratch_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(only_what_concerns_it_makes_an_image),
		TEST(what_is_in_the_last_image_needs_no_file),
		TEST(a_renewed_one_waits_for_its_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
