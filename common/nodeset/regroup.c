/* regroup.c: nodeset_fold_roles, a set by the roles that it is made of. */
#include "common/nodeset/nodeset.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct group {
	const char *role;
	struct nodeset *nodes;
};

static int load(struct group *, const struct nodeset_resolver *,
    const char *const *roles, size_t n, struct err *);
static int take(const struct group *, struct nodeset *rest,
    struct nodeset *taken, struct err *);
static int join(const struct nodeset *taken, const struct nodeset *rest,
    const char *sep, char **text, struct err *);
static int by_size(const void *, const void *);

int
nodeset_fold_roles(const struct nodeset *s,
    const struct nodeset_resolver *resolver, const char *const *roles, size_t n,
    const char *sep, char **text, struct err *e)
{
	struct group *group = calloc(n > 0 ? n : 1, sizeof(*group));
	struct nodeset *rest = nodeset_new(), *taken = nodeset_new();
	int rv;

	if (group == NULL || rest == NULL || taken == NULL)
		rv = err_set(e, ERR_LOCAL, "out of memory for a node set");
	else if ((rv = load(group, resolver, roles, n, e)) == 0)
		rv = nodeset_combine(rest, NODESET_UNION, s, e);
	if (rv == 0)
		qsort(group, n, sizeof(*group), by_size);
	for (size_t i = 0; rv == 0 && i < n; i++)
		rv = take(&group[i], rest, taken, e);
	if (rv == 0)
		rv = join(taken, rest, sep, text, e);
	for (size_t i = 0; group != NULL && i < n; i++)
		nodeset_free(group[i].nodes);
	free(group);
	nodeset_free(rest);
	nodeset_free(taken);
	return rv;
}

static int
load(struct group *group, const struct nodeset_resolver *resolver,
    const char *const *roles, size_t n, struct err *e)
{
	for (size_t i = 0; i < n; i++) {
		group[i].role = roles[i];
		if ((group[i].nodes = nodeset_new()) == NULL)
			return err_set(e, ERR_LOCAL,
			    "out of memory for a node set");
		if (resolver->members(resolver->arg, roles[i], group[i].nodes,
			e) == -1 ||
		    nodeset_settle(group[i].nodes, e) == -1)
			return -1;
	}
	return 0;
}

/* Takes the nodes of a role out of the rest if they are all in it. */
static int
take(const struct group *g, struct nodeset *rest, struct nodeset *taken,
    struct err *e)
{
	struct nodeset *missing;
	int rv = -1;

	if (nodeset_count(g->nodes) == 0)
		return 0;
	if ((missing = nodeset_new()) == NULL)
		return err_set(e, ERR_LOCAL, "out of memory for a node set");
	if (nodeset_combine(missing, NODESET_UNION, g->nodes, e) == 0 &&
	    nodeset_combine(missing, NODESET_DIFFERENCE, rest, e) == 0)
		rv = 0;
	if (rv == 0 && nodeset_count(missing) == 0) {
		rv = nodeset_add(taken, g->role, e);
		if (rv == 0)
			rv = nodeset_combine(rest, NODESET_DIFFERENCE, g->nodes,
			    e);
	}
	nodeset_free(missing);
	return rv;
}

/* Roles fold as names do: @chassis[1-3]. */
static int
join(const struct nodeset *taken, const struct nodeset *rest, const char *sep,
    char **text, struct err *e)
{
	bool both = nodeset_count(taken) > 0 && nodeset_count(rest) > 0;
	char *roles = NULL, *names = NULL, *at_sep = NULL;
	int rv = -1;

	if (asprintf(&at_sep, "%s@", sep) == -1) {
		at_sep = NULL;
		err_set(e, ERR_LOCAL, "out of memory for a node set");
	} else if (nodeset_fold(taken, at_sep, &roles, e) == 0 &&
	    nodeset_fold(rest, sep, &names, e) == 0) {
		rv = asprintf(text, "%s%s%s%s", *roles != '\0' ? "@" : "",
		    roles, both ? sep : "", names);
		if (rv == -1)
			err_set(e, ERR_LOCAL, "out of memory for a node set");
	}
	free(at_sep);
	free(roles);
	free(names);
	return rv == -1 ? -1 : 0;
}

static int
by_size(const void *a, const void *b)
{
	const struct group *x = a, *y = b;
	size_t n = nodeset_count(x->nodes), m = nodeset_count(y->nodes);

	if (n != m)
		return n > m ? -1 : 1;
	return strcmp(x->role, y->role);
}
