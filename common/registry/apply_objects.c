/* apply_objects.c: nodes and sites made to match a list; see apply.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/registry/apply.h"
#include "common/registry/db.h"
#include "common/registry/nodes.h"
#include "common/registry/record.h"
#include "common/registry/sites.h"

static int apply_node(struct apply *, const struct node *, struct err *);
static int change_node(struct apply *, const struct node *have,
    const struct node *want, struct err *);
static int change_roles(struct apply *, const struct node *have,
    const struct node *want, struct err *);
static int change_ports(struct apply *, const struct node *have,
    const struct node *want, struct err *);
static int note_node(const struct node *, void *gone);
static int walk_nodes(struct registry *, struct apply_gone *, struct err *);
static int drop_aliases(struct apply *, const struct site *want, struct err *);
static int apply_site(struct apply *, const struct site *want, struct err *);
static int host_known(struct registry *, const char *host, struct err *);
static int change_site(struct apply *, const struct site *have,
    const struct site *want, struct err *);
static int each_other_alias(const char *aliases, const char *others,
    int (*fn)(struct apply *, const char *site, const char *host, struct err *),
    struct apply *, const char *site, struct err *);
static bool has_word(const char *words, const char *word);
static int add_alias(struct apply *, const char *site, const char *host,
    struct err *);
static int drop_alias(struct apply *, const char *site, const char *host,
    struct err *);
static int note_site(const struct site *, void *gone);
static int walk_sites(struct registry *, struct apply_gone *, struct err *);

int
apply_nodes(struct apply *a, const json_t *list, struct err *e)
{
	static const struct apply_kind kind = { "node", walk_nodes,
		nodes_remove };
	struct node want;
	json_t *item;
	size_t i;

	if (apply_prune(a, &kind, list, e) == -1)
		return -1;
	json_array_foreach (list, i, item)
		if (record_to_node(item, &want, e) == -1 ||
		    apply_node(a, &want, e) == -1)
			return -1;
	return 0;
}

int
apply_sites(struct apply *a, const json_t *list, struct err *e)
{
	static const struct apply_kind kind = { "site", walk_sites,
		sites_remove };
	/* Twice through the list: an alias may move between two sites, so all
	 * go before any comes. */
	int (*const passes[])(struct apply *, const struct site *,
	    struct err *) = { drop_aliases, apply_site };
	struct site want;
	json_t *item;
	size_t i;
	int rv;

	if (apply_prune(a, &kind, list, e) == -1)
		return -1;
	for (size_t pass = 0; pass < 2; pass++) {
		json_array_foreach (list, i, item) {
			if (record_to_site(item, &want, e) == -1)
				return -1;
			rv = passes[pass](a, &want, e);
			site_fini(&want);
			if (rv == -1)
				return -1;
		}
	}
	return 0;
}

/* ---- nodes ------------------------------------------------------------ */

/* Identity is never taken from a text: a new node gets a UUID of its own and
 * no key. */
static int
apply_node(struct apply *a, const struct node *want, struct err *e)
{
	struct node have, fresh = *want;

	if (nodes_get(a->r, want->name, &have, e) == 0)
		return change_node(a, &have, want, e);
	if (e->code != ERR_NO_TARGET)
		return -1;
	uuid_make(fresh.uuid);
	fresh.has_key = false;
	apply_tell(a, "add node %s %s", want->name, want->addr);
	return nodes_add(a->r, &fresh, e);
}

static int
change_node(struct apply *a, const struct node *have, const struct node *want,
    struct err *e)
{
	char port[8];

	if (strcmp(have->addr, want->addr) != 0) {
		apply_tell(a, "set node %s address %s (was %s)", want->name,
		    want->addr, have->addr);
		if (nodes_set(a->r, want->name, "address", want->addr, e) == -1)
			return -1;
	}
	if (have->agent_port != want->agent_port) {
		apply_tell(a, "set node %s agent_port %u (was %u)", want->name,
		    want->agent_port, have->agent_port);
		snprintf(port, sizeof(port), "%u", want->agent_port);
		if (nodes_set(a->r, want->name, "agent_port", port, e) == -1)
			return -1;
	}
	if (have->state != want->state) {
		apply_tell(a, "set node %s state %s (was %s)", want->name,
		    node_state_name(want->state), node_state_name(have->state));
		if (nodes_set_state(a->r, want->name, want->state, e) == -1)
			return -1;
	}
	if (apply_options(a, &node_options, "node ", want->name, have, want,
		nodes_set, e) == -1 ||
	    change_roles(a, have, want, e) == -1)
		return -1;
	return change_ports(a, have, want, e);
}

static int
change_roles(struct apply *a, const struct node *have, const struct node *want,
    struct err *e)
{
	for (size_t i = 0; i < want->n_roles; i++) {
		const char *role = want->roles[i].name;

		if (node_find_role(have, role) != NULL)
			continue;
		apply_tell(a, "add role %s to node %s", role, want->name);
		if (nodes_add_role(a->r, want->name, role, e) == -1)
			return -1;
	}
	for (size_t i = 0; i < have->n_roles; i++) {
		const char *role = have->roles[i].name;

		if (node_find_role(want, role) != NULL)
			continue;
		apply_tell(a, "remove role %s from node %s", role, want->name);
		if (nodes_remove_role(a->r, want->name, role, e) == -1)
			return -1;
	}
	return 0;
}

static int
change_ports(struct apply *a, const struct node *have, const struct node *want,
    struct err *e)
{
	for (size_t i = 0; i < want->n_roles; i++) {
		const struct node_role *new = &want->roles[i];
		const struct node_role *old = node_find_role(have, new->name);
		uint16_t was = old != NULL ? old->port : 0;

		if (was == new->port)
			continue;
		apply_tell(a, "set node %s port of %s to %u (was %u)",
		    want->name, new->name, new->port, was);
		if (nodes_set_port(a->r, want->name, new->name, new->port, e) ==
		    -1)
			return -1;
	}
	return 0;
}

static int
note_node(const struct node *n, void *gone)
{
	return apply_note(gone, n->name);
}

static int
walk_nodes(struct registry *r, struct apply_gone *gone, struct err *e)
{
	return nodes_each(r, note_node, gone, e);
}

/* ---- sites ------------------------------------------------------------ */

static int
drop_aliases(struct apply *a, const struct site *want, struct err *e)
{
	struct site have;
	int rv = host_known(a->r, want->name, e);

	if (rv != 1)
		return rv;
	if (sites_get(a->r, want->name, &have, e) == -1)
		return -1;
	rv = strcmp(have.name, want->name) != 0 ?
	    /* Its name is an alias elsewhere, and on its way out. */
	    0 :
	    each_other_alias(have.aliases, want->aliases, drop_alias, a,
		want->name, e);
	site_fini(&have);
	return rv;
}

static int
apply_site(struct apply *a, const struct site *want, struct err *e)
{
	struct site have;
	int rv = host_known(a->r, want->name, e);

	if (rv == -1)
		return -1;
	if (rv == 0) {
		apply_tell(a, "add site %s", want->name);
		return sites_add(a->r, want, e);
	}
	if (sites_get(a->r, want->name, &have, e) == -1)
		return -1;
	rv = change_site(a, &have, want, e);
	site_fini(&have);
	return rv;
}

/* 1, 0 or -1.  Asked before sites_get(), whose "did you mean" would cost
 * milliseconds for each of many new sites. */
static int
host_known(struct registry *r, const char *host, struct err *e)
{
	static const char sql[] = "SELECT 1 FROM hosts WHERE host = ?";
	int64_t one;

	return db_int(r, e, &one, sql, TEXT(host));
}

static int
change_site(struct apply *a, const struct site *have, const struct site *want,
    struct err *e)
{
	if (strcmp(have->name, want->name) != 0)
		return err_set(e, ERR_CONFLICT,
		    "host %.80s belongs to site %.80s already", want->name,
		    have->name);
	if (have->enabled != want->enabled) {
		apply_tell(a, "%s site %s",
		    want->enabled ? "enable" : "disable", want->name);
		if (sites_enable(a->r, want->name, want->enabled, e) == -1)
			return -1;
	}
	if (apply_options(a, &site_options, "site ", want->name, have, want,
		sites_set, e) == -1)
		return -1;
	return each_other_alias(want->aliases, have->aliases, add_alias, a,
	    want->name, e);
}

/* Each of `aliases` that is not among `others` (both split by spaces). */
static int
each_other_alias(const char *aliases, const char *others,
    int (*fn)(struct apply *, const char *site, const char *host, struct err *),
    struct apply *a, const char *site, struct err *e)
{
	char host[HOST_MAX_LEN + 1];

	for (const char *p = aliases; p != NULL && *p != '\0';) {
		size_t n = strcspn(p, " ");

		snprintf(host, sizeof(host), "%.*s", (int)n, p);
		p += n + (p[n] == ' ');
		if (!has_word(others, host) && fn(a, site, host, e) == -1)
			return -1;
	}
	return 0;
}

static bool
has_word(const char *words, const char *word)
{
	size_t len = strlen(word);

	for (const char *p = words; p != NULL && *p != '\0';) {
		size_t n = strcspn(p, " ");

		if (n == len && memcmp(p, word, n) == 0)
			return true;
		p += n + (p[n] == ' ');
	}
	return false;
}

static int
add_alias(struct apply *a, const char *site, const char *host, struct err *e)
{
	apply_tell(a, "add alias %s to site %s", host, site);
	return sites_add_alias(a->r, site, host, e);
}

static int
drop_alias(struct apply *a, const char *site, const char *host, struct err *e)
{
	apply_tell(a, "remove alias %s from site %s", host, site);
	return sites_remove_alias(a->r, site, host, e);
}

static int
note_site(const struct site *s, void *gone)
{
	return apply_note(gone, s->name);
}

static int
walk_sites(struct registry *r, struct apply_gone *gone, struct err *e)
{
	return sites_each(r, note_site, gone, e);
}
