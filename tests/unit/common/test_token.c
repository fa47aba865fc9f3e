/* test_token.c: join tokens, as printed and as pasted. */
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
#include "common/net/token.h"

static void
fill(struct token *t, size_t n_addrs)
{
	static const char *const addrs[TOKEN_ADDRS_MAX] = { "10.0.0.1:7400",
		"[2001:db8::1]:7401", "192.0.2.255:1", "[::1]:65535" };
	struct err e;

	memset(t, 0, sizeof(*t));
	t->kind = CERT_OPERATOR;
	t->not_after_s = 1800000000;
	randombytes_buf(t->id, sizeof(t->id));
	randombytes_buf(t->secret, sizeof(t->secret));
	randombytes_buf(t->master_key, sizeof(t->master_key));
	t->n_addrs = n_addrs;
	for (size_t i = 0; i < n_addrs && i < TOKEN_ADDRS_MAX; i++)
		assert_int_equal(addr_parse(addrs[i], 0, &t->addrs[i], &e), 0);
}

static void
expect_same(const struct token *a, const struct token *b)
{
	char x[ADDR_TEXT_MAX], y[ADDR_TEXT_MAX];

	assert_int_equal(a->kind, b->kind);
	assert_int_equal(a->not_after_s, b->not_after_s);
	assert_memory_equal(a->id, b->id, sizeof(a->id));
	assert_memory_equal(a->secret, b->secret, sizeof(a->secret));
	assert_memory_equal(a->master_key, b->master_key, KEY_SIZE);
	assert_int_equal(a->n_addrs, b->n_addrs);
	for (size_t i = 0; i < a->n_addrs; i++) {
		addr_format(&a->addrs[i], x);
		addr_format(&b->addrs[i], y);
		assert_string_equal(x, y);
		assert_int_equal(a->addrs[i].len, b->addrs[i].len);
	}
}

static void
a_token_survives_the_paste(void **state)
{
	char text[TOKEN_TEXT_MAX];
	struct token t, u;
	struct err e;

	(void)state;
	for (size_t n = 1; n <= TOKEN_ADDRS_MAX; n++) {
		fill(&t, n);
		assert_int_equal(token_encode(&t, text, &e), 0);
		assert_int_equal(strncmp(text, "muster1.", 8), 0);
		/* One word, safe in any shell and in a URL. */
		assert_int_equal(strspn(text,
				     "abcdefghijklmnopqrstuvwxyz"
				     "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_."),
		    strlen(text));
		assert_int_equal(token_decode(text, &u, &e), 0);
		expect_same(&t, &u);
	}
}

static void
a_cut_or_mistyped_token_is_told(void **state)
{
	char text[TOKEN_TEXT_MAX], wrong[2 * TOKEN_TEXT_MAX];
	struct token t, u;
	struct err e;
	size_t len;

	(void)state;
	fill(&t, 2);
	assert_int_equal(token_encode(&t, text, &e), 0);
	len = strlen(text);
	memset(&u, 0x55, sizeof(u));
	t = u;
	for (size_t i = 0; i < len; i++) {
		memcpy(wrong, text, len + 1);
		wrong[i] = wrong[i] == 'A' ? 'B' : 'A';
		assert_int_equal(token_decode(wrong, &u, &e), -1);
		assert_int_equal(e.code, ERR_USAGE);
		wrong[i] = '\0';
		assert_int_equal(token_decode(wrong, &u, &e), -1);
	}
	snprintf(wrong, sizeof(wrong), "%sA", text);
	assert_int_equal(token_decode(wrong, &u, &e), -1);
	assert_non_null(strstr(e.text, "cut or mistyped"));
	snprintf(wrong, sizeof(wrong), "%s\n", text);
	assert_int_equal(token_decode(wrong, &u, &e), -1);
	memset(wrong, 'A', sizeof(wrong) - 1);
	wrong[sizeof(wrong) - 1] = '\0';
	assert_int_equal(token_decode(wrong, &u, &e), -1);
	memcpy(wrong, "muster1.", 8);
	assert_int_equal(token_decode(wrong, &u, &e), -1);
	/* None of them left anything. */
	assert_memory_equal(&t, &u, sizeof(t));
}

/* The checksum is right, the rest is not: nothing is believed by length. */
static void
well_summed_nonsense_is_refused(void **state)
{
	uint8_t bytes[200], hash[16];
	char text[TOKEN_TEXT_MAX] = "muster1.";
	struct token t;
	struct err e;

	(void)state;
	for (size_t size = 0; size < 140; size++) {
		for (uint8_t fill_byte = 0; fill_byte < 8; fill_byte++) {
			memset(bytes, fill_byte, size);
			bytes[0] = 0;
			crypto_generichash(hash, sizeof(hash), bytes, size,
			    NULL, 0);
			memcpy(bytes + size, hash, 4);
			sodium_bin2base64(text + 8, sizeof(text) - 8, bytes,
			    size + 4, sodium_base64_VARIANT_URLSAFE_NO_PADDING);
			assert_int_equal(token_decode(text, &t, &e),
			    (fill_byte == 4 && size == 66 + 4 * 7) ? 0 : -1);
		}
	}
}

static void
addresses_have_a_number(void **state)
{
	char text[TOKEN_TEXT_MAX];
	struct token t;
	struct err e;

	(void)state;
	fill(&t, 0);
	assert_int_equal(token_encode(&t, text, &e), -1);
	fill(&t, TOKEN_ADDRS_MAX + 1);
	assert_int_equal(token_encode(&t, text, &e), -1);
}

static void
the_psk_depends_on_the_secret_alone(void **state)
{
	uint8_t a[KEY_SIZE], b[KEY_SIZE], secret[TOKEN_SECRET_SIZE] = { 1 };

	(void)state;
	token_psk(secret, a);
	token_psk(secret, b);
	assert_memory_equal(a, b, KEY_SIZE);
	secret[15] ^= 1;
	token_psk(secret, b);
	assert_memory_not_equal(a, b, KEY_SIZE);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_token_survives_the_paste),
		cmocka_unit_test(a_cut_or_mistyped_token_is_told),
		cmocka_unit_test(well_summed_nonsense_is_refused),
		cmocka_unit_test(addresses_have_a_number),
		cmocka_unit_test(the_psk_depends_on_the_secret_alone),
	};

	if (sodium_init() == -1)
		return 1;
	return cmocka_run_group_tests_name("token", tests, NULL, NULL);
}
