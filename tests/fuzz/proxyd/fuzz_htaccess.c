/*
 * fuzz_htaccess.c: any bytes as an .htaccess, and as a mime.types.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "proxyd/static/htaccess.h"
#include "proxyd/static/mime.h"

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size);

#define CHECK(what)              \
	do {                     \
		if (!(what))     \
			abort(); \
	} while (0)

/* Whatever stands before a line that decides, it decides; and behind one
 * that is whole. */
static void
check_htaccess(const char *text, size_t size)
{
	static const char deny[] = "\nRequire all denied\n";
	char *more = malloc(size + sizeof(deny));

	memcpy(more, deny, sizeof(deny) - 1);
	memcpy(more + sizeof(deny) - 1, text, size);
	CHECK(
	    htaccess_judge(more, size + sizeof(deny) - 1) == HTACCESS_DECIDES);
	memcpy(more, text, size);
	memcpy(more + size, deny, sizeof(deny) - 1);
	/* A backslash at the end would take the empty line away, and may make
	 * a comment of it. */
	if (size > 0 && text[size - 1] != '\\' && text[size - 1] != '\r' &&
	    size + sizeof(deny) < HTACCESS_MAX)
		CHECK(htaccess_judge(more, size + sizeof(deny) - 1) ==
		    HTACCESS_DECIDES);
	htaccess_judge(text, size);
	free(more);
}

static void
check_mime(const char *text, size_t size)
{
	struct mime *m = mime_new(text, size);
	const char *type;

	CHECK(m != NULL);
	type = mime_type(m, "css");
	CHECK(strlen(type) < MIME_TYPE_MAX && strpbrk(type, "\r\n ") == NULL);
	mime_free(m);
}

int
LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	char *copy;

	if (size > HTACCESS_MAX + 10)
		return 0;
	copy = malloc(size + 1);
	memcpy(copy, input, size);
	check_htaccess(copy, size);
	check_mime(copy, size);
	free(copy);
	return 0;
}
