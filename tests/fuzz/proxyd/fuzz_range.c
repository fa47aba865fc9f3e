/*
 * fuzz_range.c: any bytes as Range, and as the other fields that decide how
 * a file is answered.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "proxyd/http/coding.h"
#include "proxyd/static/conditional.h"
#include "proxyd/static/path.h"
#include "proxyd/static/range.h"

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size);

#define CHECK(what)              \
	do {                     \
		if (!(what))     \
			abort(); \
	} while (0)

/* Whatever is asked for lies in the file, once. */
static void
check_range(const char *text, size_t len, uint64_t size)
{
	struct range_set set;
	uint64_t sum = 0;

	switch (range_parse(text, len, size, &set)) {
	case RANGE_PARTS:
		CHECK(set.n > 0 && set.n <= RANGES_MAX);
		for (unsigned i = 0; i < set.n; i++) {
			const struct range *r = &set.parts[i];

			CHECK(r->size > 0 && r->first < size &&
			    r->size <= size - r->first);
			sum += r->size;
		}
		CHECK(sum <= size);
		break;
	case RANGE_WHOLE:
	case RANGE_UNSATISFIABLE:
		break;
	}
}

/* A path never leaves its root, and has no byte that ends it early. */
static void
check_path(const char *text, size_t len)
{
	struct file_path p;

	if (!file_path_decode(&p, text, len))
		return;
	CHECK(strlen(p.text) == p.len && p.len < FILE_PATH_MAX);
	CHECK(p.text[0] != '/' && strstr(p.text, "//") == NULL);
	for (const char *s = p.text; *s != '\0';) {
		size_t n = strcspn(s, "/");

		CHECK(n > 0 && !(n == 1 && s[0] == '.'));
		CHECK(!(n == 2 && s[0] == '.' && s[1] == '.'));
		s += n + (s[n] == '/');
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	static const struct validators v = { 784111777, "\"x\"" };
	struct asked a = { 0 };
	uint64_t file = 0;
	char *copy;

	if (size < 4 || size > 65536)
		return 0;
	memcpy(&file, input, 3);
	size -= 3;
	copy = malloc(size);
	memcpy(copy, input + 3, size);
	check_range(copy, size, file);
	check_range(copy, size, UINT64_MAX >> 1);
	check_path(copy, size);
	coding_parse(copy, size);
	for (int i = 0; i < ASKED_N; i++) {
		memset(&a, 0, sizeof(a));
		a.fields[ASKED_RANGE] = (struct member){ copy, size };
		a.fields[i] = (struct member){ copy, size };
		precondition(&a, &v, 1000000000);
	}
	free(copy);
	return 0;
}
