/* test_proxy_header.c: the PROXY protocol, read and written; J1 to J3. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/io.h"
#include "proxyd/http/crc32c.h"
#include "proxyd/http/proxy_header.h"

#define REQUEST "GET / HTTP/1.1\r\nHost: a\r\n\r\n"

/* Reads from memory that ends where the bytes do. */
static enum proxy_read
read_exact(const char *bytes, size_t n, struct proxy_header *h, size_t *size)
{
	char *copy = malloc(n > 0 ? n : 1);
	enum proxy_read r;

	assert_non_null(copy);
	memcpy(copy, bytes, n);
	r = proxy_header_read(copy, n, h, size);
	free(copy);
	return r;
}

/* Every part of a right header is right so far. */
static void
check_parts(const char *bytes, size_t size)
{
	struct proxy_header h;
	size_t taken;

	for (size_t n = 0; n < size; n++)
		if (read_exact(bytes, n, &h, &taken) != PROXY_READ_MORE)
			fail_msg("%zu bytes of '%.60s'", n, bytes);
}

static void
check_addr(const struct addr *a, const char *want)
{
	char text[ADDR_TEXT_MAX] = "-";

	if (a->len != 0)
		addr_format(a, text);
	assert_string_equal(text, want);
}

/* --- version 1 */

static const struct {
	const char *line, *from, *to;
} lines[] = {
	{ "PROXY TCP4 1.2.3.4 5.6.7.8 1 80\r\n", "1.2.3.4:1", "5.6.7.8:80" },
	{ "PROXY TCP4 0.0.0.0 255.255.255.255 0 65535\r\n", "0.0.0.0:0",
	    "255.255.255.255:65535" },
	{ "PROXY TCP4 255.255.255.255 255.255.255.255 65535 65535\r\n",
	    "255.255.255.255:65535", "255.255.255.255:65535" },
	{ "PROXY TCP6 2001:db8::1 2001:DB8::2 1 443\r\n", "[2001:db8::1]:1",
	    "[2001:db8::2]:443" },
	{ "PROXY TCP6 :: ::1 1 2\r\n", "[::]:1", "[::1]:2" },
	{ "PROXY TCP6 ::ffff:1.2.3.4 ::ffff:506:708 1 2\r\n", "1.2.3.4:1",
	    "5.6.7.8:2" },
	{ "PROXY TCP6 ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff "
	  "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 65535\r\n",
	    "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:65535",
	    "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:65535" },
	{ "PROXY UNKNOWN\r\n", "-", "-" },
	{ "PROXY UNKNOWN \r\n", "-", "-" },
	{ "PROXY UNKNOWN TCP4 1.2.3.4 5.6.7.8 1 80\r\n", "-", "-" },
	{ "PROXY UNKNOWN anything,  at all\t\x80\r\n", "-", "-" },
	{ "PROXY UNKNOWN ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff "
	  "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 65535\r\n",
	    "-", "-" },
};

static void
lines_of_version_1(void **state)
{
	(void)state;
	for (size_t i = 0; i < nitems(lines); i++) {
		size_t len = strlen(lines[i].line), size = 0;
		char both[512];
		struct proxy_header h;

		snprintf(both, sizeof(both), "%s" REQUEST, lines[i].line);
		check_parts(lines[i].line, len);
		assert_int_equal(read_exact(lines[i].line, len, &h, &size),
		    PROXY_READ_DONE);
		assert_int_equal(read_exact(both, strlen(both), &h, &size),
		    PROXY_READ_DONE);
		assert_int_equal(size, len);
		check_addr(&h.from, lines[i].from);
		check_addr(&h.to, lines[i].to);
		assert_false(h.secure);
		assert_int_equal(h.id.len + h.authority.len + h.alpn.len, 0);
	}
}

/* 108 bytes; and no end within 107. */
static const char too_long[] =
    "PROXY UNKNOWN fffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff "
    "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 65535\r\n";
static const char without_end[] =
    "PROXY UNKNOWN ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff "
    "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 6553599";

static const char *const bad_lines[] = {
	REQUEST,
	"proxy TCP4 1.2.3.4 5.6.7.8 1 80\r\n",
	"PROXY\r\n",
	"PROXY \r\n",
	"PROXY  TCP4 1.2.3.4 5.6.7.8 1 80\r\n",
	"PROXY\tTCP4 1.2.3.4 5.6.7.8 1 80\r\n",
	" PROXY TCP4 1.2.3.4 5.6.7.8 1 80\r\n",
	"PROXY TCP5 1.2.3.4 5.6.7.8 1 80\r\n",
	"PROXY tcp4 1.2.3.4 5.6.7.8 1 80\r\n",
	"PROXY UDP4 1.2.3.4 5.6.7.8 1 80\r\n",
	"PROXY UNKNOWNS\r\n",
	"PROXY unknown\r\n",
	"PROXY TCP4\r\n",
	"PROXY TCP4 1.2.3.4\r\n",
	"PROXY TCP4 1.2.3.4 5.6.7.8\r\n",
	"PROXY TCP4 1.2.3.4 5.6.7.8 1\r\n",
	"PROXY TCP4 1.2.3.4 5.6.7.8 1 \r\n",
	"PROXY TCP4 1.2.3.4 5.6.7.8 1 80 \r\n",
	"PROXY TCP4 1.2.3.4 5.6.7.8 1 80 9\r\n",
	"PROXY TCP4 1.2.3.4  5.6.7.8 1 80\r\n",
	"PROXY TCP4 1.2.3.4\t5.6.7.8 1 80\r\n",
	/* Addresses. */
	"PROXY TCP4 1.2.3 5.6.7.8 1 80\r\n",
	"PROXY TCP4 1.2.3.4.5 5.6.7.8 1 80\r\n",
	"PROXY TCP4 1.2.3.256 5.6.7.8 1 80\r\n",
	"PROXY TCP4 1.2.3.04 5.6.7.8 1 80\r\n",
	"PROXY TCP4 0x1.2.3.4 5.6.7.8 1 80\r\n",
	"PROXY TCP4 1.2.3.4:1 5.6.7.8 1 80\r\n",
	"PROXY TCP4 a.example 5.6.7.8 1 80\r\n",
	"PROXY TCP4 ::1 ::2 1 80\r\n",
	"PROXY TCP4 1.2.3.4 ::2 1 80\r\n",
	"PROXY TCP6 1.2.3.4 5.6.7.8 1 80\r\n",
	"PROXY TCP6 ::1 5.6.7.8 1 80\r\n",
	"PROXY TCP6 [::1] ::2 1 80\r\n",
	"PROXY TCP6 ::1%lo ::2 1 80\r\n",
	"PROXY TCP6 ::1::2 ::2 1 80\r\n",
	"PROXY TCP6 12345::1 ::2 1 80\r\n",
	/* Ports. */
	"PROXY TCP4 1.2.3.4 5.6.7.8 65536 80\r\n",
	"PROXY TCP4 1.2.3.4 5.6.7.8 1 99999\r\n",
	"PROXY TCP4 1.2.3.4 5.6.7.8 4294967297 80\r\n",
	"PROXY TCP4 1.2.3.4 5.6.7.8 -1 80\r\n",
	"PROXY TCP4 1.2.3.4 5.6.7.8 +1 80\r\n",
	"PROXY TCP4 1.2.3.4 5.6.7.8 01 80\r\n",
	"PROXY TCP4 1.2.3.4 5.6.7.8 00 80\r\n",
	"PROXY TCP4 1.2.3.4 5.6.7.8 1 0x50\r\n",
	"PROXY TCP4 1.2.3.4 5.6.7.8 1 80a\r\n",
	/* Ends of lines. */
	"PROXY TCP4 1.2.3.4 5.6.7.8 1 80\n",
	"PROXY UNKNOWN\n",
	"PROXY UNKNOWN a\nb\r\n",
	"PROXY UNKNOWN a\rb\r\n",
	"PROXY UNKNOWN\r\r\n",
	"PROXY TCP4 1.2.3.4 5.6.7.8 1 80\r\r\n",
	too_long,
	without_end,
};

static void
lines_that_are_wrong(void **state)
{
	struct proxy_header h;
	size_t size;

	(void)state;
	for (size_t i = 0; i < nitems(bad_lines); i++)
		if (read_exact(bad_lines[i], strlen(bad_lines[i]), &h, &size) !=
		    PROXY_READ_BAD)
			fail_msg("taken: %s", bad_lines[i]);
	assert_int_equal(read_exact("PROXY UNKNOWN a\0b\r\n", 19, &h, &size),
	    PROXY_READ_BAD);
}

/* What cannot become a header is refused at its first wrong byte. */
static void
wrong_from_the_first_byte(void **state)
{
	struct proxy_header h;
	size_t size;

	(void)state;
	assert_int_equal(read_exact("G", 1, &h, &size), PROXY_READ_BAD);
	assert_int_equal(read_exact("PROXYX", 6, &h, &size), PROXY_READ_BAD);
	assert_int_equal(read_exact("\r\n\r\n\n", 5, &h, &size),
	    PROXY_READ_BAD);
	assert_int_equal(read_exact("\x16\x03\x01", 3, &h, &size),
	    PROXY_READ_BAD);
}

/* --- version 2 */

#define V4_BLOCK "\x01\x02\x03\x04\x05\x06\x07\x08\x00\x01\x00\x50"
#define V6_BLOCK                                                         \
	"\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x01\x20\x01\x0d\xb8\0\0" \
	"\0\0\0\0\0\0\0\0\0\x02\x00\x01\x01\xbb"
#define MAPPED_BLOCK                                                       \
	"\0\0\0\0\0\0\0\0\0\0\xff\xff\x01\x02\x03\x04\0\0\0\0\0\0\0\0\0\0" \
	"\xff\xff\x05\x06\x07\x08\x00\x01\x00\x50"
#define BLOCK(b) (b), sizeof(b) - 1

/* A header of version 2; returns its size. */
static size_t
header(char *out, unsigned command, unsigned family, const char *block,
    size_t n)
{
	memcpy(out, PROXY_V2_SIGNATURE, 12);
	out[12] = (char)command;
	out[13] = (char)family;
	out[14] = (char)(n >> 8);
	out[15] = (char)n;
	memcpy(out + 16, block, n);
	return 16 + n;
}

static void
families(void **state)
{
	static const struct {
		unsigned command, family;
		const char *block;
		size_t n;
		const char *from, *to;
	} cases[] = {
		{ 0x21, 0x11, BLOCK(V4_BLOCK), "1.2.3.4:1", "5.6.7.8:80" },
		{ 0x21, 0x12, BLOCK(V4_BLOCK), "1.2.3.4:1", "5.6.7.8:80" },
		{ 0x21, 0x21, BLOCK(V6_BLOCK), "[2001:db8::1]:1",
		    "[2001:db8::2]:443" },
		{ 0x21, 0x22, BLOCK(V6_BLOCK), "[2001:db8::1]:1",
		    "[2001:db8::2]:443" },
		{ 0x21, 0x21, BLOCK(MAPPED_BLOCK), "1.2.3.4:1", "5.6.7.8:80" },
		{ 0x21, 0x00, BLOCK(""), "-", "-" },
		{ 0x21, 0x00, BLOCK("\x04\0\0"), "-", "-" },
		/* LOCAL: whatever stands there does not count. */
		{ 0x20, 0x00, BLOCK(""), "-", "-" },
		{ 0x20, 0x11, BLOCK(V4_BLOCK), "-", "-" },
		{ 0x20, 0x11, BLOCK("short"), "-", "-" },
		{ 0x20, 0xff,
		    BLOCK("\x03\0\x04"
			  "abcd"),
		    "-", "-" },
	};
	char unix_block[216] = "/run/a";
	char bytes[PROXY_HEADER_MAX];
	struct proxy_header h;
	size_t size, taken;

	(void)state;
	for (size_t i = 0; i < nitems(cases); i++) {
		size = header(bytes, cases[i].command, cases[i].family,
		    cases[i].block, cases[i].n);
		check_parts(bytes, size);
		memcpy(bytes + size, REQUEST, sizeof(REQUEST));
		assert_int_equal(read_exact(bytes, size + sizeof(REQUEST), &h,
				     &taken),
		    PROXY_READ_DONE);
		assert_int_equal(taken, size);
		check_addr(&h.from, cases[i].from);
		check_addr(&h.to, cases[i].to);
	}
	/* A client of a Unix socket over there has no address here. */
	for (unsigned family = 0x31; family <= 0x32; family++) {
		size =
		    header(bytes, 0x21, family, unix_block, sizeof(unix_block));
		assert_int_equal(read_exact(bytes, size, &h, &taken),
		    PROXY_READ_DONE);
		check_addr(&h.from, "-");
	}
}

static void
headers_that_are_wrong(void **state)
{
	static const struct {
		unsigned command, family;
		const char *block;
		size_t n;
	} cases[] = {
		{ 0x01, 0x11, BLOCK(V4_BLOCK) }, /* version 0, 1, 3 */
		{ 0x11, 0x11, BLOCK(V4_BLOCK) },
		{ 0x31, 0x11, BLOCK(V4_BLOCK) },
		{ 0x22, 0x11, BLOCK(V4_BLOCK) }, /* no such command */
		{ 0x2f, 0x11, BLOCK(V4_BLOCK) },
		{ 0x21, 0x10, BLOCK(V4_BLOCK) }, /* half a family */
		{ 0x21, 0x01, BLOCK(V4_BLOCK) },
		{ 0x21, 0x13, BLOCK(V4_BLOCK) },
		{ 0x21, 0x41, BLOCK(V6_BLOCK) },
		{ 0x21, 0xf1, BLOCK(V6_BLOCK) },
		{ 0x21, 0x11, BLOCK("") }, /* too short */
		{ 0x21, 0x11, V4_BLOCK, 11 },
		{ 0x21, 0x21, V6_BLOCK, 35 },
		{ 0x21, 0x31, BLOCK(V6_BLOCK) },
		/* TLVs that do not fit. */
		{ 0x21, 0x11, BLOCK(V4_BLOCK "\x04") },
		{ 0x21, 0x11, BLOCK(V4_BLOCK "\x04\0") },
		{ 0x21, 0x11, BLOCK(V4_BLOCK "\x04\0\x01") },
		{ 0x21, 0x11,
		    BLOCK(V4_BLOCK "\xee\xff\xff"
				   "a") },
		{ 0x21, 0x11, BLOCK(V4_BLOCK "\x04\0\0\x04\0") },
		{ 0x21, 0x00, BLOCK("\x04\0\x01") },
		/* The same inside of SSL, and one too small for itself. */
		{ 0x21, 0x11, BLOCK(V4_BLOCK "\x20\0\x04\x01\0\0\0") },
		{ 0x21, 0x11, BLOCK(V4_BLOCK "\x20\0\x06\x01\0\0\0\0\x21") },
		{ 0x21, 0x11,
		    BLOCK(V4_BLOCK "\x20\0\x09\x01\0\0\0\0\x21\0\x02"
				   "T") },
		/* Checksums: wrong, of a wrong size. */
		{ 0x21, 0x11, BLOCK(V4_BLOCK "\x03\0\x04\0\0\0\0") },
		{ 0x21, 0x11, BLOCK(V4_BLOCK "\x03\0\x03\0\0\0") },
		{ 0x21, 0x11, BLOCK(V4_BLOCK "\x03\0\0") },
	};
	char bytes[PROXY_HEADER_MAX + 16], block[PROXY_HEADER_MAX] = V4_BLOCK;
	struct proxy_header h;
	size_t size, taken;

	(void)state;
	for (size_t i = 0; i < nitems(cases); i++) {
		size = header(bytes, cases[i].command, cases[i].family,
		    cases[i].block, cases[i].n);
		if (read_exact(bytes, size, &h, &taken) != PROXY_READ_BAD)
			fail_msg("case %zu is taken", i);
	}
	/* The signature, at each of its bytes. */
	size = header(bytes, 0x21, 0x11, BLOCK(V4_BLOCK));
	for (size_t i = 0; i < 12; i++) {
		bytes[i] ^= 1;
		assert_int_equal(read_exact(bytes, size, &h, &taken),
		    PROXY_READ_BAD);
		bytes[i] ^= 1;
	}
	/* More than is taken: refused before it is there. */
	memcpy(block + 12, "\xee\x0f\xe2", 3);
	size = header(bytes, 0x21, 0x11, block, PROXY_HEADER_MAX - 16);
	memcpy(bytes + 28, "\xee\x0f\xe1", 3);
	assert_int_equal(read_exact(bytes, size, &h, &taken), PROXY_READ_DONE);
	bytes[15]++;
	assert_int_equal(read_exact(bytes, 16, &h, &taken), PROXY_READ_BAD);
	memcpy(bytes + 14, "\xff\xff", 2);
	assert_int_equal(read_exact(bytes, 16, &h, &taken), PROXY_READ_BAD);
	/* An identifier of 128 bytes, and of 129. */
	memcpy(block + 12, "\x05\0\x80", 3);
	size = header(bytes, 0x21, 0x11, block, 15 + 128);
	assert_int_equal(read_exact(bytes, size, &h, &taken), PROXY_READ_DONE);
	memcpy(block + 12, "\x05\0\x81", 3);
	size = header(bytes, 0x21, 0x11, block, 15 + 129);
	assert_int_equal(read_exact(bytes, size, &h, &taken), PROXY_READ_BAD);
}

static void
check_text(struct proxy_text t, const char *want)
{
	assert_int_equal(t.len, strlen(want));
	assert_memory_equal(t.text, want, t.len);
}

static void
what_tlvs_say(void **state)
{
	static const char block[] = V4_BLOCK "\x01\0\x08http/1.1"
					     "\x04\0\x02\xff\xff"
					     "\x02\0\x06shop.a"
					     "\x30\0\x03net"
					     "\xea\0\x01x"
					     "\x05\0\x02id"
					     "\x20\0\x14\x01\0\0\0\0"
					     "\x21\0\x07TLSv1.3"
					     "\x23\0\x02"
					     "AE";
	char bytes[PROXY_HEADER_MAX];
	struct proxy_header h;
	size_t taken, size = header(bytes, 0x21, 0x11, BLOCK(block));

	(void)state;
	check_parts(bytes, size);
	assert_int_equal(proxy_header_read(bytes, size, &h, &taken),
	    PROXY_READ_DONE);
	assert_true(h.secure);
	check_text(h.alpn, "http/1.1");
	check_text(h.authority, "shop.a");
	check_text(h.id, "id");
	check_text(h.tls_version, "TLSv1.3");
	check_text(h.tls_cipher, "AE");
	/* A sender that speaks of TLS without a client that spoke it. */
	bytes[size - 20] = 0;
	assert_int_equal(proxy_header_read(bytes, size, &h, &taken),
	    PROXY_READ_DONE);
	assert_false(h.secure);
}

static void
checksums(void **state)
{
	char bytes[PROXY_HEADER_MAX];
	struct proxy_header h;
	size_t taken, size;
	uint32_t crc;

	(void)state;
	assert_int_equal(crc32c(0, "123456789", 9), 0xe3069283);
	assert_int_equal(crc32c(crc32c(0, "1234", 4), "56789", 5), 0xe3069283);
	assert_int_equal(crc32c(0, "", 0), 0);
	size = header(bytes, 0x21, 0x11,
	    BLOCK(V4_BLOCK "\x03\0\x04\0\0\0\0\x05\0\x01i"));
	crc = crc32c(0, bytes, size);
	for (unsigned i = 0; i < 4; i++)
		bytes[31 + i] = (char)(crc >> (24 - 8 * i));
	assert_int_equal(read_exact(bytes, size, &h, &taken), PROXY_READ_DONE);
	/* Any bit of it, but of the command and of the type that makes it a
	 * checksum: LOCAL is believed without. */
	for (size_t i = 0; i < size; i++)
		for (unsigned bit = 0; i != 12 && i != 28 && bit < 8; bit++) {
			bytes[i] ^= (char)(1 << bit);
			assert_int_not_equal(read_exact(bytes, size, &h,
						 &taken),
			    PROXY_READ_DONE);
			bytes[i] ^= (char)(1 << bit);
		}
}

/* --- written */

static struct addr
ip(const char *text)
{
	struct addr a;
	struct err e;

	assert_int_equal(addr_parse(text, 0, &a, &e), 0);
	return a;
}

static void
written_in_version_1(void **state)
{
	static const struct {
		const char *from, *to, *line;
	} cases[] = {
		{ "1.2.3.4:1", "5.6.7.8:80",
		    "PROXY TCP4 1.2.3.4 5.6.7.8 1 80\r\n" },
		{ "[2001:db8::1]:65535", "[::1]:443",
		    "PROXY TCP6 2001:db8::1 ::1 65535 443\r\n" },
		{ "1.2.3.4", "[::1]:443",
		    "PROXY TCP4 1.2.3.4 0.0.0.0 0 443\r\n" },
		{ "2001:db8::1", "1.2.3.4:80",
		    "PROXY TCP6 2001:db8::1 :: 0 80\r\n" },
		{ "1.2.3.4:9", NULL, "PROXY TCP4 1.2.3.4 0.0.0.0 9 0\r\n" },
		{ NULL, "1.2.3.4:80", "PROXY UNKNOWN\r\n" },
		{ NULL, NULL, "PROXY UNKNOWN\r\n" },
	};
	char out[PROXY_HEADER_OUT];

	(void)state;
	for (size_t i = 0; i < nitems(cases); i++) {
		struct proxy_header h = { .secure = true };
		size_t size;

		if (cases[i].from != NULL)
			h.from = ip(cases[i].from);
		if (cases[i].to != NULL)
			h.to = ip(cases[i].to);
		size = proxy_header_write(out, sizeof(out), PROXY_V1, &h);
		assert_int_equal(size, strlen(cases[i].line));
		assert_memory_equal(out, cases[i].line, size);
	}
}

static void
written_in_version_2(void **state)
{
	static const char tcp4[] = PROXY_V2_SIGNATURE "\x21\x11\0\x0c" V4_BLOCK;
	static const char tcp6[] = PROXY_V2_SIGNATURE "\x21\x21\0\x24" V6_BLOCK;
	static const char local[] = PROXY_V2_SIGNATURE "\x20\0\0\0";
	struct proxy_header h = { .from = ip("1.2.3.4:1"),
		.to = ip("5.6.7.8:80") };
	char out[PROXY_HEADER_OUT];

	(void)state;
	assert_int_equal(proxy_header_write(out, sizeof(out), PROXY_V2, &h),
	    sizeof(tcp4) - 1);
	assert_memory_equal(out, tcp4, sizeof(tcp4) - 1);
	h.from = ip("[2001:db8::1]:1");
	h.to = ip("[2001:db8::2]:443");
	assert_int_equal(proxy_header_write(out, sizeof(out), PROXY_V2, &h),
	    sizeof(tcp6) - 1);
	assert_memory_equal(out, tcp6, sizeof(tcp6) - 1);
	h = (struct proxy_header){ .secure = false };
	assert_int_equal(proxy_header_write(out, sizeof(out), PROXY_V2, &h),
	    sizeof(local) - 1);
	assert_memory_equal(out, local, sizeof(local) - 1);
}

static void
written_and_read_again(void **state)
{
	char name[PROXY_NAME_MAX + 1], out[PROXY_HEADER_OUT];
	struct proxy_header h = { .from = ip("1.2.3.4:1"),
		.to = ip("5.6.7.8:80"),
		.secure = true,
		.alpn = { "http/1.1", 8 },
		.authority = { name, PROXY_NAME_MAX },
		.id = { name, PROXY_ID_MAX },
		.tls_version = { "TLSv1.2", 7 },
		.tls_cipher = { name, PROXY_NAME_MAX } };
	struct proxy_header back;
	size_t size, taken;

	(void)state;
	memset(name, 'n', sizeof(name));
	size = proxy_header_write(out, sizeof(out), PROXY_V2, &h);
	check_parts(out, size);
	assert_int_equal(proxy_header_read(out, size, &back, &taken),
	    PROXY_READ_DONE);
	assert_int_equal(taken, size);
	check_addr(&back.from, "1.2.3.4:1");
	assert_true(back.secure);
	assert_int_equal(back.authority.len, PROXY_NAME_MAX);
	assert_int_equal(back.id.len, PROXY_ID_MAX);
	check_text(back.alpn, "http/1.1");
	check_text(back.tls_version, "TLSv1.2");
	assert_int_equal(back.tls_cipher.len, PROXY_NAME_MAX);
	/* What is too long for a reader is not told. */
	h.authority.len = sizeof(name);
	h.id.len = PROXY_ID_MAX + 1;
	size = proxy_header_write(out, sizeof(out), PROXY_V2, &h);
	assert_int_equal(proxy_header_read(out, size, &back, &taken),
	    PROXY_READ_DONE);
	assert_int_equal(back.authority.len + back.id.len, 0);
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_of_version_1),
		cmocka_unit_test(lines_that_are_wrong),
		cmocka_unit_test(wrong_from_the_first_byte),
		cmocka_unit_test(families),
		cmocka_unit_test(headers_that_are_wrong),
		cmocka_unit_test(what_tlvs_say),
		cmocka_unit_test(checksums),
		cmocka_unit_test(written_in_version_1),
		cmocka_unit_test(written_in_version_2),
		cmocka_unit_test(written_and_read_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
