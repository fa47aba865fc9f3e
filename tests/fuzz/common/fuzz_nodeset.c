/*
 * fuzz_nodeset.c: expressions.  What is read folds to a text that reads as
 * the same set, by itself and against a small cluster.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/nodeset/nodeset.h"

/* Larger sets find nothing more, only later. */
#define COUNT_MAX 20000

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size);

static int
members(void *arg, const char *role, struct nodeset *s, struct err *e)
{
	static const char *const names[] = { "web1", "web2", "web10", "db01",
		"r1n1", "r1n2", "odd*", "::1" };

	(void)arg;
	if (role != NULL && strcmp(role, "web") != 0)
		return err_set(e, ERR_NO_TARGET, "no such role");
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (nodeset_add(s, names[i], e) == -1)
			abort();
	return 0;
}

static const char *
address(void *arg, const char *text)
{
	(void)arg;
	return strlen(text) % 2 == 0 ? "db01" : NULL;
}

/* Both ways around, and name by name. */
static void
expect_equal(struct nodeset *a, struct nodeset *b)
{
	struct nodeset_iter it;
	const char *name;
	size_t n = 0;
	struct err e;

	nodeset_iter_init(&it, a);
	while ((name = nodeset_iter_next(&it)) != NULL && n++ < 1000)
		if (!nodeset_has(b, name))
			abort();
	if (nodeset_count(a) != nodeset_count(b))
		abort();
	if (nodeset_combine(a, NODESET_XOR, b, &e) == -1 ||
	    nodeset_count(a) != 0)
		abort();
}

static void
check(const char *text, const struct nodeset_resolver *r)
{
	struct nodeset *s, *again;
	struct err e;
	char *folded, *twice;

	if (nodeset_parse(text, r, &s, &e) == -1)
		return;
	if (nodeset_count(s) <= COUNT_MAX) {
		if (nodeset_fold(s, ",", &folded, &e) == -1 ||
		    nodeset_parse(folded, NULL, &again, &e) == -1 ||
		    nodeset_fold(again, ",", &twice, &e) == -1 ||
		    strcmp(folded, twice) != 0)
			abort();
		expect_equal(s, again);
		free(folded);
		free(twice);
		nodeset_free(again);
	}
	nodeset_free(s);
}

int
LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	static const struct nodeset_resolver strict = { NULL, members, address,
		false };
	static const struct nodeset_resolver lenient = { NULL, members, address,
		true };
	char *text = malloc(size + 1);

	memcpy(text, input, size);
	text[size] = '\0';
	check(text, NULL);
	check(text, &strict);
	check(text, &lenient);
	free(text);
	return 0;
}
