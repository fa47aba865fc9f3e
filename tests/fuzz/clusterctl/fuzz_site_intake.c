/*
 * fuzz_site_intake.c: lines of `site add --from-file`.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "clusterctl/site_intake.h"
#include "common/base/name.h"

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size);

/* Whatever is taken keeps the rules of a site. */
int
LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	static const struct field_values nothing;
	char *line = malloc(size + 1);
	struct site s;
	struct err e;

	if (line == NULL)
		return 0;
	memcpy(line, input, size);
	line[size] = '\0';
	if (site_intake_line(line, &nothing, &s, &e) == 0 &&
	    (name_check_host(s.name, false, &e) == -1 || s.max_body < 0))
		abort();
	site_fini(&s);
	free(line);
	return 0;
}
