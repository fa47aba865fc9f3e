/* cmd_site_cert.c: site cert: the TLS certificates of a site. */
#include "clusterctl/command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clusterctl/cert_ask.h"
#include "clusterctl/cert_keep.h"
#include "clusterctl/cert_table.h"
#include "clusterctl/output.h"
#include "clusterctl/report.h"
#include "clusterctl/view.h"
#include "clusterctl/xalloc.h"
#include "common/base/io.h"

#define SOON_DAYS 14

struct cert_opts {
	struct cert_files files;
	bool partial, remove;
};

static const struct opt cert_rows[] = {
	{ .name = "cert",
	    .type = OPT_TEXT,
	    .arg = "FILE",
	    .offset = offsetof(struct cert_opts, files.cert),
	    .help = "the certificate and its chain (fullchain.pem)" },
	{ .name = "key",
	    .type = OPT_TEXT,
	    .arg = "FILE",
	    .offset = offsetof(struct cert_opts, files.key),
	    .help = "its private key, not encrypted; also /dev/stdin" },
	{ .name = "chain",
	    .type = OPT_TEXT,
	    .arg = "FILE",
	    .offset = offsetof(struct cert_opts, files.chain),
	    .help = "the chain, where --cert holds the certificate alone" },
	{ .name = "ocsp",
	    .type = OPT_TEXT,
	    .arg = "FILE",
	    .offset = offsetof(struct cert_opts, files.ocsp),
	    .help = "an OCSP response to staple; alone: a fresh one" },
	{ .name = "partial",
	    .type = OPT_FLAG,
	    .offset = offsetof(struct cert_opts, partial),
	    .help =
		"take it though it does not cover all of the site's names" },
	{ .name = "remove",
	    .type = OPT_FLAG,
	    .offset = offsetof(struct cert_opts, remove),
	    .help = "remove the site's certificates, or the one of this kind" },
};

static int run(struct context *, const void *, int, char **, struct err *);
static int check_opts(const struct cert_opts *, int argc, char **argv,
    struct err *);
static int show(struct context *, const char *name, struct err *);
static int put(const struct site_cert *, void *arg);
static int set(struct context *, const char *name, const struct cert_opts *,
    struct err *);
static int get_site(struct context *, const char *name, struct site *,
    struct err *);
static int check_names(const struct site *, const struct cert_opts *,
    const struct cert_answer *, struct err *);
static int refuse_names(const struct cert_opts *, const char *lacking,
    const struct cert_answer *, struct err *);
static int say_done(struct context *, const char *name,
    const struct cert_answer *);
static int staple(struct context *, const char *name, const char *file,
    struct err *);
static int remove_certs(struct context *, const char *name, const char *kind,
    struct err *);

const struct command cmd_site_cert = {
	.name = "site cert",
	.usage = "SITE [--cert FILE --key FILE [options]] | SITE --remove "
		 "[rsa|ecdsa]",
	.summary = "the TLS certificates of a site: show, set, remove",
	.about = "A site has at most one RSA and one ECDSA certificate; a new "
		 "one takes the place\nof the one of its kind, without a "
		 "dropped connection.  It is checked first: that\nthe key "
		 "belongs to it, the order of the chain, names, time and "
		 "strength.\n\nThe key is kept in tls/ of the state "
		 "directory, for root alone, and is in no\nbackup of the "
		 "registry.  Without --key the one that is there is used "
		 "again.\n",
	.examples = "  clusterctl site cert a.example --cert fullchain.pem "
		    "--key privkey.pem\n"
		    "  clusterctl site cert a.example --ocsp fresh.der\n"
		    "  clusterctl site cert a.example --remove rsa\n",
	.section = SECTION_SITES,
	.needs = NEEDS_VIEW,
	OPTS_OF(cert_rows, struct cert_opts),
	.min_args = 1,
	.max_args = 2,
	.run = run,
};

static int
run(struct context *cx, const void *opts, int argc, char **argv, struct err *e)
{
	const struct cert_opts *o = opts;

	if (check_opts(o, argc, argv, e) == -1)
		return -1;
	if (!o->remove && o->files.cert == NULL && o->files.ocsp == NULL)
		return show(cx, argv[0], e);
	if (context_need(cx, NEEDS_REGISTRY, e) == -1)
		return -1;
	if (o->remove)
		return remove_certs(cx, argv[0], argc > 1 ? argv[1] : NULL, e);
	if (o->files.cert == NULL)
		return staple(cx, argv[0], o->files.ocsp, e);
	return set(cx, argv[0], o, e);
}

static int
check_opts(const struct cert_opts *o, int argc, char **argv, struct err *e)
{
	const struct cert_files *f = &o->files;

	if (argc > 1 && !o->remove)
		return err_set(e, ERR_USAGE,
		    "site cert: '%.40s' is too much; a kind stands with "
		    "--remove only",
		    argv[1]);
	if (o->remove &&
	    (f->cert != NULL || f->key != NULL || f->chain != NULL ||
		f->ocsp != NULL))
		return err_set(e, ERR_USAGE,
		    "site cert: --remove goes with no file");
	if (f->cert == NULL &&
	    (f->key != NULL || f->chain != NULL || o->partial))
		return err_set(e, ERR_USAGE,
		    "site cert: which certificate? (--cert FILE)");
	return 0;
}

/* ---- show ------------------------------------------------------------- */

struct showing {
	struct cert_table *table;
	size_t n;
};

static int
show(struct context *cx, const char *name, struct err *e)
{
	struct showing s = { .n = 0 };
	struct site site;
	int rv;

	if (view_site(cx, name, &site, e) == -1)
		return -1;
	s.table = cert_table_new(cx);
	rv = view_each_site_cert(cx, site.name, put, &s, e);
	cert_table_end(s.table);
	if (rv == 0 && s.n == 0 && !output_is_json())
		output_note("site %s has no certificate", site.name);
	site_fini(&site);
	return rv;
}

static int
put(const struct site_cert *c, void *arg)
{
	struct showing *s = arg;

	cert_table_put(s->table, c);
	s->n++;
	return 0;
}

/* ---- set -------------------------------------------------------------- */

static int
set(struct context *cx, const char *name, const struct cert_opts *o,
    struct err *e)
{
	struct cert_answer a;
	struct site site;
	int rv;

	/* Before the files are read: the cheaper mistake. */
	if (get_site(cx, name, &site, e) == -1)
		return -1;
	if ((rv = cert_ask(&o->files, &a, e)) == 0) {
		rv = check_names(&site, o, &a, e);
		if (rv == 0)
			rv = cert_keep(cx, name, &a, e);
		if (rv == 0)
			rv = say_done(cx, name, &a);
		cert_answer_fini(&a);
	}
	site_fini(&site);
	return rv;
}

/* By its own name: an alias may move to another site. */
static int
get_site(struct context *cx, const char *name, struct site *site, struct err *e)
{
	if (sites_get(context_registry(cx), name, site, e) == -1)
		return -1;
	if (strcmp(site->name, name) == 0)
		return 0;
	err_set(e, ERR_NO_TARGET, "%.64s is an alias of site %.64s; name that",
	    name, site->name);
	site_fini(site);
	return -1;
}

static int
check_names(const struct site *site, const struct cert_opts *o,
    const struct cert_answer *a, struct err *e)
{
	const char *aliases = site->aliases != NULL ? site->aliases : "";
	char *lacking = xcalloc(1, sizeof(site->name) + strlen(aliases) + 2);
	char *p = lacking;
	size_t n = strlen(site->name);
	int rv = 0;

	if (!site_cert_covers(a->cert.names, site->name, n))
		p = stpcpy(p, site->name);
	for (const char *host = aliases; *host != '\0';
	     host += n + (host[n] == ' ')) {
		n = strcspn(host, " ");
		if (site_cert_covers(a->cert.names, host, n))
			continue;
		if (p > lacking)
			*p++ = ' ';
		p = mempcpy(p, host, n);
	}
	if (p > lacking)
		rv = refuse_names(o, lacking, a, e);
	free(lacking);
	return rv;
}

static int
refuse_names(const struct cert_opts *o, const char *lacking,
    const struct cert_answer *a, struct err *e)
{
	const char *more = strlen(lacking) > 70 ? "..." : "";

	if (o->partial) {
		output_note("not covered: %s", lacking);
		return 0;
	}
	return err_set(e, ERR_USAGE,
	    "the certificate does not cover: %.70s%s (it is for %.50s%s); get "
	    "one that does, or take it as it is with --partial",
	    lacking, more, a->cert.names,
	    strlen(a->cert.names) > 50 ? "..." : "");
}

static int
say_done(struct context *cx, const char *name, const struct cert_answer *a)
{
	int64_t days = cert_days_left(a->cert.not_after_s);
	json_t *warning;
	size_t i;

	json_array_foreach (a->warnings, i, warning)
		output_note("%s", json_string_value(warning));
	if (days < SOON_DAYS)
		output_note("it ends in %lld day(s)", (long long)days);
	return report_done(cx, "Site %s has an %s certificate for %lld days.",
	    name, a->cert.kind == SITE_CERT_RSA ? "RSA" : "ECDSA",
	    (long long)days);
}

/* ---- a fresh OCSP response -------------------------------------------- */

/* The certificates that a response could be for. */
struct candidates {
	struct site_cert v[SITE_CERT_KINDS];
	size_t n;
};

static int
collect(const struct site_cert *c, void *arg)
{
	struct candidates *all = arg;

	if (all->n < nitems(all->v)) {
		all->v[all->n] = *c;
		all->v[all->n].names = all->v[all->n].hosts = NULL;
		all->n++;
	}
	return 0;
}

static int
staple(struct context *cx, const char *name, const char *file, struct err *e)
{
	struct candidates all = { .n = 0 };
	char dir[PATH_MAX], path[PATH_MAX], base[CUSTODY_NAME_MAX];
	struct cert_files files = { .cert = path, .ocsp = file };
	struct cert_answer a;
	int rv = -1;

	if (site_certs_each(context_registry(cx), name, collect, &all, e) == -1)
		return -1;
	if (all.n == 0)
		return err_set(e, ERR_NO_TARGET,
		    "site %.80s has no certificate to staple for", name);
	state_path(context_state(cx), STATE_TLS, dir);
	for (size_t i = 0; rv == -1 && i < all.n; i++) {
		custody_name(CUSTODY_CHAIN, all.v[i].chain, base);
		if (io_path(path, sizeof(path), dir, base, e) == -1)
			return -1;
		rv = cert_ask(&files, &a, e);
	}
	if (rv == -1)
		return -1;
	rv = cert_keep(cx, name, &a, e);
	cert_answer_fini(&a);
	return rv == 0 ?
	    report_done(cx, "The OCSP response of %s is in force.", name) :
	    -1;
}

/* ---- remove ----------------------------------------------------------- */

static int
remove_certs(struct context *cx, const char *name, const char *kind,
    struct err *e)
{
	struct registry *r = context_registry(cx);
	struct candidates all = { .n = 0 };
	enum site_cert_kind which = SITE_CERT_RSA;
	struct site site;
	int rv;

	if (get_site(cx, name, &site, e) == -1)
		return -1;
	site_fini(&site);
	if ((kind != NULL && site_cert_kind_parse(kind, &which, e) == -1) ||
	    registry_begin(r, e, "remove the certificates of site %s", name) ==
		-1)
		return -1;
	if (kind != NULL)
		rv = site_certs_remove(r, name, which, e);
	else if ((rv = site_certs_each(r, name, collect, &all, e)) == 0 &&
	    all.n == 0)
		rv = err_set(e, ERR_NO_TARGET, "site %.80s has no certificate",
		    name);
	for (size_t i = 0; rv == 0 && i < all.n; i++)
		rv = site_certs_remove(r, name, all.v[i].kind, e);
	if (registry_end(r, rv, e) == -1)
		return -1;
	cert_sweep(cx);
	return report_done(cx, "The certificate%s of %s %s removed.",
	    all.n > 1 ? "s" : "", name, all.n > 1 ? "are" : "is");
}
