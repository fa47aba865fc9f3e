/* view.c: see view.h. */
#include "nodeagent/view.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "common/registry/roles.h"
#include "common/registry/roster.h"

/* A walk over the roster that fills a view. */
struct reading {
	struct view *view;
	const uint8_t *own_key;
	struct err *err;
};

static int read_all(struct roster *, struct reading *);
static int read_nodes(struct roster *, struct reading *);
static int read_self(const struct node *, void *arg);
static int read_master(const struct node *, void *arg);
static int read_revoked(uint64_t serial, int64_t not_after_s, void *arg);
static int compare_serials(const void *, const void *);

int
view_load(struct view *v, const char *path, const uint8_t authority[KEY_SIZE],
    const uint8_t own_key[KEY_SIZE], struct err *e)
{
	struct view fresh = { 0 };
	struct reading r = { &fresh, own_key, e };
	struct roster *roster;

	if ((roster = roster_open(path, authority, e)) == NULL)
		return -1;
	/* Our name and address hold on when our row is gone: the log and
	 * the answers of this agent still need one. */
	memcpy(fresh.name, v->name, sizeof(fresh.name));
	fresh.addr = v->addr;
	if (read_all(roster, &r) == -1) {
		view_fini(&fresh);
		roster_close(roster);
		return -1;
	}
	roster_close(roster);
	view_fini(v);
	*v = fresh;
	return 0;
}

void
view_fini(struct view *v)
{
	free(v->masters);
	free(v->revoked);
	memset(v, 0, sizeof(*v));
}

bool
view_is_revoked(const struct view *v, uint64_t serial)
{
	return v->n_revoked > 0 &&
	    bsearch(&serial, v->revoked, v->n_revoked, sizeof(serial),
		compare_serials) != NULL;
}

bool
view_grants(const struct view *v, const struct cert *c, const char *verb)
{
	char copy[VIEW_ROLES_TEXT], *save = NULL;
	const char *roles[NODE_ROLES_MAX];
	size_t n = 0;

	memcpy(copy, v->roles, sizeof(copy));
	for (char *role = strtok_r(copy, " ", &save);
	     role != NULL && n < NODE_ROLES_MAX;
	     role = strtok_r(NULL, " ", &save))
		roles[n++] = role;
	return cert_grants(c, verb, roles, n);
}

static int
read_all(struct roster *roster, struct reading *r)
{
	struct view *v = r->view;

	v->revision = roster_revision(roster);
	memcpy(v->cluster_uuid, roster_cluster_uuid(roster),
	    sizeof(v->cluster_uuid));
	if (read_nodes(roster, r) != 0 ||
	    roster_each_revoked(roster, read_revoked, r, r->err) != 0)
		return -1;
	if (v->n_revoked > 0)
		qsort(v->revoked, v->n_revoked, sizeof(*v->revoked),
		    compare_serials);
	return 0;
}

/* Two walks that parse a few lines: of a thousand nodes an agent needs no
 * more, and all thousand read the roster whenever it changes. */
static int
read_nodes(struct roster *roster, struct reading *r)
{
	char own_key[2 * KEY_SIZE + 1];

	sodium_bin2hex(own_key, sizeof(own_key), r->own_key, KEY_SIZE);
	if (roster_each_node_with(roster, own_key, read_self, r, r->err) != 0)
		return -1;
	return roster_each_node_with(roster, "\"" ROLE_MASTER "\"", read_master,
	    r, r->err);
}

static int
read_self(const struct node *n, void *arg)
{
	struct reading *r = arg;
	struct view *v = r->view;
	size_t len = 0;

	if (!n->has_key || memcmp(n->key, r->own_key, KEY_SIZE) != 0)
		return 0;
	v->enrolled = true;
	memcpy(v->name, n->name, sizeof(v->name));
	if (addr_parse(n->addr, n->agent_port, &v->addr, r->err) == -1)
		return -1;
	for (size_t i = 0; i < n->n_roles; i++)
		len += (size_t)snprintf(v->roles + len, sizeof(v->roles) - len,
		    "%s%s", i > 0 ? " " : "", n->roles[i].name);
	return 0;
}

static int
read_master(const struct node *n, void *arg)
{
	struct reading *r = arg;
	struct view *v = r->view;
	struct view_master *m;

	if (!n->has_key || node_find_role(n, ROLE_MASTER) == NULL ||
	    v->n_masters == VIEW_MASTERS_MAX)
		return 0;
	m = realloc(v->masters, (v->n_masters + 1) * sizeof(*m));
	if (m == NULL)
		return err_set(r->err, ERR_LOCAL,
		    "out of memory for the masters");
	v->masters = m;
	m += v->n_masters;
	memset(m, 0, sizeof(*m));
	if (addr_parse(n->addr, n->agent_port, &m->addr, r->err) == -1)
		return -1;
	memcpy(m->name, n->name, sizeof(m->name));
	memcpy(m->key, n->key, KEY_SIZE);
	m->is_self = memcmp(n->key, r->own_key, KEY_SIZE) == 0;
	v->n_masters++;
	return 0;
}

static int
read_revoked(uint64_t serial, int64_t not_after_s, void *arg)
{
	struct reading *r = arg;
	struct view *v = r->view;
	uint64_t *more;

	(void)not_after_s;
	/* Grows by doubling: at the powers of two. */
	if ((v->n_revoked & (v->n_revoked - 1)) == 0) {
		more = realloc(v->revoked,
		    (v->n_revoked == 0 ? 1 : v->n_revoked * 2) * sizeof(*more));
		if (more == NULL)
			return err_set(r->err, ERR_LOCAL,
			    "out of memory for the revoked certificates");
		v->revoked = more;
	}
	v->revoked[v->n_revoked++] = serial;
	return 0;
}

static int
compare_serials(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}
