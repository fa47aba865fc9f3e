/*
 * fuzz_fields.c: any bytes as field lines and list values.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "proxyd/http/cookie.h"
#include "proxyd/http/fields.h"
#include "proxyd/http/target.h"

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size);

#define CHECK(what)              \
	do {                     \
		if (!(what))     \
			abort(); \
	} while (0)

static bool
clean(const char *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (p[i] == '\r' || p[i] == '\n' || p[i] == '\0')
			return false;
	return true;
}

/* A field's places lie within its line, and hold nothing that could end
 * it. */
static void
look_at(const struct field *f, const char *base, uint32_t off, uint32_t end)
{
	CHECK(f->name == off && f->name_len > 0);
	CHECK(f->value >= off + f->name_len && f->value <= end);
	CHECK(f->value_len <= end - f->value);
	CHECK(field_is_token(base + f->name, f->name_len));
	CHECK(clean(base + f->value, f->value_len));
	CHECK(f->id < FIELD_N);
	if (f->flags & FIELD_CANONICAL)
		CHECK(f->value == off + f->name_len + 2U &&
		    f->value + f->value_len == end);
}

static void
walk(const struct fields *fs, const char *base)
{
	const char *value;
	struct member m;
	size_t len;

	for (uint32_t i = 0; i < fs->n; i++) {
		const struct field *f = &fs->list[i];
		const char *at = base + f->value, *end = at + f->value_len;

		while (field_member(&at, end, &m)) {
			CHECK(m.len > 0 && m.text >= base + f->value &&
			    m.text + m.len <= end);
			CHECK(memchr(m.text, ',', m.len) == NULL);
		}
		CHECK(at == end);
	}
	fields_list(fs, base, FIELD_CONNECTION, "close");
	if (cookie_find(fs, base, "a", &value, &len))
		CHECK(memchr(value, ';', len) == NULL);
}

int
LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	static struct fields fs;
	char host[HOST_MAX_LEN + 1], *copy;
	struct target t;
	uint8_t host_len;
	uint32_t at = 0;

	if (size < 2 || size > 65536)
		return 0;
	copy = malloc(size);
	memcpy(copy, input, size);
	fields_clear(&fs);
	while (at < size) {
		const char *lf = memchr(copy + at, '\n', size - at);
		uint32_t end =
		    lf == NULL ? (uint32_t)size : (uint32_t)(lf - copy);
		struct field f;

		if (field_parse(&f, copy, at, end,
			input[0] % 2 ? FIELD_SPACE_REFUSED :
				       FIELD_SPACE_DROPPED)) {
			look_at(&f, copy, at, end);
			fields_add(&fs, &f, 100);
		}
		at = end + 1;
	}
	CHECK(fs.n <= 100);
	walk(&fs, copy);
	if (target_host(copy, size, host, &host_len))
		CHECK(strlen(host) == host_len && host_len > 0);
	if (target_parse(&t, copy, 0, (uint32_t)size, input[0] % 3 == 0) ==
	    WHY_NONE)
		CHECK(clean(copy, size) && memchr(copy, ' ', size) == NULL);
	free(copy);
	return 0;
}
