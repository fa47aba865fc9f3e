/* context.c: see context.h. */
#include "clusterctl/context.h"

#include <stdlib.h>
#include <string.h>

#include "clusterctl/xalloc.h"
#include "common/base/io.h"

struct context {
	char *state_dir, *typed;
	unsigned open; /* NEEDS_* bits already there */
	struct state state;
	struct event_base *base;
};

static int need_state(struct context *, struct err *);

/* Each need, and the needs that it builds on; in the order of opening. */
static const struct {
	unsigned bit;
	int (*open)(struct context *, struct err *);
} needs_table[] = {
	{ NEEDS_STATE, need_state },
};

struct context *
context_new(const char *state, const char *typed)
{
	struct context *cx = xcalloc(1, sizeof(*cx));

	cx->state_dir = xstrdup(state_dir(state));
	cx->typed = xstrdup(typed);
	return cx;
}

void
context_free(struct context *cx)
{
	if (cx == NULL)
		return;
	if (cx->base != NULL)
		event_base_free(cx->base);
	free(cx->state_dir);
	free(cx->typed);
	free(cx);
}

int
context_need(struct context *cx, unsigned needs, struct err *e)
{
	if (needs != NEEDS_NOTHING)
		needs |= NEEDS_STATE;
	for (size_t i = 0; i < nitems(needs_table); i++) {
		unsigned bit = needs_table[i].bit;

		if ((needs & bit) == 0 || (cx->open & bit) != 0)
			continue;
		if (needs_table[i].open(cx, e) == -1)
			return -1;
		cx->open |= bit;
	}
	return 0;
}

const struct state *
context_state(const struct context *cx)
{
	return &cx->state;
}

const char *
context_state_dir(const struct context *cx)
{
	return cx->state_dir;
}

const char *
context_typed(const struct context *cx)
{
	return cx->typed;
}

struct event_base *
context_base(struct context *cx)
{
	if (cx->base == NULL)
		cx->base = event_base_new();
	return cx->base;
}

char *
context_quote(int argc, char *const *argv)
{
	size_t size = 1;
	char *text, *p;

	for (int i = 0; i < argc; i++)
		size += 4 * strlen(argv[i]) + 3;
	p = text = xcalloc(1, size);
	for (int i = 0; i < argc; i++) {
		const char *w = argv[i];
		bool plain = *w != '\0' &&
		    strspn(w,
			"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
			"0123456789@%+=:,./_-[]") == strlen(w);

		if (i > 0)
			*p++ = ' ';
		if (plain) {
			p = stpcpy(p, w);
			continue;
		}
		*p++ = '\'';
		for (; *w != '\0'; w++)
			if (*w == '\'')
				p = stpcpy(p, "'\\''");
			else
				*p++ = *w;
		*p++ = '\'';
	}
	return text;
}

static int
need_state(struct context *cx, struct err *e)
{
	return state_open(&cx->state, cx->state_dir, e);
}
