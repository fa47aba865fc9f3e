/* test_tls_hello.c: what is parsed of a ClientHello before OpenSSL has. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <setjmp.h>
#include <cmocka.h>

#include "common/base/io.h"
#include "proxyd/tls/alpn.h"
#include "proxyd/tls/sni.h"

static void
test_protocol_lists(void **state)
{
	static const struct {
		const char *list;
		size_t size;
		int at; /* -1: none */
	} cases[] = {
		{ "", 0, -1 },
		{ "\x08http/1.1", 9, 1 },
		{ "\x02h2\x08http/1.1", 12, 4 },
		{ "\x08http/1.0\x02h2", 12, -1 },
		{ "\x08http/1.", 8, -1 },
		{ "\x00\x08http/1.1", 10, -1 },
		{ "\xffhttp/1.1", 9, -1 },
	};

	(void)state;
	for (size_t i = 0; i < nitems(cases); i++) {
		const uint8_t *list = (const uint8_t *)cases[i].list, *got;
		uint8_t len = 0;

		got = alpn_choose(list, cases[i].size, &len);
		assert_true(cases[i].at == -1 ? got == NULL :
						got == list + cases[i].at);
		assert_int_equal(len, got == NULL ? 0 : 8);
	}
}

static void
context_of(const char *name, uint8_t context[SNI_CONTEXT])
{
	uint8_t extension[300] = { 0 };
	size_t len = strlen(name);

	extension[1] = (uint8_t)(len + 3);
	extension[4] = (uint8_t)len;
	memcpy(extension + 5, name, len);
	sni_context(extension, len + 5, context);
}

static void
test_a_name_is_one_context_however_it_is_written(void **state)
{
	static const uint8_t bad[][8] = {
		{ 0, 5, 0, 0, 1, 'a' }, /* the list is said to be longer */
		{ 0, 4, 1, 0, 1, 'a' }, /* no host name */
		{ 0, 4, 0, 0, 2, 'a' },
	};
	uint8_t one[SNI_CONTEXT], again[SNI_CONTEXT], none[SNI_CONTEXT];

	(void)state;
	context_of("a.example", one);
	context_of("A.Example.", again);
	assert_memory_equal(one, again, sizeof(one));
	context_of("b.example", again);
	assert_memory_not_equal(one, again, sizeof(one));
	sni_context(NULL, 0, none);
	for (size_t i = 0; i < nitems(bad); i++) {
		sni_context(bad[i], 6, again);
		assert_memory_equal(none, again, sizeof(none));
	}
	context_of("", again);
	assert_memory_equal(none, again, sizeof(none));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_protocol_lists),
		cmocka_unit_test(
		    test_a_name_is_one_context_however_it_is_written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
