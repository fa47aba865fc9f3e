/* test_cert.c: certificates: signed, changed, too big, out of their time. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "common/base/io.h"
#include "common/net/cert.h"
#include "common/net/proto.h"

#define NOW 1800000000

static uint8_t authority[KEY_SIZE];
static uint8_t authority_secret[crypto_sign_SECRETKEYBYTES];

static void
fill(struct cert *c, const char *grants)
{
	memset(c, 0, sizeof(*c));
	c->kind = CERT_OPERATOR;
	snprintf(c->name, sizeof(c->name), "ann");
	randombytes_buf(c->key, sizeof(c->key));
	c->serial = INT64_MAX;
	c->not_before_s = NOW;
	c->not_after_s = NOW + 3600;
	while (*grants != '\0') {
		size_t len = strcspn(grants, " ");

		memcpy(c->grants[c->n_grants++], grants, len);
		grants += len + (grants[len] == ' ');
	}
}

/* Signs any JSON, also what cert_sign() would not. */
static size_t
sign_json(const char *json, uint8_t out[CERT_MAX])
{
	char message[2 * CERT_MAX];
	int n = snprintf(message, sizeof(message), "muster-cert-1\n%s", json);

	crypto_sign_detached(out, NULL, (uint8_t *)message, (size_t)n,
	    authority_secret);
	memcpy(out + 64, json, strlen(json));
	return 64 + strlen(json);
}

static void
what_is_signed_is_read_back(void **state)
{
	struct cert c, d;
	uint8_t bytes[CERT_MAX];
	struct err e;
	size_t size;

	(void)state;
	fill(&c, "exec:worker_http push status *:storage");
	assert_int_equal(cert_sign(&c, authority_secret, bytes, &size, &e), 0);
	assert_int_equal(cert_verify(bytes, size, authority, c.key, NOW, &d,
			     &e),
	    0);
	assert_memory_equal(&c, &d, sizeof(c));
	assert_int_equal(cert_verify(bytes, size, authority, NULL, NOW, &d, &e),
	    0);
}

/* Outputs stay as they were, and the code is a stranger's. */
static void
expect_stranger(const uint8_t *bytes, size_t size, const uint8_t *key)
{
	struct cert c, untouched;
	struct err e;

	memset(&c, 0x55, sizeof(c));
	untouched = c;
	assert_int_equal(cert_verify(bytes, size, authority, key, NOW, &c, &e),
	    -1);
	assert_int_equal(e.code, ERR_STRANGER);
	assert_memory_equal(&c, &untouched, sizeof(c));
}

static void
every_changed_byte_and_every_cut_is_found(void **state)
{
	struct cert c;
	uint8_t bytes[CERT_MAX + 1] = { 0 };
	struct err e;
	size_t size;

	(void)state;
	fill(&c, "exec");
	assert_int_equal(cert_sign(&c, authority_secret, bytes, &size, &e), 0);
	/* That it was good a moment ago helps no other bytes. */
	assert_int_equal(cert_verify(bytes, size, authority, NULL, NOW, &c, &e),
	    0);
	for (size_t i = 0; i < size; i++) {
		bytes[i] ^= 1;
		expect_stranger(bytes, size, NULL);
		bytes[i] ^= 1;
		expect_stranger(bytes, i, NULL);
	}
	expect_stranger(bytes, size + 1, NULL);
	expect_stranger(bytes, CERT_MAX + 1, NULL);
	expect_stranger(bytes, size, authority);
}

static void
good_for_one_authority_is_strange_to_another(void **state)
{
	uint8_t bytes[CERT_MAX], other[KEY_SIZE] = { 7 };
	struct cert c;
	struct err e;
	size_t size;

	(void)state;
	fill(&c, "exec");
	assert_int_equal(cert_sign(&c, authority_secret, bytes, &size, &e), 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(cert_verify(bytes, size, authority, NULL, NOW,
				     &c, &e),
		    0);
		assert_int_equal(cert_verify(bytes, size, other, NULL, NOW, &c,
				     &e),
		    -1);
		assert_int_equal(e.code, ERR_STRANGER);
	}
}

static void
expired_not_yet_and_the_skew_between(void **state)
{
	static const struct {
		int64_t now;
		int code;
	} cases[] = {
		{ NOW - PROTO_SKEW_S - 1, ERR_NOT_YET },
		{ NOW - PROTO_SKEW_S, 0 },
		{ NOW + 3600 + PROTO_SKEW_S, 0 },
		{ NOW + 3600 + PROTO_SKEW_S + 1, ERR_EXPIRED },
		{ 0, ERR_NOT_YET },
		{ INT64_MAX, ERR_EXPIRED },
		{ INT64_MIN, ERR_NOT_YET },
	};
	struct cert c, d;
	uint8_t bytes[CERT_MAX];
	size_t size;

	(void)state;
	fill(&c, "exec");
	for (size_t i = 0; i < nitems(cases); i++) {
		struct err e = { .code = 0 };

		assert_int_equal(cert_sign(&c, authority_secret, bytes, &size,
				     &e),
		    0);
		memset(&d, 0, sizeof(d));
		assert_int_equal(cert_verify(bytes, size, authority, c.key,
				     cases[i].now, &d, &e),
		    cases[i].code == 0 ? 0 : -1);
		assert_int_equal(e.code, cases[i].code);
		assert_string_equal(d.name, "ann");
	}
}

static void
unfit_certificates_are_not_signed(void **state)
{
	struct cert c;
	uint8_t bytes[CERT_MAX];
	struct err e;
	size_t size;

	(void)state;
	fill(&c, "exec");
	snprintf(c.name, sizeof(c.name), "Ann");
	assert_int_equal(cert_sign(&c, authority_secret, bytes, &size, &e), -1);
	assert_int_equal(e.code, ERR_USAGE);
	fill(&c, "exec");
	c.not_after_s = c.not_before_s;
	assert_int_equal(cert_sign(&c, authority_secret, bytes, &size, &e), -1);
	fill(&c, "exec:Worker");
	assert_int_equal(cert_sign(&c, authority_secret, bytes, &size, &e), -1);
	fill(&c, "");
	for (size_t i = 0; i < CERT_GRANTS_MAX; i++) {
		memset(c.grants[i], 'a', 65);
		memcpy(c.grants[i], "exec:", 5);
	}
	c.n_grants = CERT_GRANTS_MAX;
	assert_int_equal(cert_sign(&c, authority_secret, bytes, &size, &e), -1);
	assert_non_null(strstr(e.text, "fewer grants"));
}

#define KEY64 "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
#define JSON(kind, name, key, serial, from, to, grants)                    \
	"{\"kind\":" kind ",\"name\":" name ",\"key\":" key                \
	",\"serial\":" serial ",\"not_before\":" from ",\"not_after\":" to \
	",\"grants\":" grants "}"

static void
signed_but_malformed_is_a_broken_protocol(void **state)
{
	static const char *const bad[] = {
		"",
		"[]",
		"{}",
		"{\"kind\":\"node\"",
		"nonsense",
		JSON("\"gnome\"", "\"a\"", "\"" KEY64 "\"", "1", "1",
		    "2000000000", "[]"),
		JSON("7", "\"a\"", "\"" KEY64 "\"", "1", "1", "2000000000",
		    "[]"),
		JSON("\"node\"", "\"A!\"", "\"" KEY64 "\"", "1", "1",
		    "2000000000", "[]"),
		JSON("\"node\"", "\"a\"", "\"0011\"", "1", "1", "2000000000",
		    "[]"),
		JSON("\"node\"", "\"a\"", "\"" KEY64 "\"", "0", "1",
		    "2000000000", "[]"),
		JSON("\"node\"", "\"a\"", "\"" KEY64 "\"", "-1", "1",
		    "2000000000", "[]"),
		JSON("\"node\"", "\"a\"", "\"" KEY64 "\"", "1", "1",
		    "9000000000000000000", "[]"),
		JSON("\"node\"", "\"a\"", "\"" KEY64 "\"", "1", "2000000000",
		    "1", "[]"),
		JSON("\"node\"", "\"a\"", "\"" KEY64 "\"", "1", "1",
		    "2000000000", "\"exec\""),
		JSON("\"node\"", "\"a\"", "\"" KEY64 "\"", "1", "1",
		    "2000000000", "[1]"),
		JSON("\"node\"", "\"a\"", "\"" KEY64 "\"", "1", "1",
		    "2000000000", "[\"exec:\"]"),
	};
	uint8_t bytes[CERT_MAX];
	struct cert c;
	struct err e;

	(void)state;
	for (size_t i = 0; i < nitems(bad); i++) {
		size_t size = sign_json(bad[i], bytes);

		assert_int_equal(cert_verify(bytes, size, authority, NULL, NOW,
				     &c, &e),
		    -1);
		assert_int_equal(e.code, i == 0 ? ERR_STRANGER : ERR_PROTOCOL);
	}
	/* A newer authority may say more. */
	assert_int_equal(cert_verify(bytes,
			     sign_json(JSON("\"node\"", "\"a\"",
					   "\"" KEY64 "\"", "1", "1",
					   "2000000000",
					   "[\"roster\"],\"new\":1"),
				 bytes),
			     authority, NULL, NOW, &c, &e),
	    0);
	assert_int_equal(c.n_grants, 1);
}

static void
grants_cover_verbs_on_roles(void **state)
{
	static const char *const http[] = { "worker_http", "storage" };
	struct cert c;

	(void)state;
	fill(&c, "exec:worker_http status");
	assert_true(cert_grants(&c, "exec", http, 2));
	assert_true(cert_grants(&c, "status", NULL, 0));
	assert_false(cert_grants(&c, "exec", http + 1, 1));
	assert_false(cert_grants(&c, "exec", NULL, 0));
	assert_false(cert_grants(&c, "exe", http, 2));
	assert_false(cert_grants(&c, "execute", http, 2));
	assert_false(cert_grants(&c, "", http, 2));
	fill(&c, "*:storage");
	assert_true(cert_grants(&c, "push", http, 2));
	assert_false(cert_grants(&c, "push", http, 1));
	fill(&c, "*");
	assert_true(cert_grants(&c, "push", NULL, 0));
	fill(&c, "");
	assert_false(cert_grants(&c, "ping", http, 2));
	/* No verb is not any verb. */
	c.n_grants = 1;
	assert_false(cert_grants(&c, "ping", http, 2));
	fill(&c, ":storage");
	assert_false(cert_grants(&c, "ping", http, 2));
}

static void
grants_have_a_form(void **state)
{
	static const char *const good[] = { "*", "exec", "*:storage",
		"show_nodes:worker_http" };
	static const char *const bad[] = { "", ":", "exec:", ":storage", "Exec",
		"ex ec", "exec:Storage", "**", "exec:*", "_x", "exec:a:b",
		"exec1", "a-b", "abcdefghijklmnopqrstuvwxyz" };
	struct err e;

	(void)state;
	for (size_t i = 0; i < nitems(good); i++)
		assert_int_equal(grant_check(good[i], &e), 0);
	for (size_t i = 0; i < nitems(bad); i++) {
		assert_int_equal(grant_check(bad[i], &e), -1);
		assert_int_equal(e.code, ERR_USAGE);
	}
}

static void
fingerprints_differ_and_stay(void **state)
{
	uint8_t a[KEY_SIZE] = { 1 }, b[KEY_SIZE] = { 2 };
	char fa[FINGERPRINT_LEN + 1], fb[FINGERPRINT_LEN + 1];

	(void)state;
	key_fingerprint(a, fa);
	key_fingerprint(b, fb);
	assert_string_not_equal(fa, fb);
	assert_int_equal(strlen(fa), FINGERPRINT_LEN);
	assert_int_equal(fa[4], '-');
	key_fingerprint(a, fb);
	assert_string_equal(fa, fb);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_signed_is_read_back),
		cmocka_unit_test(every_changed_byte_and_every_cut_is_found),
		cmocka_unit_test(good_for_one_authority_is_strange_to_another),
		cmocka_unit_test(expired_not_yet_and_the_skew_between),
		cmocka_unit_test(unfit_certificates_are_not_signed),
		cmocka_unit_test(signed_but_malformed_is_a_broken_protocol),
		cmocka_unit_test(grants_cover_verbs_on_roles),
		cmocka_unit_test(grants_have_a_form),
		cmocka_unit_test(fingerprints_differ_and_stay),
	};

	if (sodium_init() == -1)
		return 1;
	crypto_sign_keypair(authority, authority_secret);
	return cmocka_run_group_tests_name("cert", tests, NULL, NULL);
}
