/* asked.c: see asked.h. */
#include "proxyd/static/asked.h"

#include <string.h>

#define NAME(text) text, sizeof(text) - 1

static const struct {
	const char *name;
	size_t len;
} names[ASKED_N] = {
	[ASKED_IF_MATCH] = { NAME("if-match") },
	[ASKED_IF_NONE_MATCH] = { NAME("if-none-match") },
	[ASKED_IF_MODIFIED_SINCE] = { NAME("if-modified-since") },
	[ASKED_IF_UNMODIFIED_SINCE] = { NAME("if-unmodified-since") },
	[ASKED_IF_RANGE] = { NAME("if-range") },
	[ASKED_RANGE] = { NAME("range") },
	[ASKED_ACCEPT_ENCODING] = { NAME("accept-encoding") },
};

bool
asked_find(struct asked *a, const struct fields *fs, const char *base)
{
	memset(a, 0, sizeof(*a));
	for (uint32_t i = 0; i < fs->n; i++) {
		const struct field *f = &fs->list[i];

		if (f->id != FIELD_OTHER)
			continue;
		for (int k = 0; k < ASKED_N; k++) {
			if (f->name_len != names[k].len ||
			    !field_is(base + f->name, f->name_len,
				names[k].name))
				continue;
			if (a->fields[k].text != NULL)
				return false;
			a->fields[k] =
			    (struct member){ base + f->value, f->value_len };
		}
	}
	return true;
}
