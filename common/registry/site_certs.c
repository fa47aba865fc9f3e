/* site_certs.c: see site_certs.h. */
#include "common/registry/site_certs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/io.h"
#include "common/registry/db.h"
#include "common/registry/sites.h"

#define CERT_SELECT                                                         \
	"SELECT s.name, c.kind, c.key, c.chain, c.staple, c.not_before_s, " \
	"c.not_after_s, c.staple_until_s, c.issuer, c.names, "              \
	"(SELECT group_concat(host, ' ') FROM (SELECT host FROM hosts "     \
	"WHERE site_id = s.id ORDER BY alias, host)) "                      \
	"FROM site_certs c JOIN sites s ON s.id = c.site_id"
#define CERT_ORDER " ORDER BY s.name, c.kind DESC"

static const char *const kind_names[] = {
	[SITE_CERT_RSA] = "rsa",
	[SITE_CERT_ECDSA] = "ecdsa",
};

static bool covers(const char *name, size_t name_len, const char *host,
    size_t len);
static int row_cert(struct rows *, struct site_cert *, struct err *);
static int find_site(struct registry *, const char *name, struct err *);
static int put(struct registry *, const struct site_cert *, struct err *);

void
site_cert_fini(struct site_cert *c)
{
	free(c->names);
	free(c->hosts);
	c->names = c->hosts = NULL;
}

const char *
site_cert_kind_name(enum site_cert_kind kind)
{
	return kind_names[kind];
}

int
site_cert_kind_parse(const char *text, enum site_cert_kind *kind, struct err *e)
{
	for (size_t i = 0; i < nitems(kind_names); i++)
		if (strcmp(kind_names[i], text) == 0) {
			*kind = (enum site_cert_kind)i;
			return 0;
		}
	return err_set(e, ERR_USAGE,
	    "'%.40s' is no kind of certificate: rsa or ecdsa", text);
}

int
site_certs_each(struct registry *r, const char *site, site_cert_fn *fn,
    void *arg, struct err *e)
{
	static const char all[] = CERT_SELECT CERT_ORDER;
	static const char one[] = CERT_SELECT " WHERE s.name = ?" CERT_ORDER;
	struct site_cert c;
	struct rows q;
	int rv;

	rv = site == NULL ? rows_open(&q, r, e, all) :
			    rows_open(&q, r, e, one, TEXT(site));
	if (rv == -1)
		return -1;
	while ((rv = rows_next(&q, e)) == 1) {
		if ((rv = row_cert(&q, &c, e)) != 0)
			break;
		rv = fn(&c, arg);
		site_cert_fini(&c);
		if (rv != 0)
			break;
	}
	rows_close(&q);
	return rv;
}

int
site_certs_set(struct registry *r, const struct site_cert *c, struct err *e)
{
	int rv;

	if (registry_begin(r, e, "set the %s certificate of site %s",
		kind_names[c->kind], c->site) == -1)
		return -1;
	rv = site_cert_check_names(c->names, SITE_CERT_NAMES_MAX, e);
	if (rv == 0)
		rv = find_site(r, c->site, e);
	if (rv == 0)
		rv = put(r, c, e);
	return registry_end(r, rv, e);
}

int
site_certs_remove(struct registry *r, const char *site,
    enum site_cert_kind kind, struct err *e)
{
	static const char sql[] =
	    "DELETE FROM site_certs WHERE kind = ?2 AND site_id = "
	    "(SELECT id FROM sites WHERE name = ?1)";
	int rv;

	if (registry_begin(r, e, "remove the %s certificate of site %s",
		kind_names[kind], site) == -1)
		return -1;
	rv = find_site(r, site, e);
	if (rv == 0)
		rv = db_run(r, e, sql, TEXT(site), TEXT(kind_names[kind]));
	if (rv == 0 && db_n_changed(r) == 0)
		rv = err_set(e, ERR_NO_TARGET,
		    "site %.80s has no %s certificate", site, kind_names[kind]);
	return registry_end(r, rv, e);
}

bool
site_cert_covers(const char *names, const char *host, size_t len)
{
	size_t n;

	for (const char *p = names; *p != '\0'; p += n + (p[n] == ' ')) {
		n = strcspn(p, " ");
		if (covers(p, n, host, len))
			return true;
	}
	return false;
}

/* A wildcard stands for exactly one label. */
static bool
covers(const char *name, size_t name_len, const char *host, size_t len)
{
	const char *dot;

	if (name_len == len && memcmp(name, host, len) == 0)
		return true;
	if (name[0] != '*' || host[0] == '*' ||
	    (dot = memchr(host, '.', len)) == NULL || dot == host)
		return false;
	len -= (size_t)(dot - host);
	return name_len - 1 == len && memcmp(name + 1, dot, len) == 0;
}

int
site_cert_check_names(const char *names, size_t max, struct err *e)
{
	char host[HOST_MAX_LEN + 1];
	size_t n;

	if (*names == '\0' || strlen(names) > max)
		return err_set(e, ERR_USAGE,
		    "a certificate has one name at least, and %zu bytes of "
		    "names at most",
		    max);
	for (const char *p = names; *p != '\0'; p += n + (p[n] == ' ')) {
		n = strcspn(p, " ");
		snprintf(host, sizeof(host), "%.*s", (int)n, p);
		if (name_check_host(n < sizeof(host) ? host : p, true, e) == -1)
			return -1;
	}
	return 0;
}

static int
row_cert(struct rows *q, struct site_cert *c, struct err *e)
{
	struct site_cert out = { .names = NULL };
	bool whole;

	row_text(q, out.site, sizeof(out.site));
	if (site_cert_kind_parse(row_text_borrow(q), &out.kind, e) == -1)
		return -1;
	whole = row_blob(q, out.key, sizeof(out.key));
	whole = row_blob(q, out.chain, sizeof(out.chain)) && whole;
	out.has_staple = row_blob(q, out.staple, sizeof(out.staple));
	out.not_before_s = row_int(q);
	out.not_after_s = row_int(q);
	out.staple_until_s = row_int(q);
	row_text(q, out.issuer, sizeof(out.issuer));
	if (!whole)
		return err_set(e, ERR_CORRUPT,
		    "the certificate of site %.80s is damaged", out.site);
	if ((out.names = strdup(row_text_borrow(q))) == NULL ||
	    (out.hosts = strdup(row_text_borrow(q))) == NULL) {
		site_cert_fini(&out);
		return err_set(e, ERR_LOCAL, "out of memory");
	}
	*c = out;
	return 0;
}

/* Words the answer when there is no such site, or it is an alias. */
static int
find_site(struct registry *r, const char *name, struct err *e)
{
	struct site s;
	int rv = 0;

	if (sites_get(r, name, &s, e) == -1)
		return -1;
	if (strcmp(s.name, name) != 0)
		rv = err_set(e, ERR_NO_TARGET,
		    "%.64s is an alias of site %.64s; name that", name, s.name);
	site_fini(&s);
	return rv;
}

/* The chain says all but the staple: where both are the same nothing
 * changes. */
static int
put(struct registry *r, const struct site_cert *c, struct err *e)
{
	static const char sql[] =
	    "INSERT INTO site_certs (site_id, kind, key, chain, staple, "
	    "not_before_s, not_after_s, staple_until_s, issuer, names) "
	    "SELECT id, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10 FROM sites "
	    "WHERE name = ?1 "
	    "ON CONFLICT (site_id, kind) DO UPDATE SET key = excluded.key, "
	    "chain = excluded.chain, staple = excluded.staple, "
	    "not_before_s = excluded.not_before_s, "
	    "not_after_s = excluded.not_after_s, "
	    "staple_until_s = excluded.staple_until_s, "
	    "issuer = excluded.issuer, names = excluded.names "
	    "WHERE chain <> excluded.chain OR staple IS NOT excluded.staple";

	return db_run(r, e, sql, TEXT(c->site), TEXT(kind_names[c->kind]),
	    BLOB(c->key, sizeof(c->key)), BLOB(c->chain, sizeof(c->chain)),
	    BLOB_IF(c->has_staple, c->staple, sizeof(c->staple)),
	    INT(c->not_before_s), INT(c->not_after_s),
	    INT(c->has_staple ? c->staple_until_s : 0), TEXT(c->issuer),
	    TEXT(c->names));
}
