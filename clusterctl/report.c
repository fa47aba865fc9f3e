/* report.c: see report.h. */
#include "clusterctl/report.h"

#include <stdarg.h>
#include <stdio.h>

#include "clusterctl/output.h"
#include "common/registry/registry.h"

int
report_done(struct context *cx, const char *fmt, ...)
{
	struct registry *r = context_registry(cx);
	int64_t revision = 0;
	char text[512];
	struct err e;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (output_is_json()) {
		json_t *o = json_pack("{s:s}", "done", text);

		/* The change is made; not to know its number is no failure. */
		if (r != NULL && registry_revision(r, &revision, &e) == 0)
			json_object_set_new(o, "revision",
			    json_integer((json_int_t)revision));
		output_json(o);
	} else if (output_is_tty())
		puts(text);
	return 0;
}
