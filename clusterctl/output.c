/* output.c: see output.h.  The tables are in table.c. */
#include "clusterctl/output.h"

#include <errno.h>
#include <locale.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

#include "clusterctl/progress.h"

static const char *const colours[] = {
	[COLOUR_NONE] = "\033[0m",
	[COLOUR_RED] = "\033[31m",
	[COLOUR_GREEN] = "\033[32m",
	[COLOUR_YELLOW] = "\033[33m",
	[COLOUR_BOLD] = "\033[1m",
	[COLOUR_DIM] = "\033[2m",
};

static struct {
	bool json, tty, colour;
} form;

void
output_open(bool json, bool no_color)
{
	const char *no = getenv("NO_COLOR"), *term = getenv("TERM");

	setlocale(LC_CTYPE, "C.UTF-8");
	form.json = json;
	form.tty = isatty(STDOUT_FILENO);
	form.colour = form.tty && !no_color && (no == NULL || *no == '\0') &&
	    (term == NULL || strcmp(term, "dumb") != 0);
}

bool
output_is_json(void)
{
	return form.json;
}

bool
output_is_tty(void)
{
	return form.tty;
}

bool
output_has_colour(void)
{
	return form.colour;
}

const char *
output_colour(enum colour c)
{
	return form.colour ? colours[c] : "";
}

void
output_json(json_t *take)
{
	json_dumpf(take, stdout, JSON_COMPACT | JSON_REAL_PRECISION(6));
	putchar('\n');
	json_decref(take);
}

void
output_error(const struct err *e)
{
	fflush(stdout);
	progress_clear();
	fprintf(stderr, "clusterctl: %s\n", e->text);
}

void
output_note(const char *fmt, ...)
{
	va_list ap;

	fflush(stdout);
	progress_clear();
	va_start(ap, fmt);
	fputs("clusterctl: ", stderr);
	vfprintf(stderr, fmt, ap);
	fputc('\n', stderr);
	va_end(ap);
}

int
output_close(int status)
{
	struct err e;

	errno = 0;
	if (fflush(stdout) == 0 && !ferror(stdout))
		return status;
	if (errno == EPIPE)
		output_reader_gone();
	err_errno(&e, ERR_LOCAL, "cannot write the output");
	output_error(&e);
	return err_exit_status(ERR_LOCAL);
}

size_t
output_width(const char *text)
{
	mbstate_t state = { 0 };
	size_t width = 0, n;
	wchar_t wc;

	while (*text != '\0') {
		n = mbrtowc(&wc, text, MB_CUR_MAX, &state);
		if (n == (size_t)-1 || n == (size_t)-2) {
			memset(&state, 0, sizeof(state));
			n = 1;
			width++;
		} else {
			int w = wcwidth(wc);

			width += w > 0 ? (size_t)w : 0;
		}
		text += n;
	}
	return width;
}

void
output_reader_gone(void)
{
	signal(SIGPIPE, SIG_DFL);
	raise(SIGPIPE);
	_exit(128 + SIGPIPE); /* it was blocked */
}
