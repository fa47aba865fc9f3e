/* listing.c: see listing.h. */
#include "clusterctl/listing.h"

static int add_sets(const struct nodeset_resolver *, int argc,
    char *const *argv, struct nodeset *, struct err *);

int
listing_select(const struct context *cx, const struct opt_list *roles, int argc,
    char *const *argv, struct nodeset **set, struct err *e)
{
	struct nodeset_resolver known =
	    directory_resolver(context_directory(cx));
	size_t n_roles = roles != NULL ? roles->n : 0;
	struct nodeset *all = nodeset_new();
	int rv = 0;

	if (all == NULL)
		return err_set(e, ERR_LOCAL, "out of memory");
	if (n_roles == 0 && argc == 0)
		rv = known.members(known.arg, NULL, all, e);
	for (size_t i = 0; i < n_roles && rv == 0; i++)
		rv = known.members(known.arg, roles->v[i], all, e);
	if (rv == 0)
		rv = add_sets(&known, argc, argv, all, e);
	if (rv == 0)
		*set = all;
	else
		nodeset_free(all);
	return rv;
}

static int
add_sets(const struct nodeset_resolver *known, int argc, char *const *argv,
    struct nodeset *all, struct err *e)
{
	struct nodeset *part;
	int rv = 0;

	for (int i = 0; i < argc && rv == 0; i++) {
		if (nodeset_parse(argv[i], known, &part, e) == -1)
			return -1;
		rv = nodeset_combine(all, NODESET_UNION, part, e);
		nodeset_free(part);
	}
	return rv;
}
