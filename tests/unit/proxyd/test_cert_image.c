/* test_cert_image.c: certificate images: what is written is read, which certificate a name
 * gets, and that no damaged image is taken. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <sys/mman.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/base/io.h"
#include "proxyd/tls/cert_form.h"
#include "proxyd/tls/cert_image.h"
#include "proxyd/tls/cert_plan.h"

/* Two elements that look like certificates: a leaf, an authority's. */
#define LEAF_SIZE 5
static const uint8_t chain[] = "\x30\x03one\x30\x03two";
static const uint8_t key[] = "the key";
static const uint8_t staple[] = "the staple";

/* One certificate of a test, and what it is for. */
struct sample {
	const char *site, *hosts, *names;
	enum cert_image_kind kind;
	int64_t not_after_s;
};

static struct cert_plan_bytes
bytes(const uint8_t *at, size_t size)
{
	return (struct cert_plan_bytes){ at, size };
}

static void
add(struct cert_plan *p, const struct sample *s, uint8_t id)
{
	struct cert_plan_entry x = {
		.id = { id },
		.site = s->site,
		.hosts = s->hosts,
		.names = s->names,
		.kind = s->kind,
		.not_after_s = s->not_after_s,
		.chain = bytes(chain, sizeof(chain) - 1),
		.key = bytes(key, sizeof(key)),
	};
	struct err e;

	assert_int_equal(cert_plan_add(p, &x, &e), 0);
}

static int
write_image(const struct sample *s, size_t n, const char *fallback)
{
	struct err e;
	struct cert_plan *p = cert_plan_new(&e);
	int fd;

	assert_non_null(p);
	for (size_t i = 0; i < n; i++)
		add(p, &s[i], (uint8_t)(i + 1));
	if (fallback != NULL)
		cert_plan_default(p, fallback);
	assert_int_equal(cert_plan_write(p, &fd, &e), 0);
	cert_plan_free(p);
	return fd;
}

static struct cert_image *
image_of(const struct sample *s, size_t n, const char *fallback)
{
	struct err e;
	int fd = write_image(s, n, fallback);
	struct cert_image *c = cert_image_map(fd, &e);

	assert_non_null(c);
	close(fd);
	return c;
}

/* The number (from 1) of the certificate that a name gets; 0: none. */
static int
got(const struct cert_image *c, const char *name, enum cert_image_kind kind)
{
	struct cert_image_found f;

	if (!cert_image_find(c, name, strlen(name), &f) ||
	    f.by_kind[kind] == NULL)
		return 0;
	return f.by_kind[kind]->id[0];
}

static int
rsa(const struct cert_image *c, const char *name)
{
	return got(c, name, CERT_IMAGE_RSA);
}

static void
content(void **state)
{
	struct cert_plan_entry x = {
		.id = "identity",
		.site = "a.b",
		.hosts = "a.b",
		.names = "a.b",
		.kind = CERT_IMAGE_ECDSA,
		.not_before_s = 5,
		.not_after_s = 7,
		.ocsp_until_s = 6,
		.chain = bytes(chain, sizeof(chain) - 1),
		.key = bytes(key, sizeof(key)),
		.ocsp = bytes(staple, sizeof(staple)),
	};
	const struct cert_image_entry *y;
	struct cert_image_found f;
	struct cert_image *c;
	struct err e;
	struct cert_plan *p = cert_plan_new(&e);
	int fd;

	(void)state;
	assert_int_equal(cert_plan_add(p, &x, &e), 0);
	assert_int_equal(cert_plan_write(p, &fd, &e), 0);
	cert_plan_free(p);
	assert_non_null(c = cert_image_map(fd, &e));
	/* Nobody can change it any more. */
	assert_int_equal(write(fd, "x", 1), -1);
	assert_int_equal(ftruncate(fd, 0), -1);
	assert_ptr_equal(mmap(NULL, 1, PROT_WRITE, MAP_SHARED, fd, 0),
	    MAP_FAILED);
	assert_int_not_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, 0);
	close(fd);
	assert_int_equal(cert_image_count(c), 1);
	assert_true(cert_image_find(c, "a.b", 3, &f));
	assert_null(f.by_kind[CERT_IMAGE_RSA]);
	y = f.by_kind[CERT_IMAGE_ECDSA];
	assert_ptr_equal(y, cert_image_entry(c, 0));
	assert_memory_equal(y->id, x.id, sizeof(x.id));
	assert_int_equal(y->not_before_s, 5);
	assert_int_equal(y->not_after_s, 7);
	assert_int_equal(y->ocsp_until_s, 6);
	assert_int_equal(y->n_chain, 2);
	assert_int_equal(y->chain[0].size, LEAF_SIZE);
	assert_memory_equal(cert_image_at(c, y->chain[0]), chain, LEAF_SIZE);
	assert_memory_equal(cert_image_at(c, y->chain[1]), chain + LEAF_SIZE,
	    LEAF_SIZE);
	assert_int_equal(y->key.size, sizeof(key));
	assert_memory_equal(cert_image_at(c, y->key), key, sizeof(key));
	assert_int_equal(y->ocsp.size, sizeof(staple));
	assert_memory_equal(cert_image_at(c, y->ocsp), staple, sizeof(staple));
	assert_int_equal(y->site.size, 3);
	assert_memory_equal(cert_image_at(c, y->site), "a.b", 3);
	cert_image_release(c);
}

/* Ten thousand chains with the same authority hold it once. */
static void
authorities_stand_once(void **state)
{
	static const struct sample s = { "a", "a", "a", CERT_IMAGE_RSA, 1 };
	const struct sample twice[] = { s, s };
	struct cert_image *c = image_of(twice, 2, NULL);

	(void)state;
	assert_int_equal(cert_image_entry(c, 0)->chain[1].off,
	    cert_image_entry(c, 1)->chain[1].off);
	assert_int_not_equal(cert_image_entry(c, 0)->chain[0].off,
	    cert_image_entry(c, 1)->chain[0].off);
	cert_image_release(c);
}

static void
empty(void **state)
{
	struct cert_image *c = image_of(NULL, 0, "a.b");

	(void)state;
	assert_int_equal(cert_image_count(c), 0);
	assert_int_equal(rsa(c, "a.b"), 0);
	assert_int_equal(rsa(c, ""), 0);
	cert_image_release(c);
}

static void
spelling(void **state)
{
	static const struct sample s[] = {
		{ "xn--bcher-kva.example", "xn--bcher-kva.example",
		    "xn--bcher-kva.example", CERT_IMAGE_RSA, 1 },
	};
	struct cert_image *c = image_of(s, 1, NULL);
	char longest[300];

	(void)state;
	assert_int_equal(rsa(c, "xn--bcher-kva.example"), 1);
	assert_int_equal(rsa(c, "XN--Bcher-KVA.Example"), 1);
	assert_int_equal(rsa(c, "xn--bcher-kva.example."), 1);
	assert_int_equal(rsa(c, "xn--bcher-kva.example.."), 0);
	assert_int_equal(rsa(c,
			     "b\xc3\xbc"
			     "cher.example"),
	    0);
	assert_int_equal(rsa(c, "."), 0);
	assert_int_equal(rsa(c, ""), 0);
	memset(longest, 'a', sizeof(longest));
	longest[299] = '\0';
	assert_int_equal(rsa(c, longest), 0);
	cert_image_release(c);
}

static void
wildcards(void **state)
{
	static const struct sample s[] = {
		{ "b", "b", "*.b", CERT_IMAGE_RSA, 1 },
		{ "c", "c", "x.b", CERT_IMAGE_RSA, 1 },
	};
	struct cert_image *c = image_of(s, 2, NULL);

	(void)state;
	assert_int_equal(rsa(c, "a.b"), 1);
	assert_int_equal(rsa(c, "x.b"), 2);   /* exact first */
	assert_int_equal(rsa(c, "x.a.b"), 0); /* one label */
	assert_int_equal(rsa(c, ".b"), 0);
	assert_int_equal(rsa(c, "*.b"), 1);
	/* Its own site's, though it does not cover it: better than nothing. */
	assert_int_equal(rsa(c, "b"), 1);
	assert_int_equal(rsa(c, "c"), 2);
	cert_image_release(c);
}

static void
own_certificates_win(void **state)
{
	static const struct sample s[] = {
		/* An older one of its own beats a younger one of another. */
		{ "a.x", "a.x www.a.x", "a.x www.a.x", CERT_IMAGE_RSA, 10 },
		{ "b.x", "b.x", "b.x a.x www.a.x", CERT_IMAGE_RSA, 99 },
		/* One that does not cover its host gives way to any that does,
		 * by name or by wildcard. */
		{ "c.x", "c.x", "other", CERT_IMAGE_RSA, 10 },
		{ "d.x", "d.x", "d.x c.x", CERT_IMAGE_RSA, 10 },
		{ "e.y", "e.y", "other", CERT_IMAGE_RSA, 10 },
		{ "f", "f", "*.y", CERT_IMAGE_RSA, 10 },
		/* The alias "*.z" is g's; h has a later certificate for it. */
		{ "g", "g *.z", "g *.z", CERT_IMAGE_RSA, 10 },
		{ "h", "h", "h *.z", CERT_IMAGE_RSA, 99 },
	};
	struct cert_image *c = image_of(s, nitems(s), NULL);

	(void)state;
	assert_int_equal(rsa(c, "a.x"), 1);
	assert_int_equal(rsa(c, "www.a.x"), 1);
	assert_int_equal(rsa(c, "c.x"), 4);
	assert_int_equal(rsa(c, "e.y"), 6);
	assert_int_equal(rsa(c, "any.z"), 7);
	cert_image_release(c);
}

static void
kinds(void **state)
{
	static const struct sample s[] = {
		{ "a", "a", "a", CERT_IMAGE_RSA, 10 },
		{ "a", "a", "a", CERT_IMAGE_ECDSA, 5 },
		{ "b", "b", "c", CERT_IMAGE_RSA, 10 },
		{ "b2", "b2", "c", CERT_IMAGE_RSA, 20 },
		{ "b3", "b3", "c", CERT_IMAGE_ECDSA, 1 },
		/* Own and foreign do not mix. */
		{ "d", "d", "d", CERT_IMAGE_ECDSA, 1 },
		{ "e", "e", "d", CERT_IMAGE_RSA, 1 },
	};
	struct cert_image *c = image_of(s, nitems(s), NULL);

	(void)state;
	assert_int_equal(rsa(c, "a"), 1);
	assert_int_equal(got(c, "a", CERT_IMAGE_ECDSA), 2);
	assert_int_equal(rsa(c, "c"), 4); /* lasts longer */
	assert_int_equal(got(c, "c", CERT_IMAGE_ECDSA), 5);
	assert_int_equal(got(c, "d", CERT_IMAGE_ECDSA), 6);
	assert_int_equal(rsa(c, "d"), 0);
	cert_image_release(c);
}

static void
fallback(void **state)
{
	static const struct sample s[] = {
		{ "a.b", "a.b", "a.b", CERT_IMAGE_RSA, 1 },
		{ "c.d", "c.d", "*.d", CERT_IMAGE_ECDSA, 1 },
	};
	struct cert_image *c = image_of(s, 2, "c.d");

	(void)state;
	assert_int_equal(rsa(c, "a.b"), 1);
	assert_int_equal(got(c, "unknown", CERT_IMAGE_ECDSA), 2);
	assert_int_equal(got(c, "", CERT_IMAGE_ECDSA), 2);
	assert_int_equal(got(c, ".", CERT_IMAGE_ECDSA), 2);
	cert_image_release(c);
	/* A site that has none: as if none was chosen. */
	c = image_of(s, 2, "gone");
	assert_int_equal(rsa(c, "unknown"), 0);
	cert_image_release(c);
}

static void
many(void **state)
{
	char host[32], names[80];
	struct sample s = { host, host, names, CERT_IMAGE_RSA, 1 };
	struct err e;
	struct cert_plan *p = cert_plan_new(&e);
	struct cert_image_found f;
	struct cert_image *c;
	int fd;

	(void)state;
	for (int i = 0; i < 5000; i++) {
		snprintf(host, sizeof(host), "site%d.example", i);
		snprintf(names, sizeof(names), "%s www.%s", host, host);
		add(p, &s, 1);
	}
	assert_int_equal(cert_plan_write(p, &fd, &e), 0);
	cert_plan_free(p);
	assert_non_null(c = cert_image_map(fd, &e));
	close(fd);
	for (int i = 0; i < 5000; i++) {
		snprintf(host, sizeof(host), "www.site%d.example", i);
		assert_true(cert_image_find(c, host, strlen(host), &f));
		assert_ptr_equal(f.by_kind[0],
		    cert_image_entry(c, (uint32_t)i));
	}
	assert_false(cert_image_find(c, "site5000.example", 16, &f));
	cert_image_release(c);
}

static void
broken_chains(void **state)
{
	static const char *const texts[] = { "", "x", "\x30", "\x30\x09short",
		"\x30\x84\x01\x01\x01\x01", "\x30\x82\x01", "\x30\x03onex",
		"\x30\x80" };
	struct cert_plan_entry x = { .site = "a",
		.hosts = "a",
		.names = "a",
		.key = bytes(key, sizeof(key)) };
	struct cert_image *c;
	struct err e;
	struct cert_plan *p = cert_plan_new(&e);
	int fd;

	(void)state;
	for (size_t i = 0; i < nitems(texts); i++) {
		x.chain = bytes((const uint8_t *)texts[i], strlen(texts[i]));
		assert_int_equal(cert_plan_add(p, &x, &e), -1);
		assert_int_equal(e.code, ERR_CORRUPT);
	}
	assert_int_equal(cert_plan_write(p, &fd, &e), 0);
	cert_plan_free(p);
	assert_non_null(c = cert_image_map(fd, &e));
	close(fd);
	assert_int_equal(cert_image_count(c), 0);
	cert_image_release(c);
}

/* Each byte of a small image in turn: it is refused, or still safe to ask. */
static void
damage(void **state)
{
	static const struct sample s[] = {
		{ "a.b", "a.b", "a.b *.c", CERT_IMAGE_RSA, 1 },
	};
	int whole = write_image(s, 1, "a.b");
	off_t size = lseek(whole, 0, SEEK_END);
	struct cert_image_found f;
	struct cert_image *c;
	uint8_t image[4096];
	struct err e;

	(void)state;
	assert_in_range(size, 1, sizeof(image));
	assert_int_equal(pread(whole, image, (size_t)size, 0), size);
	close(whole);
	for (off_t i = 0; i < 2 * size; i++) {
		int fd = memfd_create("damaged", MFD_CLOEXEC);
		uint8_t bit = i < size ? 0x80 : 0x01;

		image[i % size] ^= bit;
		assert_int_equal(io_write_n(fd, image, (size_t)size), 0);
		image[i % size] ^= bit;
		if ((c = cert_image_map(fd, &e)) != NULL) {
			for (uint32_t j = 0; j < cert_image_count(c); j++) {
				const struct cert_image_entry *x =
				    cert_image_entry(c, j);
				volatile uint8_t last =
				    cert_image_at(c, x->key)[x->key.size - 1];

				(void)last;
			}
			cert_image_find(c, "x.c", 3, &f);
			cert_image_find(c, "none", 4, &f);
			cert_image_release(c);
		} else
			assert_int_equal(e.code, ERR_CORRUPT);
		close(fd);
	}
	for (off_t cut = 0; cut < size; cut++) {
		int fd = memfd_create("cut", MFD_CLOEXEC);

		assert_int_equal(io_write_n(fd, image, (size_t)cut), 0);
		assert_null(cert_image_map(fd, &e));
		close(fd);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(content),
		cmocka_unit_test(authorities_stand_once),
		cmocka_unit_test(empty),
		cmocka_unit_test(spelling),
		cmocka_unit_test(wildcards),
		cmocka_unit_test(own_certificates_win),
		cmocka_unit_test(kinds),
		cmocka_unit_test(fallback),
		cmocka_unit_test(many),
		cmocka_unit_test(broken_chains),
		cmocka_unit_test(damage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
