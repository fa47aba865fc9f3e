/* test_fields.c: single fields, their names, lists in their values. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <ctype.h>
#include <string.h>

#include "common/base/io.h"
#include "proxyd/http/fields.h"

static void
every_known_name(void **state)
{
	static const struct {
		const char *name;
		enum field_id id;
	} cases[] = {
#define X(id, first, last, name) { name, FIELD_##id },
		FIELD_TABLE(X)
#undef X
	};
	char other[64];

	(void)state;
	for (size_t i = 0; i < nitems(cases); i++) {
		size_t n = strlen(cases[i].name);

		assert_int_equal(field_identify(cases[i].name, n), cases[i].id);
		for (size_t j = 0; j <= n; j++)
			other[j] = (char)toupper(cases[i].name[j]);
		assert_int_equal(field_identify(other, n), cases[i].id);
		assert_int_equal(field_identify(other, n - 1), FIELD_OTHER);
		other[n / 2] ^= 1;
		assert_int_equal(field_identify(other, n), FIELD_OTHER);
	}
	assert_int_equal(field_identify("", 0), FIELD_OTHER);
}

/* Every byte of a token at every place of a name. */
static void
no_other_name_is_known(void **state)
{
	static const char *const names[] = {
#define X(id, first, last, name) name,
		FIELD_TABLE(X)
#undef X
	};
	char other[64];

	(void)state;
	for (size_t i = 0; i < nitems(names); i++) {
		size_t n = strlen(names[i]);

		memcpy(other, names[i], n + 1);
		for (size_t j = 0; j < n; j++) {
			for (int c = 1; c < 256; c++) {
				if (!field_token_byte[c])
					continue;
				other[j] = (char)c;
				assert_int_equal(field_identify(other, n) ==
					field_identify(names[i], n),
				    tolower(c) == names[i][j]);
			}
			other[j] = names[i][j];
		}
	}
}

/* Every byte at every place of values of all lengths to some eights. */
static void
control_bytes_are_found_anywhere(void **state)
{
	char value[32];

	(void)state;
	for (size_t n = 0; n <= sizeof(value); n++) {
		memset(value, '~', sizeof(value));
		assert_true(field_is_value(value, n));
		for (size_t at = 0; at < sizeof(value); at++) {
			for (int c = 0; c < 256; c++) {
				bool fine =
				    c == '\t' || (c >= 0x20 && c != 0x7f);

				value[at] = (char)c;
				assert_int_equal(field_is_value(value, n),
				    fine || at >= n);
			}
			value[at] = '~';
		}
	}
}

static void
lines(void **state)
{
	static const struct {
		const char *line, *name, *value; /* name NULL: refused */
		unsigned flags;
		bool repaired; /* only where space is dropped */
	} cases[] = {
		{ "X: a", "X", "a", FIELD_CANONICAL, false },
		{ "X:a", "X", "a", 0, false },
		{ "X:  a", "X", "a", 0, false },
		{ "X: a ", "X", "a", 0, false },
		{ "X: \t a b\t", "X", "a b", 0, false },
		{ "X:", "X", "", 0, false },
		{ "X: ", "X", "", FIELD_CANONICAL, false },
		{ "X_y: a", "X_y", "a", FIELD_CANONICAL | FIELD_UNDERSCORE,
		    false },
		{ "X: :a:", "X", ":a:", FIELD_CANONICAL, false },
		{ "X: \x80\xff\xa0", "X", "\x80\xff\xa0", FIELD_CANONICAL,
		    false },
		{ "X: a\x1f", NULL, NULL, 0, false },
		{ "X: 12345678\x01", NULL, NULL, 0, false },
		{ "X: 1234567\x01"
		  "8",
		    NULL, NULL, 0, false },
		{ "X: 123\t5678", "X", "123\t5678", FIELD_CANONICAL, false },
		{ "X: 123\x7f"
		  "5678",
		    NULL, NULL, 0, false },
		{ "X", NULL, NULL, 0, false },
		{ ": a", NULL, NULL, 0, false },
		{ " X: a", NULL, NULL, 0, false },
		{ "X : a", "X", "a", 0, true },
		{ "X\t: a", "X", "a", 0, true },
		{ "X y: a", NULL, NULL, 0, true },
	};
	struct field f;

	(void)state;
	for (size_t i = 0; i < nitems(cases); i++) {
		const char *s = cases[i].line;
		uint32_t len = (uint32_t)strlen(s);

		for (int drop = 0; drop < 2; drop++) {
			bool ok = field_parse(&f, s, 0, len,
			    drop ? FIELD_SPACE_DROPPED : FIELD_SPACE_REFUSED);

			assert_int_equal(ok,
			    cases[i].name != NULL &&
				(drop || !cases[i].repaired));
			if (!ok)
				continue;
			assert_int_equal(f.name_len, strlen(cases[i].name));
			assert_int_equal(f.value_len, strlen(cases[i].value));
			assert_memory_equal(s + f.value, cases[i].value,
			    f.value_len);
			assert_int_equal(f.flags, cases[i].flags);
		}
	}
}

static void
members(void **state)
{
	static const char list[] = " a, b\t,,c d , ,e,";
	static const char *const want[] = { "a", "b", "c d", "e" };
	const char *at = list, *end = list + sizeof(list) - 1;
	struct member m;

	(void)state;
	for (size_t i = 0; i < nitems(want); i++) {
		assert_true(field_member(&at, end, &m));
		assert_int_equal(m.len, strlen(want[i]));
		assert_memory_equal(m.text, want[i], m.len);
	}
	assert_false(field_member(&at, end, &m));
	at = end;
	assert_false(field_member(&at, end, &m));
}

static void
lists(void **state)
{
	static const char head[] = "Connection: Close, x\r\n"
				   "X: keep-alive\r\n"
				   "Connection: keep-aliveX,Upgrade\r\n";
	struct fields fs;
	struct field f;
	uint32_t at = 0;

	(void)state;
	fields_clear(&fs);
	while (at < sizeof(head) - 1) {
		uint32_t end = (uint32_t)(strchr(head + at, '\r') - head);

		assert_true(
		    field_parse(&f, head, at, end, FIELD_SPACE_REFUSED));
		assert_true(fields_add(&fs, &f, 100));
		at = end + 2;
	}
	assert_true(fields_list(&fs, head, FIELD_CONNECTION, "close"));
	assert_true(fields_list(&fs, head, FIELD_CONNECTION, "upgrade"));
	assert_false(fields_list(&fs, head, FIELD_CONNECTION, "keep-alive"));
	assert_false(fields_list(&fs, head, FIELD_TE, "close"));
	assert_null(fields_find(&fs, FIELD_HOST, NULL));
}

static void
a_list_is_bounded(void **state)
{
	struct fields fs;
	struct field f = { 0 };

	(void)state;
	fields_clear(&fs);
	for (int i = 0; i < 5; i++)
		assert_int_equal(fields_add(&fs, &f, 3), i < 3);
	for (int i = 3; i < FIELDS_MAX + 5; i++)
		assert_int_equal(fields_add(&fs, &f, 1000), i < FIELDS_MAX);
}

static void
words(void **state)
{
	(void)state;
	assert_true(field_is("ChunKed", 7, "chunked"));
	assert_false(field_is("chunke", 6, "chunked"));
	assert_false(field_is("chunkedx", 8, "chunked"));
	assert_false(field_is("te\0x", 4, "te"));
	assert_true(field_is("", 0, ""));
	assert_true(field_is_token("a!#$%&'*+-.^_`|~Z9", 18));
	assert_false(field_is_token("", 0));
	assert_false(field_is_token("a b", 3));
	assert_false(field_is_token("a@b", 3));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_known_name),
		cmocka_unit_test(no_other_name_is_known),
		cmocka_unit_test(control_bytes_are_found_anywhere),
		cmocka_unit_test(lines),
		cmocka_unit_test(members),
		cmocka_unit_test(lists),
		cmocka_unit_test(a_list_is_bounded),
		cmocka_unit_test(words),
	};

	return cmocka_run_group_tests_name("fields", tests, NULL, NULL);
}
