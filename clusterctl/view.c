/* view.c: see view.h. */
#include "clusterctl/view.h"

#include <string.h>

#include "common/registry/registry.h"
#include "common/registry/roster.h"

struct search {
	const char *name;
	void *found;
	struct err *e;
};

/* The certificates of one site, wanted from all. */
struct certs_of {
	const char *site;
	site_cert_fn *fn;
	void *arg;
};

static site_cert_fn give_if_of;
static int copy_role(const struct role *, void *arg);
static int copy_site(const struct site *, void *arg);
static bool has_alias(const struct site *, const char *host);

const char *
view_cluster_name(const struct context *cx)
{
	struct roster *ro = context_roster(cx);

	return ro != NULL ? roster_cluster_name(ro) :
			    registry_cluster_name(context_registry(cx));
}

int
view_revision(const struct context *cx, int64_t *revision, struct err *e)
{
	struct roster *ro = context_roster(cx);

	if (ro == NULL)
		return registry_revision(context_registry(cx), revision, e);
	*revision = roster_revision(ro);
	return 0;
}

int
view_each_node(const struct context *cx, node_fn *fn, void *arg, struct err *e)
{
	struct roster *ro = context_roster(cx);

	return ro != NULL ? roster_each_node(ro, fn, arg, e) :
			    nodes_each(context_registry(cx), fn, arg, e);
}

int
view_each_role(const struct context *cx, role_fn *fn, void *arg, struct err *e)
{
	struct roster *ro = context_roster(cx);

	return ro != NULL ? roster_each_role(ro, fn, arg, e) :
			    roles_each(context_registry(cx), fn, arg, e);
}

int
view_each_site(const struct context *cx, site_fn *fn, void *arg, struct err *e)
{
	struct roster *ro = context_roster(cx);

	return ro != NULL ? roster_each_site(ro, fn, arg, e) :
			    sites_each(context_registry(cx), fn, arg, e);
}

int
view_each_site_cert(const struct context *cx, const char *site,
    site_cert_fn *fn, void *arg, struct err *e)
{
	struct roster *ro = context_roster(cx);
	struct certs_of c = { site, fn, arg };

	if (ro == NULL)
		return site_certs_each(context_registry(cx), site, fn, arg, e);
	return site == NULL ? roster_each_site_cert(ro, fn, arg, e) :
			      roster_each_site_cert(ro, give_if_of, &c, e);
}

int
view_each_operator(const struct context *cx, operator_fn *fn, void *arg,
    struct err *e)
{
	struct roster *ro = context_roster(cx);

	return ro != NULL ? roster_each_operator(ro, fn, arg, e) :
			    operators_each(context_registry(cx), fn, arg, e);
}

int
view_node(const struct context *cx, const char *name, struct node *n,
    struct err *e)
{
	struct roster *ro = context_roster(cx);

	return ro != NULL ? roster_get_node(ro, name, n, e) :
			    nodes_get(context_registry(cx), name, n, e);
}

int
view_role(const struct context *cx, const char *name, struct role *r,
    struct err *e)
{
	struct roster *ro = context_roster(cx);
	struct search s = { name, r, e };
	int rv;

	if (ro == NULL)
		return roles_get(context_registry(cx), name, r, e);
	if ((rv = roster_each_role(ro, copy_role, &s, e)) == 0)
		return err_set(e, ERR_NO_TARGET,
		    "no such role '%.64s' (try: clusterctl role list)", name);
	return rv == 1 ? 0 : -1;
}

int
view_site(const struct context *cx, const char *host, struct site *site,
    struct err *e)
{
	struct roster *ro = context_roster(cx);
	struct search s = { host, site, e };
	int rv;

	if (ro == NULL)
		return sites_get(context_registry(cx), host, site, e);
	if ((rv = roster_each_site(ro, copy_site, &s, e)) == 0)
		return err_set(e, ERR_NO_TARGET,
		    "no such site '%.200s' (try: clusterctl site list)", host);
	return rv == 1 ? 0 : -1;
}

int
view_settings(const struct context *cx, struct settings *set, struct err *e)
{
	struct roster *ro = context_roster(cx);

	return ro != NULL ? roster_settings(ro, set, e) :
			    settings_load(context_registry(cx), set, e);
}

static int
give_if_of(const struct site_cert *cert, void *arg)
{
	struct certs_of *c = arg;

	return strcmp(cert->site, c->site) == 0 ? c->fn(cert, c->arg) : 0;
}

static int
copy_role(const struct role *r, void *arg)
{
	struct search *s = arg;

	if (strcmp(r->name, s->name) != 0)
		return 0;
	*(struct role *)s->found = *r;
	return 1;
}

static int
copy_site(const struct site *from, void *arg)
{
	struct search *s = arg;
	struct site *to = s->found;

	if (strcmp(from->name, s->name) != 0 && !has_alias(from, s->name))
		return 0;
	*to = *from;
	to->aliases = from->aliases != NULL ? strdup(from->aliases) : NULL;
	if (from->aliases != NULL && to->aliases == NULL)
		return err_set(s->e, ERR_LOCAL, "out of memory");
	return 1;
}

static bool
has_alias(const struct site *site, const char *host)
{
	size_t len = strlen(host);

	for (const char *p = site->aliases; p != NULL && *p != '\0';) {
		size_t n = strcspn(p, " ");

		if (n == len && strncmp(p, host, n) == 0)
			return true;
		p += n + (p[n] == ' ');
	}
	return false;
}
