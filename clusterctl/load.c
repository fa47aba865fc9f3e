/* load.c: see load.h. */
#include "clusterctl/load.h"

/* A walk in progress; the callbacks know only to stop, so the err waits. */
struct loading {
	struct directory *d;
	struct err *e;
};

static int add_role(const struct role *, void *);
static int add_node(const struct node *, void *);
static struct directory *finish(struct directory *, int rv);

struct directory *
load_registry(struct registry *r, struct err *e)
{
	struct loading l = { directory_new(), e };
	int rv;

	if (registry_snapshot(r, e) == -1)
		return finish(l.d, -1);
	rv = roles_each(r, add_role, &l, e);
	if (rv == 0)
		rv = nodes_each(r, add_node, &l, e);
	registry_snapshot_end(r);
	return finish(l.d, rv);
}

struct directory *
load_roster(struct roster *r, struct err *e)
{
	struct loading l = { directory_new(), e };
	int rv;

	rv = roster_each_role(r, add_role, &l, e);
	if (rv == 0)
		rv = roster_each_node(r, add_node, &l, e);
	return finish(l.d, rv);
}

static int
add_role(const struct role *role, void *arg)
{
	struct loading *l = arg;

	directory_add_role(l->d, role->name);
	return 0;
}

static int
add_node(const struct node *node, void *arg)
{
	struct loading *l = arg;

	return directory_add_node(l->d, node, l->e);
}

static struct directory *
finish(struct directory *d, int rv)
{
	if (rv != 0) {
		directory_free(d);
		return NULL;
	}
	directory_seal(d);
	return d;
}
