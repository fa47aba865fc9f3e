/* cert_keep.c: see cert_keep.h. */
#include "clusterctl/cert_keep.h"

#include <stdlib.h>
#include <string.h>

#include "clusterctl/output.h"
#include "clusterctl/xalloc.h"
#include "common/registry/registry.h"

/* A file that some certificate uses. */
struct used {
	uint8_t hash[CUSTODY_HASH];
	enum custody_kind kind;
};

struct all_used {
	struct used *v;
	size_t n, room;
};

static int write_files(const struct custody *, const struct cert_answer *,
    struct err *);
static int sweep(const struct custody *, struct registry *, struct err *);
static int note(const struct site_cert *, void *all);
static void add(struct all_used *, enum custody_kind, const uint8_t *hash);
static bool is_used(enum custody_kind, const uint8_t *hash, void *all);
static int compare(const void *, const void *);

int
cert_keep(struct context *cx, const char *site, const struct cert_answer *a,
    struct err *e)
{
	struct registry *r = context_registry(cx);
	struct site_cert c = a->cert;
	struct custody custody;
	struct err left;
	int rv;

	snprintf(c.site, sizeof(c.site), "%s", site);
	if (custody_open(&custody, context_state(cx), e) == -1)
		return -1;
	/* Until the registry names them, a sweep would take the new files. */
	if ((rv = custody_lock(&custody, e)) == 0) {
		rv = write_files(&custody, a, e);
		if (rv == 0)
			rv = site_certs_set(r, &c, e);
		if (sweep(&custody, r, &left) == -1)
			output_note("%s", left.text);
	}
	custody_close(&custody);
	return rv;
}

void
cert_sweep(struct context *cx)
{
	struct custody custody;
	struct err e;

	if (!state_has(context_state(cx), STATE_TLS))
		return;
	if (custody_open(&custody, context_state(cx), &e) == -1) {
		output_note("%s", e.text);
		return;
	}
	if (custody_lock(&custody, &e) == -1 ||
	    sweep(&custody, context_registry(cx), &e) == -1)
		output_note("%s", e.text);
	custody_close(&custody);
}

static int
write_files(const struct custody *custody, const struct cert_answer *a,
    struct err *e)
{
	const struct site_cert *c = &a->cert;

	if (a->key.size == 0 && !custody_has(custody, CUSTODY_KEY, c->key))
		return err_set(e, ERR_USAGE,
		    "the key of this certificate is not here yet: give it "
		    "with --key FILE");
	if (a->key.size > 0 &&
	    custody_write(custody, CUSTODY_KEY, c->key, a->key.at, a->key.size,
		true, e) == -1)
		return -1;
	if (c->has_staple &&
	    custody_write(custody, CUSTODY_STAPLE, c->staple, a->staple.at,
		a->staple.size, true, e) == -1)
		return -1;
	return custody_write(custody, CUSTODY_CHAIN, c->chain, a->chain.at,
	    a->chain.size, true, e);
}

static int
sweep(const struct custody *custody, struct registry *r, struct err *e)
{
	struct all_used all = { NULL, 0, 0 };
	int rv = site_certs_each(r, NULL, note, &all, e);

	if (rv == 0) {
		if (all.n > 0)
			qsort(all.v, all.n, sizeof(*all.v), compare);
		rv = custody_sweep(custody, is_used, &all, e);
	}
	free(all.v);
	return rv;
}

static int
note(const struct site_cert *c, void *all)
{
	add(all, CUSTODY_KEY, c->key);
	add(all, CUSTODY_CHAIN, c->chain);
	if (c->has_staple)
		add(all, CUSTODY_STAPLE, c->staple);
	return 0;
}

static void
add(struct all_used *all, enum custody_kind kind, const uint8_t *hash)
{
	if (all->n == all->room) {
		all->room = all->room == 0 ? 64 : all->room * 2;
		all->v = xreallocarray(all->v, all->room, sizeof(*all->v));
	}
	memset(&all->v[all->n], 0, sizeof(*all->v));
	memcpy(all->v[all->n].hash, hash, CUSTODY_HASH);
	all->v[all->n++].kind = kind;
}

static bool
is_used(enum custody_kind kind, const uint8_t *hash, void *arg)
{
	const struct all_used *all = arg;
	struct used key = { .kind = kind };

	memcpy(key.hash, hash, CUSTODY_HASH);
	return all->n > 0 &&
	    bsearch(&key, all->v, all->n, sizeof(key), compare) != NULL;
}

static int
compare(const void *a, const void *b)
{
	const struct used *x = a, *y = b;
	int order = memcmp(x->hash, y->hash, CUSTODY_HASH);

	return order != 0 ? order : (int)x->kind - (int)y->kind;
}
