/* cmd_site.c: the customers' sites, one at a time; many: site_intake.h. */
#include "clusterctl/command.h"

#include <stdio.h>
#include <string.h>

#include "clusterctl/cert_keep.h"
#include "clusterctl/output.h"
#include "clusterctl/report.h"
#include "clusterctl/site_intake.h"
#include "common/base/io.h"
#include "common/registry/sites.h"

struct add_opts {
	struct opt_list aliases;
	const char *from_file;
	struct field_values fields;
};

struct disable_opts {
	const char *page;
};

static const struct opt add_rows[] = {
	{ .name = "alias",
	    .type = OPT_LIST,
	    .arg = "HOST",
	    .offset = offsetof(struct add_opts, aliases),
	    .help = "another host name, also *.example.com; may be repeated" },
	{ .name = "from-file",
	    .type = OPT_TEXT,
	    .arg = "FILE",
	    .offset = offsetof(struct add_opts, from_file),
	    .help = "many sites: a name or a JSON object a line; - is stdin" },
};

static const struct opt disable_rows[] = {
	{ .name = "page",
	    .type = OPT_TEXT,
	    .arg = "FILE",
	    .offset = offsetof(struct disable_opts, page),
	    .help = "the page that visitors see" },
};

static int run_add(struct context *, const void *, int, char **, struct err *);
static int run_set(struct context *, const void *, int, char **, struct err *);
static int run_del(struct context *, const void *, int, char **, struct err *);
static int run_enable(struct context *, const void *, int, char **,
    struct err *);
static int run_disable(struct context *, const void *, int, char **,
    struct err *);
static int run_alias(struct context *, const void *, int, char **,
    struct err *);
static int add_one(struct registry *, const char *name, const struct add_opts *,
    struct err *);
static int add_many(struct context *, const struct add_opts *, struct err *);
static int switch_sites(struct context *, bool enabled, const char *page,
    int argc, char **argv, struct err *);

const struct command cmd_site_add = {
	.name = "site add",
	.usage = "NAME [--alias HOST]... [options] | --from-file FILE",
	.summary = "a customer's site, or many at once",
	.about = "Lines of FILE are host names, or objects such as\n"
		 "  {\"name\": \"a.example\", \"aliases\": "
		 "[\"www.a.example\"], \"owner\": \"anna\"}\n"
		 "with the options below as fields.  All are added, or none.\n",
	.examples = "  clusterctl site add a.example --alias www.a.example "
		    "--owner anna --home /home/anna/www\n"
		    "  clusterctl site add --from-file sites.jsonl --role "
		    "worker_http\n",
	.section = SECTION_SITES,
	.needs = NEEDS_REGISTRY,
	OPTS_OF(add_rows, struct add_opts),
	.fields = &site_options,
	.fields_offset = offsetof(struct add_opts, fields),
	.max_args = 1,
	.run = run_add,
};

const struct command cmd_site_set = {
	.name = "site set",
	.usage = "SITE OPTION...",
	.summary = "change a site",
	.section = SECTION_SITES,
	.needs = NEEDS_REGISTRY,
	.opts_size = sizeof(struct field_values),
	.fields = &site_options,
	.min_args = 1,
	.max_args = 1,
	.run = run_set,
};

const struct command cmd_site_del = {
	.name = "site del",
	.usage = "SITE...",
	.summary = "remove sites",
	.section = SECTION_SITES,
	.needs = NEEDS_REGISTRY,
	.min_args = 1,
	.max_args = ANY_NUMBER,
	.run = run_del,
};

const struct command cmd_site_enable = {
	.name = "site enable",
	.usage = "SITE...",
	.summary = "serve disabled sites again",
	.section = SECTION_SITES,
	.needs = NEEDS_REGISTRY,
	.min_args = 1,
	.max_args = ANY_NUMBER,
	.run = run_enable,
};

const struct command cmd_site_disable = {
	.name = "site disable",
	.usage = "SITE... [--page FILE]",
	.summary = "answer 503 for sites (a suspended customer)",
	.section = SECTION_SITES,
	.needs = NEEDS_REGISTRY,
	OPTS_OF(disable_rows, struct disable_opts),
	.min_args = 1,
	.max_args = ANY_NUMBER,
	.run = run_disable,
};

const struct command cmd_site_alias = {
	.name = "site alias",
	.usage = "add|del SITE HOST...",
	.summary = "further host names of a site",
	.examples = "  clusterctl site alias add a.example www.a.example "
		    "'*.a.example'\n",
	.section = SECTION_SITES,
	.needs = NEEDS_REGISTRY,
	.min_args = 3,
	.max_args = ANY_NUMBER,
	.run = run_alias,
};

static int
run_add(struct context *cx, const void *opts, int argc, char **argv,
    struct err *e)
{
	const struct add_opts *o = opts;

	if ((o->from_file != NULL) == (argc == 1))
		return err_set(e, ERR_USAGE,
		    "site add: give one NAME, or --from-file FILE for many");
	if (o->from_file != NULL)
		return add_many(cx, o, e);
	if (add_one(context_registry(cx), argv[0], o, e) == -1)
		return -1;
	return report_done(cx, "Site %s is added.", argv[0]);
}

/* It is accepted, for the home may come later; but not in silence. */
static void
remark_home(const struct site *s)
{
	if (site_lacks_home(s))
		output_note("site %s has no home yet, so --static on does "
			    "nothing (clusterctl site set %s --home DIR)",
		    s->name, s->name);
}

static int
add_one(struct registry *r, const char *name, const struct add_opts *o,
    struct err *e)
{
	struct site s;
	int rv;

	if (name_check_host(name, false, e) == -1)
		return -1;
	site_init(&s, name);
	rv = fields_store(&site_options, &o->fields, &s, e);
	for (size_t i = 0; i < o->aliases.n && rv == 0; i++)
		rv = site_add_alias(&s, o->aliases.v[i], e);
	if (rv == 0)
		rv = sites_add(r, &s, e);
	if (rv == 0)
		remark_home(&s);
	site_fini(&s);
	return rv;
}

static int
add_many(struct context *cx, const struct add_opts *o, struct err *e)
{
	struct site_tally n;

	if (o->aliases.n > 0)
		return err_set(e, ERR_USAGE,
		    "site add: --alias is for one site; in a file, aliases "
		    "is a field");
	if (site_intake(context_registry(cx), o->from_file, &o->fields, &n,
		e) == -1)
		return -1;
	if (n.n_homeless > 0)
		output_note("%zu of them have no home yet, so their static on "
			    "does nothing (clusterctl site set SITE --home "
			    "DIR)",
		    n.n_homeless);
	return report_done(cx, "%zu sites are added.", n.n);
}

static int
run_set(struct context *cx, const void *opts, int argc, char **argv,
    struct err *e)
{
	struct registry *r = context_registry(cx);
	struct site s;
	int rv;

	(void)argc;
	if (!fields_given(opts))
		return err_set(e, ERR_USAGE,
		    "site set: what shall be set? (see clusterctl help site "
		    "set)");
	if (registry_begin(r, e, "set site %.200s", argv[0]) == -1)
		return -1;
	rv = fields_apply(&site_options, opts, r, argv[0], sites_set, e);
	if (registry_end(r, rv, e) == -1 || sites_get(r, argv[0], &s, e) == -1)
		return -1;
	remark_home(&s);
	site_fini(&s);
	return report_done(cx, "Site %s is changed.", argv[0]);
}

static int
run_del(struct context *cx, const void *opts, int argc, char **argv,
    struct err *e)
{
	struct registry *r = context_registry(cx);
	int rv = 0;

	(void)opts;
	if (registry_begin(r, e, "remove site %.150s%s", argv[0],
		argc > 1 ? " ..." : "") == -1)
		return -1;
	for (int i = 0; i < argc && rv == 0; i++)
		rv = sites_remove(r, argv[i], e);
	if (registry_end(r, rv, e) == -1)
		return -1;
	cert_sweep(cx);
	return report_done(cx, "%d site%s removed.", argc, argc > 1 ? "s" : "");
}

static int
run_enable(struct context *cx, const void *opts, int argc, char **argv,
    struct err *e)
{
	(void)opts;
	return switch_sites(cx, true, NULL, argc, argv, e);
}

static int
run_disable(struct context *cx, const void *opts, int argc, char **argv,
    struct err *e)
{
	const struct disable_opts *o = opts;

	return switch_sites(cx, false, o->page, argc, argv, e);
}

static int
switch_sites(struct context *cx, bool enabled, const char *page, int argc,
    char **argv, struct err *e)
{
	struct registry *r = context_registry(cx);
	const char *verb = enabled ? "enable" : "disable";
	int rv = 0;

	if (registry_begin(r, e, "%s site %.150s%s", verb, argv[0],
		argc > 1 ? " ..." : "") == -1)
		return -1;
	for (int i = 0; i < argc && rv == 0; i++) {
		if (page != NULL)
			rv = sites_set(r, argv[i], "page", page, e);
		if (rv == 0)
			rv = sites_enable(r, argv[i], enabled, e);
	}
	if (registry_end(r, rv, e) == -1)
		return -1;
	return report_done(cx, "%d site%s %sd.", argc, argc > 1 ? "s" : "",
	    verb);
}

static int
run_alias(struct context *cx, const void *opts, int argc, char **argv,
    struct err *e)
{
	struct registry *r = context_registry(cx);
	bool add = strcmp(argv[0], "add") == 0;
	int rv = 0;

	(void)opts;
	if (!add && strcmp(argv[0], "del") != 0)
		return err_set(e, ERR_USAGE,
		    "site alias: say add or del, not '%.40s'", argv[0]);
	if (registry_begin(r, e, "%s alias %.120s of %.60s%s", argv[0], argv[2],
		argv[1], argc > 3 ? " ..." : "") == -1)
		return -1;
	for (int i = 2; i < argc && rv == 0; i++)
		rv = add ? sites_add_alias(r, argv[1], argv[i], e) :
			   sites_remove_alias(r, argv[1], argv[i], e);
	if (registry_end(r, rv, e) == -1)
		return -1;
	return report_done(cx, "The aliases of %s are changed.", argv[1]);
}
