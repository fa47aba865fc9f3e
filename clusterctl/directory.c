/* directory.c: see directory.h. */
#include "clusterctl/directory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clusterctl/xalloc.h"
#include "common/base/io.h"
#include "common/base/name.h"

struct directory {
	struct dir_node *nodes;
	size_t n_nodes, nodes_room;
	char **roles;
	size_t n_roles, roles_room;
};

static int compare_nodes(const void *, const void *);
static int compare_texts(const void *, const void *);
static const char *intern_role(const struct directory *, const char *);
static const char *nearest_node(const struct directory *, const char *);
static int members(void *arg, const char *role, struct nodeset *, struct err *);
static const char *address(void *arg, const char *text);

struct directory *
directory_new(void)
{
	return xcalloc(1, sizeof(struct directory));
}

void
directory_free(struct directory *d)
{
	if (d == NULL)
		return;
	for (size_t i = 0; i < d->n_nodes; i++) {
		free(d->nodes[i].name);
		free(d->nodes[i].uuid);
		free(d->nodes[i].place);
		free(d->nodes[i].roles);
	}
	for (size_t i = 0; i < d->n_roles; i++)
		free(d->roles[i]);
	free(d->nodes);
	free(d->roles);
	free(d);
}

void
directory_add_role(struct directory *d, const char *name)
{
	if (d->n_roles == d->roles_room) {
		d->roles_room = d->roles_room * 2 + 8;
		d->roles =
		    xreallocarray(d->roles, d->roles_room, sizeof(*d->roles));
	}
	d->roles[d->n_roles++] = xstrdup(name);
}

int
directory_add_node(struct directory *d, const struct node *node, struct err *e)
{
	struct dir_node n = { 0 };

	if (!node_is_unix(node) &&
	    addr_parse(node->addr, node->agent_port, &n.addr, e) == -1)
		return err_wrap(e, "node %s", node->name);
	n.roles = xcalloc(node->n_roles, sizeof(*n.roles));
	for (size_t i = 0; i < node->n_roles; i++) {
		n.roles[i] = intern_role(d, node->roles[i].name);
		if (n.roles[i] == NULL) {
			free(n.roles);
			return err_set(e, ERR_CORRUPT,
			    "node %s has the unknown role %s", node->name,
			    node->roles[i].name);
		}
	}
	n.n_roles = node->n_roles;
	qsort(n.roles, n.n_roles, sizeof(*n.roles), compare_texts);
	n.name = xstrdup(node->name);
	n.uuid = xstrdup(node->uuid);
	n.place = node_is_unix(node) ? xstrdup(node->addr) : NULL;
	n.has_agent = node->has_key && node->agent_port != 0;
	memcpy(n.key, node->key, sizeof(n.key));
	n.cert_not_after_s = node->cert_not_after_s;
	n.state = node->state;
	if (d->n_nodes == d->nodes_room) {
		d->nodes_room = d->nodes_room * 2 + 16;
		d->nodes =
		    xreallocarray(d->nodes, d->nodes_room, sizeof(*d->nodes));
	}
	d->nodes[d->n_nodes++] = n;
	return 0;
}

void
directory_seal(struct directory *d)
{
	size_t i = 1;

	/* A walk of the registry is in order already. */
	while (
	    i < d->n_nodes && compare_nodes(&d->nodes[i - 1], &d->nodes[i]) < 0)
		i++;
	if (i < d->n_nodes)
		qsort(d->nodes, d->n_nodes, sizeof(*d->nodes), compare_nodes);
}

size_t
directory_n_nodes(const struct directory *d)
{
	return d->n_nodes;
}

const struct dir_node *
directory_at(const struct directory *d, size_t i)
{
	return i < d->n_nodes ? &d->nodes[i] : NULL;
}

size_t
directory_n_roles(const struct directory *d)
{
	return d->n_roles;
}

const char *
directory_role_at(const struct directory *d, size_t i)
{
	return i < d->n_roles ? d->roles[i] : NULL;
}

const struct dir_node *
directory_find(const struct directory *d, const char *name)
{
	struct dir_node key = { .name = (char *)name };

	if (d->n_nodes == 0)
		return NULL;
	return bsearch(&key, d->nodes, d->n_nodes, sizeof(*d->nodes),
	    compare_nodes);
}

const struct dir_node *
directory_get(const struct directory *d, const char *name, struct err *e)
{
	const struct dir_node *n = directory_find(d, name);
	const char *near;

	if (n != NULL)
		return n;
	near = nearest_node(d, name);
	if (near != NULL)
		err_set(e, ERR_NO_TARGET,
		    "no such node %.64s; did you mean %s?", name, near);
	else
		err_set(e, ERR_NO_TARGET,
		    "no such node %.64s (try: clusterctl nodes)", name);
	return NULL;
}

int
directory_check_role(const struct directory *d, const char *role, struct err *e)
{
	const char *near;

	if (intern_role(d, role) != NULL)
		return 0;
	near = name_suggest(role, (const char *const *)d->roles, d->n_roles);
	if (near != NULL)
		return err_set(e, ERR_NO_TARGET,
		    "no such role %.64s; did you mean %s?", role, near);
	return err_set(e, ERR_NO_TARGET,
	    "no such role %.64s (try: clusterctl role list)", role);
}

void
directory_node_address(const struct dir_node *n, char buf[ADDR_PLACE_MAX])
{
	if (n->place != NULL)
		snprintf(buf, ADDR_PLACE_MAX, "%s", n->place);
	else if (n->has_agent)
		addr_format(&n->addr, buf);
	else
		addr_format_ip(&n->addr, buf);
}

bool
directory_node_has_role(const struct dir_node *n, const char *role)
{
	for (size_t i = 0; i < n->n_roles; i++)
		if (strcmp(n->roles[i], role) == 0)
			return true;
	return false;
}

struct nodeset_resolver
directory_resolver(const struct directory *d)
{
	return (struct nodeset_resolver){
		.arg = (void *)d,
		.members = members,
		.address = address,
	};
}

static int
compare_nodes(const void *a, const void *b)
{
	const struct dir_node *x = a, *y = b;

	return strcmp(x->name, y->name);
}

static int
compare_texts(const void *a, const void *b)
{
	const char *const *x = a, *const *y = b;

	return strcmp(*x, *y);
}

static const char *
intern_role(const struct directory *d, const char *role)
{
	for (size_t i = 0; i < d->n_roles; i++)
		if (strcmp(d->roles[i], role) == 0)
			return d->roles[i];
	return NULL;
}

static const char *
nearest_node(const struct directory *d, const char *name)
{
	const char **names = xcalloc(d->n_nodes, sizeof(*names)), *near;

	for (size_t i = 0; i < d->n_nodes; i++)
		names[i] = d->nodes[i].name;
	near = name_suggest(name, names, d->n_nodes);
	free(names);
	return near;
}

static int
members(void *arg, const char *role, struct nodeset *set, struct err *e)
{
	const struct directory *d = arg;

	if (role != NULL && directory_check_role(d, role, e) == -1)
		return -1;
	for (size_t i = 0; i < d->n_nodes; i++) {
		const struct dir_node *n = &d->nodes[i];

		if (role != NULL && !directory_node_has_role(n, role))
			continue;
		if (nodeset_add(set, n->name, e) == -1)
			return -1;
	}
	return 0;
}

static const char *
address(void *arg, const char *text)
{
	const struct directory *d = arg;
	struct addr wanted;
	struct err e;

	if (addr_parse(text, 0, &wanted, &e) == -1)
		return NULL;
	for (size_t i = 0; i < d->n_nodes; i++)
		if (d->nodes[i].addr.len != 0 &&
		    addr_same_ip(&d->nodes[i].addr, &wanted))
			return d->nodes[i].name;
	return NULL;
}
