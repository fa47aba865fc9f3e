/* progress.c: see progress.h. */
#include "clusterctl/progress.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool shown;

bool
progress_possible(void)
{
	const char *term = getenv("TERM");

	return isatty(STDERR_FILENO) && term != NULL &&
	    strcmp(term, "dumb") != 0;
}

void
progress_show(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fputs("\r\033[K", stderr);
	vfprintf(stderr, fmt, ap);
	fflush(stderr);
	va_end(ap);
	shown = true;
}

void
progress_clear(void)
{
	if (!shown)
		return;
	fputs("\r\033[K", stderr);
	fflush(stderr);
	shown = false;
}
