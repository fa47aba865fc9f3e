/* xalloc.c: see xalloc.h. */
#include "clusterctl/xalloc.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/err.h"

static void *must(void *);

void *
xcalloc(size_t n, size_t size)
{
	return must(calloc(n > 0 ? n : 1, size > 0 ? size : 1));
}

void *
xreallocarray(void *p, size_t n, size_t size)
{
	return must(reallocarray(p, n > 0 ? n : 1, size));
}

char *
xstrdup(const char *text)
{
	return must(strdup(text));
}

char *
xstrndup(const char *text, size_t n)
{
	return must(strndup(text, n));
}

FILE *
xmemopen(char **text, size_t *size)
{
	return must(open_memstream(text, size));
}

void
xmemclose(FILE *f)
{
	if (fclose(f) == EOF)
		must(NULL);
}

static void *
must(void *p)
{
	if (p != NULL)
		return p;
	fputs("clusterctl: out of memory\n", stderr);
	exit(ERR_LOCAL);
}
