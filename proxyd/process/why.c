/* why.c: see why.h. */
#include "proxyd/process/why.h"

static const struct {
	short status;
	const char *word;
} whys[] = {
#define X(name, status, word) [WHY_##name] = { status, word },
	WHY_TABLE(X)
#undef X
};

const char *
why_word(enum why w)
{
	return whys[w].word;
}

int
why_status(enum why w)
{
	return whys[w].status;
}
