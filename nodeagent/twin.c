/* twin.c: see twin.h. */
#include "nodeagent/twin.h"

#include <stdio.h>
#include <string.h>

bool
twin_called(struct twin *t, const char *word, const struct addr *from,
    int64_t now_ms, struct addr *other)
{
	bool is_back;

	/* Versions before this one say no word. */
	if (*word == '\0')
		return false;
	if (strcmp(word, t->now.word) == 0) {
		t->now.from = *from;
		return false;
	}
	is_back = strcmp(word, t->before.word) == 0;
	*other = t->now.from;
	t->before = t->now;
	snprintf(t->now.word, sizeof(t->now.word), "%s", word);
	t->now.from = *from;
	if (!is_back ||
	    (t->said_ms != 0 && now_ms - t->said_ms < TWIN_SAY_EACH_MS))
		return false;
	t->said_ms = now_ms;
	return true;
}
