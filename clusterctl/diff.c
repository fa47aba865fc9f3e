/* diff.c: see diff.h. */
#include "clusterctl/diff.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clusterctl/lines.h"

#define CONTEXT	  3
#define LINES_MAX (1u << 20) /* a text with more is not compared */

/* Lines lo to hi (not within) of both texts. */
struct hunk {
	size_t a_lo, a_hi;
	size_t b_lo, b_hi;
};

static char *load(struct gather *, const struct gather_group *, struct err *);
static int compare_groups(struct gather *, const char *old,
    const struct gather_group *ref, const struct gather_group *, struct sink *,
    struct err *);
static int put_heads(const char *old_label, const char *new_label,
    struct sink *, struct err *);
static int put_too_large(uint64_t old_size, uint64_t new_size, struct sink *,
    struct err *);
static int put_hunks(const struct lines *, const struct lines *, struct sink *,
    struct err *);
static bool next_hunk(const struct lines *, const struct lines *,
    struct hunk *);
static void skip_same(const struct lines *, const struct lines *, size_t *i,
    size_t *j);
static void skip_changed(const struct lines *, size_t *i);
static int put_hunk(const struct lines *, const struct lines *,
    const struct hunk *, struct sink *, struct err *);
static void format_range(size_t lo, size_t hi, char *buf, size_t size);
static int put_line(char sign, const struct line *, struct sink *,
    struct err *);

int
diff_print(struct gather *g, struct sink *s, struct err *e)
{
	const struct gather_group *group;
	size_t n;
	char *old = NULL;
	int rv = 0;

	if (gather_groups(g, &group, &n, e) == -1)
		return -1;
	if (n < 2)
		return 0;
	if (group[0].size <= DIFF_SIZE_MAX &&
	    (old = load(g, &group[0], e)) == NULL)
		return -1;
	for (size_t i = 1; rv == 0 && i < n && !s->closed; i++)
		rv = compare_groups(g, old, &group[0], &group[i], s, e);
	free(old);
	return rv;
}

int
diff_texts(const char *old_label, const char *old, size_t old_size,
    const char *new_label, const char *new, size_t new_size, struct sink *s,
    struct err *e)
{
	struct lines a = { NULL, 0 }, b = { NULL, 0 };
	int rv = -1;

	if (old_size == new_size && memcmp(old, new, old_size) == 0)
		return 0;
	if (put_heads(old_label, new_label, s, e) == -1)
		return -1;
	if (lines_split(&a, old, old_size) == -1 ||
	    lines_split(&b, new, new_size) == -1)
		err_set(e, ERR_LOCAL, "out of memory to compare output");
	else if (a.n > LINES_MAX || b.n > LINES_MAX)
		rv = put_too_large(old_size, new_size, s, e);
	else if (lines_compare(&a, &b) == -1)
		err_set(e, ERR_LOCAL, "out of memory to compare output");
	else
		rv = put_hunks(&a, &b, s, e);
	lines_fini(&a);
	lines_fini(&b);
	return rv;
}

static char *
load(struct gather *g, const struct gather_group *group, struct err *e)
{
	char *text = malloc((size_t)group->size + 1);
	uint64_t at = 0;

	if (text == NULL) {
		err_set(e, ERR_LOCAL, "out of memory to compare output");
		return NULL;
	}
	while (at < group->size) {
		ssize_t n = gather_read(g, group, at, text + at,
		    (size_t)(group->size - at), e);

		if (n <= 0) {
			free(text);
			return NULL;
		}
		at += (uint64_t)n;
	}
	return text;
}

/* old is NULL where the largest group's output is too large. */
static int
compare_groups(struct gather *g, const char *old,
    const struct gather_group *ref, const struct gather_group *group,
    struct sink *s, struct err *e)
{
	char *new;
	int rv;

	if (old == NULL || group->size > DIFF_SIZE_MAX) {
		if (put_heads(ref->label, group->label, s, e) == -1)
			return -1;
		return put_too_large(ref->size, group->size, s, e);
	}
	if ((new = load(g, group, e)) == NULL)
		return -1;
	rv = diff_texts(ref->label, old, (size_t)ref->size, group->label, new,
	    (size_t)group->size, s, e);
	free(new);
	return rv;
}

static int
put_heads(const char *old_label, const char *new_label, struct sink *s,
    struct err *e)
{
	return sink_printf(s, e, "--- %s\n+++ %s\n", old_label, new_label);
}

static int
put_too_large(uint64_t old_size, uint64_t new_size, struct sink *s,
    struct err *e)
{
	return sink_printf(s, e,
	    "Output differs (%" PRIu64 " and %" PRIu64
	    " bytes), too large to compare; --outdir keeps it\n",
	    old_size, new_size);
}

static int
put_hunks(const struct lines *a, const struct lines *b, struct sink *s,
    struct err *e)
{
	struct hunk h = { 0, 0, 0, 0 };

	while (next_hunk(a, b, &h))
		if (put_hunk(a, b, &h, s, e) == -1)
			return -1;
	return 0;
}

/* The changes behind *h that lie so near that their context would touch. */
static bool
next_hunk(const struct lines *a, const struct lines *b, struct hunk *h)
{
	size_t i = h->a_hi, j = h->b_hi, before;

	skip_same(a, b, &i, &j);
	if (i == a->n && j == b->n)
		return false;
	before = i - h->a_hi < CONTEXT ? i - h->a_hi : CONTEXT;
	h->a_lo = i - before;
	h->b_lo = j - before;
	do {
		skip_changed(a, &i);
		skip_changed(b, &j);
		h->a_hi = i;
		h->b_hi = j;
		skip_same(a, b, &i, &j);
	} while (i - h->a_hi <= 2 * CONTEXT && (i < a->n || j < b->n));
	for (size_t k = 0; k < CONTEXT && h->a_hi < i; k++) {
		h->a_hi++;
		h->b_hi++;
	}
	return true;
}

static void
skip_same(const struct lines *a, const struct lines *b, size_t *i, size_t *j)
{
	while (
	    *i < a->n && *j < b->n && !a->v[*i].changed && !b->v[*j].changed) {
		(*i)++;
		(*j)++;
	}
}

static void
skip_changed(const struct lines *l, size_t *i)
{
	while (*i < l->n && l->v[*i].changed)
		(*i)++;
}

static int
put_hunk(const struct lines *a, const struct lines *b, const struct hunk *h,
    struct sink *s, struct err *e)
{
	char old[48], new[48];
	size_t i = h->a_lo, j = h->b_lo;
	int rv;

	format_range(h->a_lo, h->a_hi, old, sizeof(old));
	format_range(h->b_lo, h->b_hi, new, sizeof(new));
	rv = sink_printf(s, e, "@@ -%s +%s @@\n", old, new);
	while (rv == 0 && (i < h->a_hi || j < h->b_hi)) {
		if (i < h->a_hi && a->v[i].changed)
			rv = put_line('-', &a->v[i++], s, e);
		else if (j < h->b_hi && b->v[j].changed)
			rv = put_line('+', &b->v[j++], s, e);
		else {
			rv = put_line(' ', &a->v[i++], s, e);
			j++;
		}
	}
	return rv;
}

/* "3,2"; "3" for one line; an empty range names the line before it. */
static void
format_range(size_t lo, size_t hi, char *buf, size_t size)
{
	if (hi - lo == 1)
		snprintf(buf, size, "%zu", lo + 1);
	else
		snprintf(buf, size, "%zu,%zu", hi > lo ? lo + 1 : lo, hi - lo);
}

static int
put_line(char sign, const struct line *l, struct sink *s, struct err *e)
{
	if (sink_printf(s, e, "%c", sign) == -1 ||
	    sink_put(s, l->text, l->len, e) == -1)
		return -1;
	if (l->text[l->len - 1] == '\n')
		return 0;
	return sink_printf(s, e, "\n\\ No newline at end of output\n");
}
