/*
 * fuzz_settings.c: "name=value" for every table of options: what is taken is
 * shown as a text that is taken again, and means the same.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/registry/nodes.h"
#include "common/registry/roles.h"
#include "common/registry/settings.h"
#include "common/registry/sites.h"

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	static const struct option_table *const tables[] = { &settings_table,
		&role_options, &site_options, &node_options };
	static union {
		struct settings settings;
		struct role role;
		struct site site;
		struct node node;
	} object;
	char line[4096], *value, text[OPTION_TEXT_MAX], again[OPTION_TEXT_MAX];
	struct err e;

	if (size >= sizeof(line))
		return 0;
	memcpy(line, input, size);
	line[size] = '\0';
	if ((value = strchr(line, '=')) == NULL)
		return 0;
	*value++ = '\0';
	for (size_t t = 0; t < 4; t++) {
		const struct option *o;

		option_defaults(tables[t], &object);
		if ((o = option_find(tables[t], line, &e)) == NULL ||
		    option_set(tables[t], &object, line, value, &e) == -1)
			continue;
		option_text(o, &object, text);
		if (option_set(tables[t], &object, line, text, &e) == -1)
			abort();
		option_text(o, &object, again);
		if (strcmp(text, again) != 0)
			abort();
	}
	return 0;
}
