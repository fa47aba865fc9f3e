/* cert_names.c: see cert_names.h. */
#include "proxyd/tls/cert_names.h"

#include <stdlib.h>
#include <string.h>

#include "common/registry/site_certs.h"
#include "proxyd/tls/cert_form.h"

/* Why a name would get a certificate, the best reason first. */
enum reason {
	OWN,   /* its site's, and it covers it */
	NAMED, /* it is among the certificate's names */
	ODD    /* its site's, though it does not cover it */
};

struct candidate {
	size_t name, len; /* in `text`: "a.b", or ".b" for "*.b" */
	enum reason reason;
	enum cert_image_kind kind;
	uint32_t entry;
	int64_t not_after_s;
};

struct cert_names {
	char *text;
	size_t text_size, text_room;
	struct candidate *candidates;
	size_t n, room;
};

static int add(struct cert_names *, const char *name, size_t len, enum reason,
    uint32_t entry, const struct cert_plan_entry *, struct err *);
static int compare(const void *, const void *, void *names);
static size_t group_end(const struct cert_names *, size_t from);
static void put_groups(const struct cert_names *, struct cert_names_table *,
    bool odd);
static void put(const struct cert_names *, struct cert_names_table *,
    size_t from, size_t end);
static struct cert_image_slot *slot_of(const struct cert_names_table *,
    const char *name, size_t len);
static const struct cert_image_slot *
wildcard_of(const struct cert_names_table *, const char *name, size_t len);

struct cert_names *
cert_names_new(struct err *e)
{
	struct cert_names *n = calloc(1, sizeof(*n));

	if (n == NULL)
		err_set(e, ERR_LOCAL, "out of memory for certificates");
	return n;
}

void
cert_names_free(struct cert_names *n)
{
	if (n == NULL)
		return;
	free(n->text);
	free(n->candidates);
	free(n);
}

int
cert_names_add(struct cert_names *n, uint32_t entry,
    const struct cert_plan_entry *x, struct err *e)
{
	size_t len;

	for (const char *p = x->hosts; *p != '\0'; p += len + (p[len] == ' ')) {
		enum reason why;

		len = strcspn(p, " ");
		why = site_cert_covers(x->names, p, len) ? OWN : ODD;
		/* No name is looked up as a wildcard that nothing covers. */
		if ((*p != '*' || why == OWN) &&
		    add(n, p, len, why, entry, x, e) == -1)
			return -1;
	}
	for (const char *p = x->names; *p != '\0'; p += len + (p[len] == ' ')) {
		len = strcspn(p, " ");
		if (add(n, p, len, NAMED, entry, x, e) == -1)
			return -1;
	}
	return 0;
}

int
cert_names_table(struct cert_names *n, struct cert_names_table *out,
    struct err *e)
{
	struct cert_names_table t = { .n_slots = 16 };

	while (t.n_slots < n->n * 2)
		t.n_slots *= 2;
	t.slots = calloc(t.n_slots, sizeof(*t.slots));
	t.text = malloc(n->text_size + 1);
	if (t.slots == NULL || t.text == NULL) {
		free(t.slots);
		free(t.text);
		return err_set(e, ERR_LOCAL, "out of memory for certificates");
	}
	if (n->n > 0)
		qsort_r(n->candidates, n->n, sizeof(*n->candidates), compare,
		    n);
	put_groups(n, &t, false);
	put_groups(n, &t, true);
	*out = t;
	return 0;
}

void
cert_names_find(const struct cert_names_table *t, const char *name,
    uint32_t by_kind[CERT_IMAGE_KINDS])
{
	size_t len = strlen(name);
	const struct cert_image_slot *s = slot_of(t, name, len);

	if (s->name.size == 0)
		s = wildcard_of(t, name, len);
	if (s != NULL)
		memcpy(by_kind, s->by_kind, sizeof(s->by_kind));
}

static int
add(struct cert_names *n, const char *name, size_t len, enum reason why,
    uint32_t entry, const struct cert_plan_entry *x, struct err *e)
{
	struct candidate *c;
	void *more;

	if (*name == '*') {
		name++;
		len--;
	}
	if (n->text_size + len > n->text_room) {
		n->text_room = (n->text_room + len) * 2;
		if ((more = realloc(n->text, n->text_room)) == NULL)
			goto fail;
		n->text = more;
	}
	if (n->n == n->room) {
		n->room = n->room == 0 ? 64 : n->room * 2;
		more = reallocarray(n->candidates, n->room, sizeof(*c));
		if (more == NULL)
			goto fail;
		n->candidates = more;
	}
	c = &n->candidates[n->n++];
	*c = (struct candidate){ n->text_size, len, why, x->kind, entry,
		x->not_after_s };
	memcpy(n->text + n->text_size, name, len);
	n->text_size += len;
	return 0;
fail:
	return err_set(e, ERR_LOCAL, "out of memory for certificates");
}

/* By name; then the best first, ties by the order in which they came. */
static int
compare(const void *a, const void *b, void *names)
{
	const struct candidate *x = a, *y = b;
	const struct cert_names *n = names;
	int order;

	if (x->len != y->len)
		return x->len < y->len ? -1 : 1;
	order = memcmp(n->text + x->name, n->text + y->name, x->len);
	if (order != 0)
		return order;
	if (x->reason != y->reason)
		return x->reason < y->reason ? -1 : 1;
	if (x->not_after_s != y->not_after_s)
		return x->not_after_s > y->not_after_s ? -1 : 1;
	return x->entry < y->entry ? -1 : x->entry > y->entry;
}

/* The end of those with the same name. */
static size_t
group_end(const struct cert_names *n, size_t from)
{
	const struct candidate *first = &n->candidates[from], *c;
	size_t i;

	for (i = from + 1; i < n->n; i++) {
		c = &n->candidates[i];
		if (c->len != first->len ||
		    memcmp(n->text + c->name, n->text + first->name, c->len) !=
			0)
			break;
	}
	return i;
}

/* Odd ones last: they give way to a wildcard that covers the name. */
static void
put_groups(const struct cert_names *n, struct cert_names_table *t, bool odd)
{
	size_t end;

	for (size_t i = 0; i < n->n; i = end) {
		const struct candidate *c = &n->candidates[i];

		end = group_end(n, i);
		if ((c->reason == ODD) == odd &&
		    (!odd || wildcard_of(t, n->text + c->name, c->len) == NULL))
			put(n, t, i, end);
	}
}

/* Of those with the best reason, the first of each kind. */
static void
put(const struct cert_names *n, struct cert_names_table *t, size_t from,
    size_t end)
{
	const struct candidate *best = &n->candidates[from], *c;
	const char *name = n->text + best->name;
	struct cert_image_slot *s = slot_of(t, name, best->len);

	s->hash = CERT_FORM_HASH;
	for (size_t i = best->len; i-- > 0;)
		s->hash = cert_form_hash(s->hash, name[i]);
	s->name.off = (uint32_t)t->text_size;
	s->name.size = (uint32_t)best->len;
	memcpy(t->text + t->text_size, name, best->len);
	t->text_size += best->len;
	for (size_t k = 0; k < CERT_IMAGE_KINDS; k++)
		s->by_kind[k] = CERT_IMAGE_NONE;
	for (size_t i = from; i < end; i++) {
		c = &n->candidates[i];
		if (c->reason == best->reason &&
		    s->by_kind[c->kind] == CERT_IMAGE_NONE)
			s->by_kind[c->kind] = c->entry;
	}
}

/* Where the name is, or would be. */
static struct cert_image_slot *
slot_of(const struct cert_names_table *t, const char *name, size_t len)
{
	uint64_t hash = CERT_FORM_HASH;
	uint32_t i;

	for (size_t j = len; j-- > 0;)
		hash = cert_form_hash(hash, name[j]);
	for (i = cert_form_place(hash, t->n_slots); t->slots[i].name.size != 0;
	     i = (i + 1) & (t->n_slots - 1))
		if (t->slots[i].name.size == len &&
		    memcmp(t->text + t->slots[i].name.off, name, len) == 0)
			break;
	return &t->slots[i];
}

static const struct cert_image_slot *
wildcard_of(const struct cert_names_table *t, const char *name, size_t len)
{
	const char *dot = memchr(name, '.', len);
	const struct cert_image_slot *s;

	if (dot == NULL || dot == name)
		return NULL;
	s = slot_of(t, dot, len - (size_t)(dot - name));
	return s->name.size != 0 ? s : NULL;
}
