/* apply_site_certs.c: certificates of sites made to match a list; see
 * apply.h.  One is known by its site and kind, and is replaced whole. */
#include <stdio.h>
#include <string.h>

#include "common/registry/apply.h"
#include "common/registry/record.h"

#define NAME_SIZE (HOST_MAX_LEN + 16) /* "kind site" */

/* A walk through those of the registry. */
struct present {
	const struct site_cert *want; /* what is looked for */
	bool same;		      /* and it is there like that */
	json_t *index;		      /* of the list: "kind site" */
	json_t *gone;		      /* [site, kind] that it lacks */
	struct err *e;
};

static int apply_one(struct apply *, const struct site_cert *, struct err *);
static int prune(struct apply *, const json_t *list, struct err *);
static int index_list(struct present *, const json_t *list);
static int note_gone(const struct site_cert *, void *arg);
static int compare(const struct site_cert *, void *arg);

int
apply_site_certs(struct apply *a, const json_t *list, struct err *e)
{
	struct site_cert want;
	json_t *item;
	size_t i;
	int rv;

	if (!json_is_array(list))
		return err_set(e, ERR_USAGE,
		    "the certificates of sites are not a list");
	if (prune(a, list, e) == -1)
		return -1;
	json_array_foreach (list, i, item) {
		if (record_to_site_cert(item, &want, e) == -1)
			return -1;
		rv = apply_one(a, &want, e);
		site_cert_fini(&want);
		if (rv == -1)
			return -1;
	}
	return 0;
}

static int
apply_one(struct apply *a, const struct site_cert *want, struct err *e)
{
	struct present p = { .want = want };

	if (site_certs_each(a->r, want->site, compare, &p, e) == -1)
		return -1;
	if (p.same)
		return 0;
	apply_tell(a, "set the %s certificate of site %s",
	    site_cert_kind_name(want->kind), want->site);
	return site_certs_set(a->r, want, e);
}

static int
compare(const struct site_cert *c, void *arg)
{
	struct present *p = arg;

	if (c->kind == p->want->kind)
		p->same =
		    memcmp(c->chain, p->want->chain, sizeof(c->chain)) == 0 &&
		    memcmp(c->key, p->want->key, sizeof(c->key)) == 0 &&
		    c->has_staple == p->want->has_staple &&
		    memcmp(c->staple, p->want->staple, sizeof(c->staple)) == 0;
	return 0;
}

static int
prune(struct apply *a, const json_t *list, struct err *e)
{
	struct present p = { .index = json_object(),
		.gone = json_array(),
		.e = e };
	json_t *item;
	size_t i;
	int rv = index_list(&p, list);

	if (rv == 0)
		rv = site_certs_each(a->r, NULL, note_gone, &p, e);
	json_array_foreach (p.gone, i, item) {
		const char *site = json_string_value(json_array_get(item, 0));
		enum site_cert_kind kind =
		    (enum site_cert_kind)json_integer_value(
			json_array_get(item, 1));

		if (rv != 0)
			break;
		apply_tell(a, "remove the %s certificate of site %s",
		    site_cert_kind_name(kind), site);
		rv = site_certs_remove(a->r, site, kind, e);
	}
	json_decref(p.index);
	json_decref(p.gone);
	return rv;
}

static int
index_list(struct present *p, const json_t *list)
{
	char name[NAME_SIZE];
	json_t *item;
	size_t i;

	json_array_foreach (list, i, item) {
		const char *site =
		    json_string_value(json_object_get(item, "site"));
		const char *kind =
		    json_string_value(json_object_get(item, "kind"));

		if (site == NULL || kind == NULL)
			continue; /* said when it is read */
		snprintf(name, sizeof(name), "%s %s", kind, site);
		if (json_object_set_new(p->index, name, json_true()) == -1)
			return err_set(p->e, ERR_LOCAL, "out of memory");
	}
	return 0;
}

static int
note_gone(const struct site_cert *c, void *arg)
{
	struct present *p = arg;
	char name[NAME_SIZE];

	snprintf(name, sizeof(name), "%s %s", site_cert_kind_name(c->kind),
	    c->site);
	if (json_object_get(p->index, name) != NULL ||
	    json_array_append_new(p->gone,
		json_pack("[s, i]", c->site, (int)c->kind)) == 0)
		return 0;
	return err_set(p->e, ERR_LOCAL, "out of memory");
}
