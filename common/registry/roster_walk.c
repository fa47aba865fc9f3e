/* roster_walk.c: what stands in a roster, by kind; see roster.h. */
#include "common/registry/roster.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/json.h"
#include "common/registry/record.h"
#include "common/registry/roster_form.h"

#define SUGGEST_AMONG 1000 /* names looked at for a "did you mean" */

/* A typed callback on its way through the untyped walk. */
struct walk {
	union {
		node_fn *node;
		role_fn *role;
		site_fn *site;
		site_cert_fn *site_cert;
		operator_fn *op;
		int (*revoked)(uint64_t serial, int64_t not_after_s, void *arg);
	} fn;
	void *arg;
};

struct wanted {
	const char *name;
	struct node *found;
};

struct names {
	size_t n;
	char name[SUGGEST_AMONG][NAME_MAX_LEN + 1];
	const char *list[SUGGEST_AMONG];
};

static roster_line_fn give_node, give_role, give_site, give_site_cert,
    give_operator, give_revoked, take_setting, match_node;
static node_fn collect_name;
static int no_such_node(struct roster *, const char *name, struct err *);

int
roster_each_node(struct roster *r, node_fn *fn, void *arg, struct err *e)
{
	return roster_each_node_with(r, NULL, fn, arg, e);
}

int
roster_each_node_with(struct roster *r, const char *text, node_fn *fn,
    void *arg, struct err *e)
{
	struct walk w = { .fn.node = fn, .arg = arg };

	return roster_each_line(r, "node", text, give_node, &w, e);
}

int
roster_each_role(struct roster *r, role_fn *fn, void *arg, struct err *e)
{
	struct walk w = { .fn.role = fn, .arg = arg };

	return roster_each_line(r, "role", NULL, give_role, &w, e);
}

int
roster_each_site(struct roster *r, site_fn *fn, void *arg, struct err *e)
{
	struct walk w = { .fn.site = fn, .arg = arg };

	return roster_each_line(r, "site", NULL, give_site, &w, e);
}

int
roster_each_site_cert(struct roster *r, site_cert_fn *fn, void *arg,
    struct err *e)
{
	struct walk w = { .fn.site_cert = fn, .arg = arg };

	return roster_each_line(r, "site_cert", NULL, give_site_cert, &w, e);
}

int
roster_each_operator(struct roster *r, operator_fn *fn, void *arg,
    struct err *e)
{
	struct walk w = { .fn.op = fn, .arg = arg };

	return roster_each_line(r, "operator", NULL, give_operator, &w, e);
}

int
roster_each_revoked(struct roster *r,
    int (*fn)(uint64_t serial, int64_t not_after_s, void *arg), void *arg,
    struct err *e)
{
	struct walk w = { .fn.revoked = fn, .arg = arg };

	return roster_each_line(r, "revoked", NULL, give_revoked, &w, e);
}

int
roster_settings(struct roster *r, struct settings *s, struct err *e)
{
	struct settings out;

	option_defaults(&settings_table, &out);
	if (roster_each_line(r, "setting", NULL, take_setting, &out, e) == -1)
		return -1;
	*s = out;
	return 0;
}

int
roster_get_node(struct roster *r, const char *name, struct node *n,
    struct err *e)
{
	struct wanted w = { .name = name, .found = n };
	char needle[NAME_MAX_LEN + 16];
	int rv;

	if (!name_valid(name))
		return no_such_node(r, name, e);
	/* Spares the parsing of nearly all the other lines. */
	snprintf(needle, sizeof(needle), "\"name\":\"%s\"", name);
	rv = roster_each_line(r, "node", needle, match_node, &w, e);
	return rv == 1 ? 0 : rv == 0 ? no_such_node(r, name, e) : -1;
}

static int
match_node(json_t *o, void *arg, struct err *e)
{
	struct wanted *w = arg;
	struct node n;

	if (record_to_node(o, &n, e) == -1)
		return -1;
	if (strcmp(n.name, w->name) != 0)
		return 0;
	*w->found = n;
	return 1;
}

static int
no_such_node(struct roster *r, const char *name, struct err *e)
{
	struct names *names = malloc(sizeof(*names));
	const char *near = NULL;
	struct err ignored;

	if (names != NULL) {
		names->n = 0;
		roster_each_node(r, collect_name, names, &ignored);
		near = name_suggest(name, names->list, names->n);
	}
	if (near != NULL)
		err_set(e, ERR_NO_TARGET,
		    "no such node '%.64s'; did you mean '%s'?", name, near);
	else
		err_set(e, ERR_NO_TARGET, "no such node '%.64s'", name);
	free(names);
	return -1;
}

static int
collect_name(const struct node *n, void *arg)
{
	struct names *names = arg;

	memcpy(names->name[names->n], n->name, sizeof(n->name));
	names->list[names->n] = names->name[names->n];
	return ++names->n == SUGGEST_AMONG;
}

static int
give_node(json_t *o, void *arg, struct err *e)
{
	struct walk *w = arg;
	struct node n;

	return record_to_node(o, &n, e) == -1 ? -1 : w->fn.node(&n, w->arg);
}

static int
give_role(json_t *o, void *arg, struct err *e)
{
	struct walk *w = arg;
	struct role role;

	return record_to_role(o, &role, e) == -1 ? -1 :
						   w->fn.role(&role, w->arg);
}

static int
give_site(json_t *o, void *arg, struct err *e)
{
	struct walk *w = arg;
	struct site s;
	int rv;

	if (record_to_site(o, &s, e) == -1)
		return -1;
	rv = w->fn.site(&s, w->arg);
	site_fini(&s);
	return rv;
}

static int
give_site_cert(json_t *o, void *arg, struct err *e)
{
	struct walk *w = arg;
	struct site_cert c;
	int rv;

	if (record_to_site_cert(o, &c, e) == -1)
		return -1;
	rv = w->fn.site_cert(&c, w->arg);
	site_cert_fini(&c);
	return rv;
}

static int
give_operator(json_t *o, void *arg, struct err *e)
{
	struct walk *w = arg;
	struct operator_row op;

	return record_to_operator(o, &op, e) == -1 ? -1 : w->fn.op(&op, w->arg);
}

static int
give_revoked(json_t *o, void *arg, struct err *e)
{
	struct walk *w = arg;
	int64_t serial, not_after_s;

	if (json_get_int(o, "serial", 0, INT64_MAX, &serial, e) == -1 ||
	    json_get_int(o, "not_after", 0, INT64_MAX, &not_after_s, e) == -1)
		return -1;
	return w->fn.revoked((uint64_t)serial, not_after_s, w->arg);
}

/* A setting, or a value, that only a newer master knows is left at its
 * default: a roster must never stop an older node. */
static int
take_setting(json_t *o, void *arg, struct err *e)
{
	const char *key, *value;
	struct err ignored;

	if (json_get_string(o, "key", 64, &key, e) == -1 ||
	    json_get_string(o, "value", OPTION_TEXT_MAX, &value, e) == -1)
		return -1;
	option_set(&settings_table, arg, key, value, &ignored);
	return 0;
}
