/* resolve.c: see resolve.h. */
#include "common/nodeset/resolve.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/name.h"

#define ROLES_MAX     10000 /* in one operand */
#define MASKS_MAX     1000  /* each is held against every node */
#define ADDRESSES_MAX 65536 /* in one operand */
#define SHOWN	      100   /* bytes of a set in an error text */

static int learn(struct resolve *, struct err *);
static bool glob(const char *mask, const char *name);
static int difference(const struct nodeset *a, const struct nodeset *b,
    struct nodeset **, struct err *);
static int settle_unknown(struct resolve *, const struct nodeset *unknown,
    bool excluded, struct nodeset *nodes, struct err *);
static int take_addresses(const struct resolve *, const struct nodeset *names,
    struct nodeset *addresses, struct nodeset *nodes, struct err *);
static const char *by_address(const struct resolve *, const char *name);
static int report(struct resolve *, const struct nodeset *unknown,
    bool excluded, struct err *);
static void suggest(struct resolve *, const char *name, char *hint,
    size_t size);
static char *closest(const struct nodeset *known, const char *wrong);
static bool same_but_zeros(const char *a, const char *b);
static bool is_role(const struct resolve *, const char *name);

void
resolve_fini(struct resolve *r)
{
	nodeset_free(r->known);
	r->known = NULL;
}

int
resolve_roles(struct resolve *r, const struct nodeset *roles,
    struct nodeset *nodes, struct err *e)
{
	struct nodeset_iter it;
	const char *role;

	if (nodeset_count(roles) > ROLES_MAX)
		return err_set(e, ERR_USAGE, "more than %d roles at once",
		    ROLES_MAX);
	nodeset_iter_init(&it, roles);
	while ((role = nodeset_iter_next(&it)) != NULL)
		if (r->resolver->members(r->resolver->arg, role, nodes, e) ==
		    -1)
			return -1;
	return 0;
}

int
resolve_all(struct resolve *r, struct nodeset *nodes, struct err *e)
{
	if (learn(r, e) == -1)
		return -1;
	return nodeset_combine(nodes, NODESET_UNION, r->known, e);
}

int
resolve_masks(struct resolve *r, const struct nodeset *masks,
    struct nodeset *nodes, struct err *e)
{
	struct nodeset_iter mask_it, it;
	const char *mask, *name;

	if (nodeset_count(masks) > MASKS_MAX)
		return err_set(e, ERR_USAGE,
		    "a range with a wildcard makes more than %d masks",
		    MASKS_MAX);
	if (learn(r, e) == -1)
		return -1;
	nodeset_iter_init(&mask_it, masks);
	while ((mask = nodeset_iter_next(&mask_it)) != NULL) {
		nodeset_iter_init(&it, r->known);
		while ((name = nodeset_iter_next(&it)) != NULL)
			if (glob(mask, name) &&
			    nodeset_add(nodes, name, e) == -1)
				return -1;
	}
	return 0;
}

int
resolve_names(struct resolve *r, const struct nodeset *names, bool excluded,
    struct nodeset *nodes, struct err *e)
{
	struct nodeset *unknown = NULL, *rest = NULL;
	int rv = -1;

	if (learn(r, e) == -1 || difference(names, r->known, &unknown, e) == -1)
		goto out;
	if (nodeset_count(unknown) == 0) {
		rv = nodeset_combine(nodes, NODESET_UNION, names, e);
		goto out;
	}
	if (difference(names, unknown, &rest, e) == -1 ||
	    nodeset_combine(nodes, NODESET_UNION, rest, e) == -1)
		goto out;
	rv = settle_unknown(r, unknown, excluded, nodes, e);
out:
	nodeset_free(unknown);
	nodeset_free(rest);
	return rv;
}

/* Asks for all nodes, once an expression. */
static int
learn(struct resolve *r, struct err *e)
{
	struct nodeset *all;

	if (r->known != NULL)
		return 0;
	if ((all = nodeset_new()) == NULL)
		return err_set(e, ERR_LOCAL, "out of memory");
	if (r->resolver->members(r->resolver->arg, NULL, all, e) == -1 ||
	    nodeset_settle(all, e) == -1) {
		nodeset_free(all);
		return -1;
	}
	r->known = all;
	return 0;
}

/* '*' and '?'.  Goes back to the last '*' only, which is enough. */
static bool
glob(const char *mask, const char *name)
{
	const char *star = NULL, *retry = NULL;

	while (*name != '\0') {
		if (*mask == '*') {
			star = mask++;
			retry = name;
		} else if (*mask == '?' || *mask == *name) {
			mask++;
			name++;
		} else if (star != NULL) {
			mask = star + 1;
			name = ++retry;
		} else {
			return false;
		}
	}
	while (*mask == '*')
		mask++;
	return *mask == '\0';
}

static int
difference(const struct nodeset *a, const struct nodeset *b,
    struct nodeset **out, struct err *e)
{
	struct nodeset *s;

	if ((s = nodeset_new()) == NULL)
		return err_set(e, ERR_LOCAL, "out of memory");
	if (nodeset_combine(s, NODESET_UNION, a, e) == -1 ||
	    nodeset_combine(s, NODESET_DIFFERENCE, b, e) == -1) {
		nodeset_free(s);
		return -1;
	}
	*out = s;
	return 0;
}

/* Unknown names may be addresses; what is left is an error or stays. */
static int
settle_unknown(struct resolve *r, const struct nodeset *unknown, bool excluded,
    struct nodeset *nodes, struct err *e)
{
	struct nodeset *addresses, *left = NULL;
	int rv = -1;

	if ((addresses = nodeset_new()) == NULL)
		return err_set(e, ERR_LOCAL, "out of memory");
	if (take_addresses(r, unknown, addresses, nodes, e) == -1 ||
	    difference(unknown, addresses, &left, e) == -1)
		goto out;
	if (r->resolver->allow_unknown)
		rv = nodeset_combine(nodes, NODESET_UNION, left, e);
	else if (nodeset_count(left) > 0)
		rv = report(r, left, excluded, e);
	else
		rv = 0;
out:
	nodeset_free(addresses);
	nodeset_free(left);
	return rv;
}

/* Those of the names that are addresses of nodes, and the nodes. */
static int
take_addresses(const struct resolve *r, const struct nodeset *names,
    struct nodeset *addresses, struct nodeset *nodes, struct err *e)
{
	struct nodeset_iter it;
	const char *name, *node;

	if (r->resolver->address == NULL ||
	    nodeset_count(names) > ADDRESSES_MAX)
		return 0;
	nodeset_iter_init(&it, names);
	while ((name = nodeset_iter_next(&it)) != NULL)
		if ((node = by_address(r, name)) != NULL &&
		    (nodeset_add(addresses, name, e) == -1 ||
			nodeset_add(nodes, node, e) == -1))
			return -1;
	return 0;
}

static const char *
by_address(const struct resolve *r, const char *name)
{
	bool v4 = name[0] >= '0' && name[0] <= '9' && strchr(name, '.') != NULL;

	if (!v4 && strchr(name, ':') == NULL)
		return NULL;
	return r->resolver->address(r->resolver->arg, name);
}

static int
report(struct resolve *r, const struct nodeset *unknown, bool excluded,
    struct err *e)
{
	size_t n = nodeset_count(unknown);
	struct nodeset_iter it;
	char *text, hint[160];

	if (nodeset_fold(unknown, ",", &text, e) == -1)
		return -1;
	nodeset_iter_init(&it, unknown);
	suggest(r, nodeset_iter_next(&it), hint, sizeof(hint));
	if (n == 1)
		err_set(e, ERR_NO_TARGET, "%sno such node %.*s%s",
		    excluded ? "cannot exclude: " : "", SHOWN, text, hint);
	else
		err_set(e, ERR_NO_TARGET, "%sno such nodes: %.*s%s (%zu)%s",
		    excluded ? "cannot exclude: " : "", SHOWN, text,
		    strlen(text) > SHOWN ? "..." : "", n, hint);
	free(text);
	return -1;
}

/* "; did you mean web05?", or nothing. */
static void
suggest(struct resolve *r, const char *name, char *hint, size_t size)
{
	char *best;

	*hint = '\0';
	if (is_role(r, name)) {
		snprintf(hint, size, "; %s is a role: write @%s", name, name);
	} else if (strchr(name, ' ') != NULL) {
		snprintf(hint, size, "; names are parted by commas");
	} else if ((best = closest(r->known, name)) != NULL) {
		snprintf(hint, size, "; did you mean %s?", best);
		free(best);
	}
}

/* The known name that differs least: best of all in zeros only.  NULL: none
 * is near. */
static char *
closest(const struct nodeset *known, const char *wrong)
{
	const char **names, *name, *best = NULL;
	size_t n = 0, n_known = nodeset_count(known);
	struct nodeset_iter it;
	char *found;

	if ((names = calloc(n_known, sizeof(*names))) == NULL)
		return NULL;
	nodeset_iter_init(&it, known);
	while (best == NULL && (name = nodeset_iter_next(&it)) != NULL &&
	    (names[n] = strdup(name)) != NULL) {
		if (same_but_zeros(names[n], wrong))
			best = names[n];
		n++;
	}
	if (best == NULL)
		best = name_suggest(wrong, names, n);
	found = best != NULL ? strdup(best) : NULL;
	while (n > 0)
		free((char *)names[--n]);
	free(names);
	return found;
}

static bool
same_but_zeros(const char *a, const char *b)
{
	bool within = false; /* a number, behind its leading zeros */

	for (;; a++, b++) {
		if (!within) {
			a += strspn(a, "0");
			b += strspn(b, "0");
		}
		if (*a != *b || *a == '\0')
			return *a == *b;
		within = *a >= '0' && *a <= '9';
	}
}

static bool
is_role(const struct resolve *r, const char *name)
{
	struct nodeset *nodes = nodeset_new();
	struct err ignored;
	bool is;

	is = nodes != NULL &&
	    r->resolver->members(r->resolver->arg, name, nodes, &ignored) == 0;
	nodeset_free(nodes);
	return is;
}
