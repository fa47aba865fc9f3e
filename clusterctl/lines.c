/* lines.c: see lines.h. */
#include "clusterctl/lines.h"

#include <stdlib.h>
#include <string.h>

/* The part of two texts between their common beginning and end. */
struct middle {
	struct line *a, *b;
	ptrdiff_t n, m;
};

/*
 * For each number of edits d, how far into `a` one comes on each diagonal
 * k = x - y from -d to d: 2d+1 places, one d behind the other.
 */
struct trace {
	ptrdiff_t *reach;
	ptrdiff_t edits; /* -1: more than LINES_EDITS */
};

static int number_lines(struct lines *, struct lines *);
static struct middle trim(struct lines *, struct lines *);
static int find_edits(const struct middle *, struct trace *);
static ptrdiff_t *row(ptrdiff_t *reach, ptrdiff_t d);
static ptrdiff_t step(const ptrdiff_t *last, ptrdiff_t d, ptrdiff_t k);
static bool down(const ptrdiff_t *last, ptrdiff_t d, ptrdiff_t k);
static void mark(const struct middle *, const struct trace *);
static void mark_all(const struct middle *);

int
lines_split(struct lines *l, const char *text, size_t size)
{
	const char *end = text + size;
	size_t n = 0;

	for (const char *p = text; p < end; n++) {
		const char *nl = memchr(p, '\n', (size_t)(end - p));

		p = nl != NULL ? nl + 1 : end;
	}
	l->n = n;
	if ((l->v = calloc(n > 0 ? n : 1, sizeof(*l->v))) == NULL)
		return -1;
	for (size_t i = 0; i < n; i++) {
		const char *nl = memchr(text, '\n', (size_t)(end - text));
		const char *next = nl != NULL ? nl + 1 : end;

		l->v[i].text = text;
		l->v[i].len = (size_t)(next - text);
		text = next;
	}
	return 0;
}

void
lines_fini(struct lines *l)
{
	free(l->v);
	*l = (struct lines){ NULL, 0 };
}

int
lines_compare(struct lines *a, struct lines *b)
{
	struct trace t = { NULL, -1 };
	struct middle mid;
	int rv;

	if (number_lines(a, b) == -1)
		return -1;
	mid = trim(a, b);
	if ((rv = find_edits(&mid, &t)) == 0) {
		if (t.edits == -1)
			mark_all(&mid);
		else
			mark(&mid, &t);
	}
	free(t.reach);
	return rv;
}

/* Gives equal lines equal ids, by a hash table of those seen. */
static int
number_lines(struct lines *a, struct lines *b)
{
	struct lines *both[2] = { a, b };
	size_t size = 16;
	struct line **seen;
	uint32_t n_ids = 0;

	while (size < 2 * (a->n + b->n))
		size *= 2;
	if ((seen = calloc(size, sizeof(*seen))) == NULL)
		return -1;
	for (size_t i = 0; i < a->n + b->n; i++) {
		struct line *l =
		    i < a->n ? &both[0]->v[i] : &both[1]->v[i - a->n];
		uint64_t h = 0xcbf29ce484222325; /* FNV-1a */
		size_t at;

		for (size_t k = 0; k < l->len; k++)
			h = (h ^ (unsigned char)l->text[k]) * 0x100000001b3;
		at = h & (size - 1);
		while (seen[at] != NULL &&
		    (seen[at]->len != l->len ||
			memcmp(seen[at]->text, l->text, l->len) != 0))
			at = (at + 1) & (size - 1);
		if (seen[at] == NULL) {
			seen[at] = l;
			l->id = n_ids++;
		}
		l->id = seen[at]->id;
	}
	free(seen);
	return 0;
}

static struct middle
trim(struct lines *a, struct lines *b)
{
	struct middle mid = { a->v, b->v, (ptrdiff_t)a->n, (ptrdiff_t)b->n };

	while (mid.n > 0 && mid.m > 0 && mid.a[0].id == mid.b[0].id) {
		mid.a++;
		mid.b++;
		mid.n--;
		mid.m--;
	}
	while (mid.n > 0 && mid.m > 0 &&
	    mid.a[mid.n - 1].id == mid.b[mid.m - 1].id) {
		mid.n--;
		mid.m--;
	}
	return mid;
}

static int
find_edits(const struct middle *mid, struct trace *t)
{
	for (ptrdiff_t d = 0; d <= LINES_EDITS; d++) {
		ptrdiff_t *reach, *last, *here;

		/* Grows by doubling: d = 0, 1, 2, 4, 8, ... */
		if ((d & (d - 1)) == 0) {
			size_t n = (size_t)((2 * d + 1) * (2 * d + 1));

			reach = reallocarray(t->reach, n, sizeof(*reach));
			if (reach == NULL)
				return -1;
			t->reach = reach;
		}
		last = d > 0 ? row(t->reach, d - 1) : NULL;
		here = row(t->reach, d);
		for (ptrdiff_t k = -d; k <= d; k += 2) {
			ptrdiff_t x = step(last, d, k), y = x - k;

			while (x < mid->n && y < mid->m && y >= 0 &&
			    mid->a[x].id == mid->b[y].id) {
				x++;
				y++;
			}
			here[k] = x;
			if (x >= mid->n && y >= mid->m) {
				t->edits = d;
				return 0;
			}
		}
	}
	return 0;
}

/* The middle (k = 0) of the places for d: d * d of others lie before its
 * first. */
static ptrdiff_t *
row(ptrdiff_t *reach, ptrdiff_t d)
{
	return reach + d * d + d;
}

/* Where the d-th edit leads on diagonal k. */
static ptrdiff_t
step(const ptrdiff_t *last, ptrdiff_t d, ptrdiff_t k)
{
	if (d == 0)
		return 0;
	return down(last, d, k) ? last[k + 1] : last[k - 1] + 1;
}

/* Whether the d-th edit adds a line of b, rather than removing one of a. */
static bool
down(const ptrdiff_t *last, ptrdiff_t d, ptrdiff_t k)
{
	return k == -d || (k != d && last[k - 1] < last[k + 1]);
}

/* Walks the way back from the end. */
static void
mark(const struct middle *mid, const struct trace *t)
{
	ptrdiff_t x = mid->n, y = mid->m;

	for (ptrdiff_t d = t->edits; d > 0; d--) {
		const ptrdiff_t *last = row(t->reach, d - 1);
		ptrdiff_t k = x - y;

		if (down(last, d, k)) {
			x = last[k + 1];
			y = x - (k + 1);
			mid->b[y].changed = true;
		} else {
			x = last[k - 1];
			y = x - (k - 1);
			mid->a[x].changed = true;
		}
	}
}

static void
mark_all(const struct middle *mid)
{
	for (ptrdiff_t i = 0; i < mid->n; i++)
		mid->a[i].changed = true;
	for (ptrdiff_t i = 0; i < mid->m; i++)
		mid->b[i].changed = true;
}
