/* issue.c: see issue.h. */
#include "common/enroll/issue.h"

#include <stdio.h>
#include <string.h>

#include "common/base/io.h"
#include "common/registry/certs.h"
#include "common/registry/operators.h"
#include "common/registry/roles.h"
#include "common/registry/settings.h"

/* What nodes may ask of each other; role NULL: every node. */
static const struct {
	const char *role, *grant;
} node_grants[] = {
	{ NULL, "roster" },
	{ NULL, "renew" },
	{ ROLE_MASTER, "sync" },
	{ ROLE_MASTER, "custody" },
	{ ROLE_PROXY, "custody" },
};

static bool has_word(const char *words, const char *word);
static void grant_node(const struct node *, struct cert *);
static int sign(struct registry *, enum cert_holder, struct cert *,
    const uint8_t *authority_secret, struct issued *, struct err *);
static void name_and_key(struct cert *, const char *name,
    const uint8_t key[KEY_SIZE]);

int
issue_node(struct registry *r, const char *name, const uint8_t key[KEY_SIZE],
    const uint8_t *authority_secret, int64_t now_s, struct issued *out,
    struct err *e)
{
	struct cert c = { .kind = CERT_NODE, .not_before_s = now_s };
	struct settings set;
	struct node n;

	if (settings_load(r, &set, e) == -1 || nodes_get(r, name, &n, e) == -1)
		return -1;
	name_and_key(&c, name, key);
	c.not_after_s = now_s + set.node_cert_ms / 1000;
	grant_node(&n, &c);
	return sign(r, HOLDER_NODE, &c, authority_secret, out, e);
}

int
issue_operator(struct registry *r, const char *name,
    const uint8_t key[KEY_SIZE], const uint8_t *authority_secret, int64_t now_s,
    struct issued *out, struct err *e)
{
	struct cert c = { .kind = CERT_OPERATOR, .not_before_s = now_s };
	struct settings set;
	struct operator_row op;

	if (settings_load(r, &set, e) == -1 ||
	    operators_get(r, name, &op, e) == -1)
		return -1;
	if (op.until_s != 0 && op.until_s <= now_s)
		return err_set(e, ERR_EXPIRED,
		    "the grants of operator %s have ended (on a master: "
		    "clusterctl operator set %s --ttl ...)",
		    name, name);
	name_and_key(&c, name, key);
	c.not_after_s = now_s + set.operator_cert_ms / 1000;
	if (op.until_s != 0 && c.not_after_s > op.until_s)
		c.not_after_s = op.until_s;
	for (size_t i = 0; i < op.n_grants; i++)
		memcpy(c.grants[c.n_grants++], op.grants[i],
		    sizeof(op.grants[i]));
	return sign(r, HOLDER_OPERATOR, &c, authority_secret, out, e);
}

bool
issue_node_may(const struct node *n, const char *grant)
{
	for (size_t i = 0; i < nitems(node_grants); i++)
		if (strcmp(node_grants[i].grant, grant) == 0 &&
		    (node_grants[i].role == NULL ||
			node_find_role(n, node_grants[i].role) != NULL))
			return true;
	return false;
}

bool
issue_roles_may(const char *roles, const char *grant)
{
	for (size_t i = 0; i < nitems(node_grants); i++)
		if (strcmp(node_grants[i].grant, grant) == 0 &&
		    (node_grants[i].role == NULL ||
			has_word(roles, node_grants[i].role)))
			return true;
	return false;
}

bool
issue_fits(const struct cert *c, const char *roles)
{
	for (size_t i = 0; i < nitems(node_grants); i++)
		if (issue_roles_may(roles, node_grants[i].grant) &&
		    !cert_grants(c, node_grants[i].grant, NULL, 0))
			return false;
	return true;
}

static bool
has_word(const char *words, const char *word)
{
	size_t len = strlen(word), n;

	for (const char *p = words; *p != '\0'; p += n, p += strspn(p, " ")) {
		n = strcspn(p, " ");
		if (n == len && memcmp(p, word, n) == 0)
			return true;
	}
	return false;
}

static void
name_and_key(struct cert *c, const char *name, const uint8_t key[KEY_SIZE])
{
	snprintf(c->name, sizeof(c->name), "%s", name);
	memcpy(c->key, key, KEY_SIZE);
}

static void
grant_node(const struct node *n, struct cert *c)
{
	for (size_t i = 0; i < nitems(node_grants); i++) {
		if ((node_grants[i].role != NULL &&
			node_find_role(n, node_grants[i].role) == NULL) ||
		    cert_grants(c, node_grants[i].grant, NULL, 0))
			continue;
		snprintf(c->grants[c->n_grants++], sizeof(c->grants[0]), "%s",
		    node_grants[i].grant);
	}
}

/* A serial is entered only together with a certificate that bears it. */
static int
sign(struct registry *r, enum cert_holder holder, struct cert *c,
    const uint8_t *authority_secret, struct issued *out, struct err *e)
{
	struct issued i = { .not_after_s = c->not_after_s };
	int rv;

	if (registry_begin(r, e, "issue a certificate to %s", c->name) == -1)
		return -1;
	rv = certs_issue(r, holder, c->name, c->key, c->not_after_s, &c->serial,
	    e);
	if (rv == 0)
		rv = cert_sign(c, authority_secret, i.bytes, &i.size, e);
	if (registry_end(r, rv, e) == -1)
		return -1;
	*out = i;
	return 0;
}
