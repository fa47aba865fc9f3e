/* test_addr.c: addresses, ports and ranges, as people write them. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>
#include <stdio.h>

#include "common/base/addr.h"
#include "common/base/io.h"

static void
addresses(void **state)
{
	static const struct {
		const char *text, *out;
	} cases[] = {
		{ "1.2.3.4", "1.2.3.4:7400" },
		{ "1.2.3.4:80", "1.2.3.4:80" },
		{ "::1", "[::1]:7400" },
		{ "[::1]", "[::1]:7400" },
		{ "[::1]:80", "[::1]:80" },
		{ "2a03:5640::9299", "[2a03:5640::9299]:7400" },
		{ "0.10.200.255:65535", "0.10.200.255:65535" },
		{ "1.2.3", NULL },
		{ "1.2.3.4:", NULL },
		{ "1.2.3.4:0", NULL },
		{ "1.2.3.4:65536", NULL },
		{ "1.2.3.4:80x", NULL },
		{ "[1.2.3.4]:80", NULL },
		{ "[::1", NULL },
		{ "[::1]80", NULL },
		{ "example.com", NULL },
		{ "", NULL },
		{ "999.1.1.1", NULL },
		{ "0000:0000:0000:0000:0000:0000:0000:0000:0000", NULL },
	};
	char buf[ADDR_TEXT_MAX];
	struct addr a;
	struct err e;

	(void)state;
	for (size_t i = 0; i < nitems(cases); i++) {
		int rv = addr_parse(cases[i].text, 7400, &a, &e);

		assert_int_equal(rv, cases[i].out != NULL ? 0 : -1);
		if (rv == 0) {
			addr_format(&a, buf);
			assert_string_equal(buf, cases[i].out);
		} else {
			assert_int_equal(e.code, ERR_USAGE);
		}
	}
}

static void
ranges(void **state)
{
	static const struct {
		const char *cidr, *addr;
		int in; /* -1: the range is refused */
	} cases[] = {
		{ "10.0.0.0/8", "10.255.1.2", 1 },
		{ "10.0.0.0/8", "11.0.0.1", 0 },
		{ "192.168.4.0/23", "192.168.5.255", 1 },
		{ "192.168.4.0/23", "192.168.6.0", 0 },
		{ "1.2.3.4", "1.2.3.4", 1 },
		{ "1.2.3.4", "1.2.3.5", 0 },
		{ "0.0.0.0/0", "9.9.9.9", 1 },
		{ "0.0.0.0/0", "2001::1", 0 },
		{ "::/0", "2001::1", 1 },
		{ "fd00::/8", "fd12::9", 1 },
		{ "10.0.0.0/8", "::ffff:10.1.1.1", 1 },
		{ "10.0.0.1/8", "10.0.0.1", -1 },
		{ "10.0.0.0/33", "10.0.0.1", -1 },
		{ "10.0.0.0/", "10.0.0.1", -1 },
		{ "10.0.0.0:80/8", "10.0.0.1", -1 },
		{ "[::1]/128", "::1", -1 },
		{ "x/8", "10.0.0.1", -1 },
	};
	struct cidr c;
	struct addr a;
	struct err e;

	(void)state;
	for (size_t i = 0; i < nitems(cases); i++) {
		assert_int_equal(cidr_parse(cases[i].cidr, &c, &e),
		    cases[i].in == -1 ? -1 : 0);
		if (cases[i].in == -1)
			continue;
		assert_int_equal(addr_parse(cases[i].addr, 1, &a, &e), 0);
		assert_int_equal(cidr_contains(&c, &a), cases[i].in);
	}
}

static void
same_host(void **state)
{
	struct addr a, b, c;
	struct err e;

	(void)state;
	assert_int_equal(addr_parse("1.2.3.4:1", 0, &a, &e), 0);
	assert_int_equal(addr_parse("[::ffff:1.2.3.4]:2", 0, &b, &e), 0);
	assert_int_equal(addr_parse("1.2.3.5", 1, &c, &e), 0);
	assert_true(addr_same_ip(&a, &b));
	assert_false(addr_same_ip(&a, &c));
}

static void
unix_sockets(void **state)
{
	static const struct {
		const char *text, *why;
	} bad[] = {
		{ "unix:", "absolute path" },
		{ "unix:/", "absolute path" },
		{ "unix:run/app.sock", "absolute path" },
		{ "unix:@app", "absolute path" },
		{ "unix:/run/\xff", "absolute path" },
		{ "unix:/run/a b", "a space" },
		{ "unix:/run/a\nb", "a space" },
		{ "unix:/run/a,b", "a space" },
	};
	char place[ADDR_PLACE_MAX], text[256];
	struct err e;

	(void)state;
	assert_string_equal(addr_unix_path("unix:/run/a"), "/run/a");
	assert_null(addr_unix_path("10.0.0.1"));
	for (size_t i = 0; i < nitems(bad); i++) {
		assert_int_equal(addr_place(bad[i].text, place, &e), -1);
		assert_int_equal(e.code, ERR_USAGE);
		assert_non_null(strstr(e.text, bad[i].why));
	}
	/* The longest path, and one byte more. */
	snprintf(text, sizeof(text), "unix:/%0106d", 0);
	assert_int_equal(addr_place(text, place, &e), 0);
	assert_string_equal(place, text);
	snprintf(text, sizeof(text), "unix:/%0107d", 0);
	assert_int_equal(addr_place(text, place, &e), -1);
	assert_non_null(strstr(e.text, "too long"));
	/* One spelling. */
	assert_int_equal(addr_place("2001:DB8:0::1", place, &e), 0);
	assert_string_equal(place, "2001:db8::1");
	assert_int_equal(addr_place("a.example", place, &e), -1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(addresses),
		cmocka_unit_test(ranges),
		cmocka_unit_test(same_host),
		cmocka_unit_test(unix_sockets),
	};

	return cmocka_run_group_tests_name("addr", tests, NULL, NULL);
}
