/* test_report_certs.c: which certificates end soon, and for which sites. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "proxyd/admin/report_certs.h"
#include "proxyd/tls/cert_plan.h"

#define NOW_S 1000000000
#define DAY_S 86400

static void
add(struct cert_plan *p, const char *site, enum cert_image_kind kind,
    int64_t left_s)
{
	static const uint8_t chain[] = "\x30\x01x", key[] = "key";
	struct cert_plan_entry x = {
		.site = site,
		.hosts = site,
		.names = site,
		.kind = kind,
		.not_after_s = NOW_S + left_s,
		.chain = { chain, sizeof(chain) - 1 },
		.key = { key, sizeof(key) },
	};
	struct err e;

	assert_int_equal(cert_plan_add(p, &x, &e), 0);
}

static struct cert_image *
finish(struct cert_plan *p)
{
	struct cert_image *c;
	struct err e;
	int fd;

	assert_int_equal(cert_plan_write(p, &fd, &e), 0);
	cert_plan_free(p);
	assert_non_null(c = cert_image_map(fd, &e));
	close(fd);
	return c;
}

static int64_t
days(const struct report *r, const char *host)
{
	json_t *value = report_cert_days(r, host, NOW_S);
	int64_t n = json_is_null(value) ? 9999 : json_integer_value(value);

	json_decref(value);
	return n;
}

static void
soonest_first(void **state)
{
	struct err e;
	struct cert_plan *p = cert_plan_new(&e);
	struct report r = { .certs = NULL };
	json_t *soon, *all;
	char text[400];

	(void)state;
	add(p, "b", CERT_IMAGE_RSA, 5 * DAY_S);
	add(p, "late", CERT_IMAGE_RSA, 60 * DAY_S);
	add(p, "a", CERT_IMAGE_ECDSA, 3 * DAY_S + 10);
	add(p, "gone", CERT_IMAGE_RSA, -10);
	add(p, "b", CERT_IMAGE_ECDSA, 40 * DAY_S);
	r.certs = finish(p);
	soon = report_certs_soon(&r, NOW_S);
	*text = '\0';
	for (size_t i = 0; i < json_array_size(soon); i++) {
		json_t *row = json_array_get(soon, i);
		size_t len = strlen(text);

		snprintf(text + len, sizeof(text) - len, "%s %s;",
		    json_string_value(json_object_get(row, "site")),
		    json_string_value(json_object_get(row, "kind")));
	}
	assert_string_equal(text, "gone rsa;a ecdsa;b rsa;");
	all = report_certs(&r);
	assert_int_equal(json_integer_value(
			     json_object_get(all, "certificates")),
	    5);
	assert_int_equal(json_integer_value(
			     json_object_get(all, "not_after_s")),
	    NOW_S - 10);
	assert_int_equal(days(&r, "a"), 3);
	assert_int_equal(days(&r, "b"), 5);
	assert_int_equal(days(&r, "gone"), -1);
	assert_int_equal(days(&r, "none"), 9999);
	json_decref(soon);
	json_decref(all);
	cert_image_release((struct cert_image *)(uintptr_t)r.certs);
}

static void
never_more_than_the_bound(void **state)
{
	struct err e;
	struct cert_plan *p = cert_plan_new(&e);
	struct report r = { .certs = NULL };
	json_t *soon;
	char site[32];

	(void)state;
	for (int i = 0; i < 3 * REPORT_CERTS_MAX; i++) {
		snprintf(site, sizeof(site), "s%d", i);
		add(p, site, CERT_IMAGE_RSA, DAY_S + i);
	}
	r.certs = finish(p);
	soon = report_certs_soon(&r, NOW_S);
	assert_int_equal(json_array_size(soon), REPORT_CERTS_MAX);
	json_decref(soon);
	cert_image_release((struct cert_image *)(uintptr_t)r.certs);
}

static void
without_any(void **state)
{
	const struct report r = { .certs = NULL };
	json_t *soon = report_certs_soon(&r, NOW_S), *all = report_certs(&r);

	(void)state;
	assert_int_equal(json_array_size(soon), 0);
	assert_null(json_object_get(all, "not_after_s"));
	assert_int_equal(days(&r, "a"), 9999);
	json_decref(soon);
	json_decref(all);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(soonest_first),
		cmocka_unit_test(never_more_than_the_bound),
		cmocka_unit_test(without_any),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
