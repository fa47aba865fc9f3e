/* test_limits.c: what strangers may cost; the clock is ours. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "nodeagent/limits.h"

static struct addr
address(const char *text)
{
	struct addr a;
	struct err e;

	assert_int_equal(addr_parse(text, 1, &a, &e), 0);
	return a;
}

static int
take_all(struct limits *l, const char *text, int64_t now_ms)
{
	struct addr a = address(text);
	int n = 0;

	while (n < 100000 && limits_take(l, &a, now_ms))
		n++;
	return n;
}

static void
an_address_has_a_burst_and_a_rate(void **unused)
{
	struct limits l;

	(void)unused;
	limits_init(&l);
	assert_int_equal(take_all(&l, "10.0.0.1", 1000), LIMITS_BURST);
	assert_int_equal(take_all(&l, "10.0.0.1", 2000), LIMITS_PER_S);
	assert_int_equal(take_all(&l, "10.0.0.1", 2500), LIMITS_PER_S / 2);
	assert_int_equal(take_all(&l, "10.0.0.1", 3600000), LIMITS_BURST);
}

static void
addresses_do_not_pay_for_each_other(void **unused)
{
	struct limits l;

	(void)unused;
	limits_init(&l);
	take_all(&l, "10.0.0.1", 1000);
	assert_int_equal(take_all(&l, "10.0.0.2", 1000), LIMITS_BURST);
	/* One IPv6 network is one source, and so is a mapped address. */
	take_all(&l, "2001:db8::1", 1000);
	assert_int_equal(take_all(&l, "2001:db8::ffff:2", 1000), 0);
	assert_int_equal(take_all(&l, "2001:db8:0:1::1", 1000), LIMITS_BURST);
	assert_int_equal(take_all(&l, "::ffff:10.0.0.1", 1000), 0);
}

static void
a_flood_of_addresses_gains_nothing(void **unused)
{
	struct limits l;
	uint64_t n = 0;
	char text[32];

	(void)unused;
	limits_init(&l);
	for (unsigned i = 0; i < 65536; i++) {
		struct addr a;

		snprintf(text, sizeof(text), "10.9.%u.%u", i / 256, i % 256);
		a = address(text);
		for (int k = 0; k < 20; k++)
			n += limits_take(&l, &a, 5000);
	}
	assert_true(n <= (uint64_t)LIMITS_SETS * LIMITS_WAYS * LIMITS_BURST);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_address_has_a_burst_and_a_rate),
		cmocka_unit_test(addresses_do_not_pay_for_each_other),
		cmocka_unit_test(a_flood_of_addresses_gains_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
