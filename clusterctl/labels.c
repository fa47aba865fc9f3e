/* labels.c: see labels.h. */
#include "clusterctl/labels.h"

#include <stdlib.h>
#include <string.h>

#include "clusterctl/utf8.h"

static size_t piece(const struct label *, const char *bytes, size_t n,
    bool *whole);
static int emit(struct label *, const char *bytes, size_t n, bool whole,
    struct err *);
static int hold(struct label *, const char *bytes, size_t n, struct err *);
static void let_go(struct label *);

void
label_init(struct label *l, struct sink *sink, const char *node)
{
	*l = (struct label){ .sink = sink, .node = node };
}

int
label_put(struct label *l, const void *bytes, size_t n, struct err *e)
{
	const char *p = bytes;

	while (n > 0 && !l->sink->closed) {
		bool whole;
		size_t len = piece(l, p, n, &whole);

		if (len == 0)
			return hold(l, p, n, e);
		if (emit(l, p, len, whole, e) == -1)
			return -1;
		p += len;
		n -= len;
	}
	return 0;
}

int
label_end(struct label *l, struct err *e)
{
	int rv = 0;

	if (l->len > 0)
		rv = emit(l, "", 0, false, e);
	let_go(l);
	return rv;
}

void
label_fini(struct label *l)
{
	let_go(l);
}

/* How many of n bytes go out now, together with those held; 0: none yet.
 * Not whole: a piece of a line that is too long. */
static size_t
piece(const struct label *l, const char *bytes, size_t n, bool *whole)
{
	size_t room = LABEL_PIECE - l->len, cut;
	const char *nl = memchr(bytes, '\n', n < room ? n : room);

	*whole = nl != NULL;
	if (nl != NULL)
		return (size_t)(nl - bytes) + 1;
	if (n < room)
		return 0;
	cut = utf8_whole(bytes, room);
	return cut > 0 ? cut : room;
}

/* What is held and n bytes more, as one line. */
static int
emit(struct label *l, const char *bytes, size_t n, bool whole, struct err *e)
{
	struct sink *s = l->sink;

	if (l->node != NULL && sink_printf(s, e, "%s: ", l->node) == -1)
		return -1;
	if (l->len > 0 && n > 0 && hold(l, bytes, n, e) == -1)
		return -1;
	if (l->len > 0 ? sink_put(s, l->held, l->len, e) == -1 :
			 sink_put(s, bytes, n, e) == -1)
		return -1;
	let_go(l);
	return l->node != NULL && !whole ? sink_printf(s, e, "\n") : 0;
}

static int
hold(struct label *l, const char *bytes, size_t n, struct err *e)
{
	char *held = realloc(l->held, l->len + n);

	if (held == NULL)
		return err_set(e, ERR_LOCAL, "out of memory for output");
	memcpy(held + l->len, bytes, n);
	l->held = held;
	l->len += n;
	return 0;
}

static void
let_go(struct label *l)
{
	free(l->held);
	l->held = NULL;
	l->len = 0;
}
