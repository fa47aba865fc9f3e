/* check.c: whether a registry is sound; see registry.h. */
#include <stdio.h>
#include <string.h>

#include "common/base/io.h"
#include "common/registry/db.h"
#include "common/registry/nodes.h"
#include "common/registry/operators.h"
#include "common/registry/roles.h"
#include "common/registry/settings.h"
#include "common/registry/site_certs.h"
#include "common/registry/sites.h"
#include "common/registry/tokens.h"

struct findings {
	void (*tell)(const char *sentence, void *arg);
	void *arg;
	size_t n;
};

/* What must find nothing.  Each row found makes a sentence: the row's first
 * column between two texts. */
static const struct {
	const char *sql, *before, *after;
} rules[] = {
	{ "SELECT integrity_check FROM pragma_integrity_check "
	  "WHERE integrity_check <> 'ok'",
	    "the database file is damaged: ", "" },
	{ "SELECT \"table\" || ' row ' || ifnull(rowid, '?') || ' to ' || "
	  "parent "
	  "FROM pragma_foreign_key_check",
	    "a reference leads nowhere: ", "" },
	{ "SELECT 'cluster' WHERE (SELECT count(*) FROM cluster) <> 1",
	    "the row of the ", " is missing" },
	{ "SELECT max(revision) FROM changes HAVING max(revision) <> "
	  "(SELECT revision FROM cluster)",
	    "the change log ends at revision ", ", the registry elsewhere" },
	{ "SELECT serial FROM certs WHERE serial >= "
	  "(SELECT next_serial FROM cluster)",
	    "serial ", " was issued and would be issued again" },
	{ "SELECT name FROM roles WHERE name = 'master' AND "
	  "(SELECT count(*) FROM nodes) > 0 AND NOT EXISTS "
	  "(SELECT 1 FROM node_roles WHERE role = 'master')",
	    "no node has the role ", "" },
	{ "SELECT column1 FROM (VALUES ('master'), ('worker_http'), "
	  "('worker_mysql'), ('storage')) WHERE column1 NOT IN "
	  "(SELECT name FROM roles WHERE predefined = 1)",
	    "the predefined role ", " is missing" },
	{ "SELECT name FROM sites s WHERE NOT EXISTS (SELECT 1 FROM hosts "
	  "WHERE host = s.name AND site_id = s.id AND alias = 0)",
	    "site ", " does not answer to its own name" },
	{ "SELECT host FROM hosts h WHERE alias = 0 AND NOT EXISTS "
	  "(SELECT 1 FROM sites WHERE id = h.site_id AND name = h.host)",
	    "host ", " is the main name of no site" },
	{ "SELECT name FROM nodes n WHERE key IS NOT NULL AND EXISTS "
	  "(SELECT 1 FROM pending p WHERE p.key = n.key)",
	    "node ", " still waits for its approval" },
	{ "SELECT hex(id) FROM tokens t WHERE used < "
	  "(SELECT count(*) FROM token_uses WHERE token_id = t.id)",
	    "token ", " was used more often than it counts" },
};

static int run_rule(struct registry *, size_t rule, struct findings *,
    struct err *);
static void find(struct findings *, const char *before, const char *what,
    const char *after);

/* Reading a value checks it against the table of its options: so each kind
 * is read once. */
static int read_settings(struct registry *, struct err *);
static int read_roles(struct registry *, struct err *);
static int read_nodes(struct registry *, struct err *);
static int read_operators(struct registry *, struct err *);
static int read_tokens(struct registry *, struct err *);
static int read_sites(struct registry *, struct err *);
static int read_site_certs(struct registry *, struct err *);

static int (*const readers[])(struct registry *, struct err *) = {
	read_settings,
	read_roles,
	read_nodes,
	read_operators,
	read_tokens,
	read_sites,
	read_site_certs,
};

int
registry_check(struct registry *r,
    void (*tell)(const char *sentence, void *arg), void *arg, size_t *n_found,
    struct err *e)
{
	struct findings f = { .tell = tell, .arg = arg };
	int rv = 0;

	if (registry_snapshot(r, e) == -1)
		return -1;
	for (size_t i = 0; rv == 0 && i < nitems(rules); i++)
		rv = run_rule(r, i, &f, e);
	for (size_t i = 0; rv == 0 && i < nitems(readers); i++) {
		rv = readers[i](r, e);
		if (rv == -1 && e->code == ERR_CORRUPT) {
			find(&f, "", e->text, "");
			rv = 0;
		}
	}
	registry_snapshot_end(r);
	if (rv == 0)
		*n_found = f.n;
	return rv;
}

/* A rule that stumbles over damage is a finding, not the end: the file is
 * described as far as it can be read. */
static int
run_rule(struct registry *r, size_t rule, struct findings *f, struct err *e)
{
	struct rows q;
	int rv = rows_open(&q, r, e, rules[rule].sql);

	while (rv != -1 && (rv = rows_next(&q, e)) == 1)
		find(f, rules[rule].before, row_text_borrow(&q),
		    rules[rule].after);
	if (rv == -1 && e->code == ERR_CORRUPT) {
		find(f, "", e->text, "");
		rv = 0;
	}
	return rv;
}

static void
find(struct findings *f, const char *before, const char *what,
    const char *after)
{
	char sentence[400];

	snprintf(sentence, sizeof(sentence), "%s%.250s%s", before, what, after);
	f->tell(sentence, f->arg);
	f->n++;
}

static int
read_settings(struct registry *r, struct err *e)
{
	struct settings s;

	return settings_load(r, &s, e);
}

static int
pass_role(const struct role *x, void *arg)
{
	(void)x;
	(void)arg;
	return 0;
}

static int
read_roles(struct registry *r, struct err *e)
{
	return roles_each(r, pass_role, NULL, e);
}

static int
pass_node(const struct node *x, void *arg)
{
	(void)x;
	(void)arg;
	return 0;
}

static int
read_nodes(struct registry *r, struct err *e)
{
	return nodes_each(r, pass_node, NULL, e);
}

static int
pass_operator(const struct operator_row *x, void *arg)
{
	(void)x;
	(void)arg;
	return 0;
}

static int
read_operators(struct registry *r, struct err *e)
{
	return operators_each(r, pass_operator, NULL, e);
}

static int
pass_token(const struct token_row *x, void *arg)
{
	(void)x;
	(void)arg;
	return 0;
}

static int
read_tokens(struct registry *r, struct err *e)
{
	return tokens_each(r, pass_token, NULL, e);
}

static int
pass_site(const struct site *x, void *arg)
{
	(void)x;
	(void)arg;
	return 0;
}

static int
read_sites(struct registry *r, struct err *e)
{
	return sites_each(r, pass_site, NULL, e);
}

static int
pass_site_cert(const struct site_cert *x, void *arg)
{
	(void)x;
	(void)arg;
	return 0;
}

static int
read_site_certs(struct registry *r, struct err *e)
{
	return site_certs_each(r, NULL, pass_site_cert, NULL, e);
}
