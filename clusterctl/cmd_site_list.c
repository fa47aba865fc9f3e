/* cmd_site_list.c: shows sites. */
#include "clusterctl/command.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "clusterctl/output.h"
#include "clusterctl/view.h"
#include "common/base/io.h"

struct list_opts {
	const char *owner, *role;
	bool disabled;
};

static const struct opt list_rows[] = {
	{ .name = "owner",
	    .type = OPT_TEXT,
	    .arg = "USER",
	    .offset = offsetof(struct list_opts, owner),
	    .help = "only this customer's" },
	{ .name = "role",
	    .letter = 'r',
	    .type = OPT_TEXT,
	    .arg = "ROLE",
	    .offset = offsetof(struct list_opts, role),
	    .help = "only those that this role serves" },
	{ .name = "disabled",
	    .type = OPT_FLAG,
	    .offset = offsetof(struct list_opts, disabled),
	    .help = "only disabled ones" },
};

static const struct column site_columns[] = {
	{ .title = "SITE", .key = "name" },
	{ .title = "ENABLED",
	    .key = "enabled",
	    .kind = COLUMN_BOOL,
	    .where = ON_TTY | ON_JSON },
	{ .title = "OWNER", .key = "owner", .where = ON_TTY | ON_JSON },
	{ .title = "ROLE", .key = "role", .where = ON_TTY | ON_JSON },
	{ .title = "HOME", .key = "home", .where = ON_TTY | ON_JSON },
};

static int run_list(struct context *, const void *, int, char **, struct err *);
static int run_show(struct context *, const void *, int, char **, struct err *);
static int put_site(const struct site *, void *arg);
static json_t *describe(const struct site *);
static json_t *alias_list(const char *aliases);

const struct command cmd_site_list = {
	.name = "site list",
	.usage = "[PATTERN] [options]",
	.summary = "the sites, or those whose name matches",
	.about = "In a pipe it prints plain names, one a line.\n",
	.examples = "  clusterctl site list '*.example' --owner anna\n",
	.section = SECTION_SITES,
	.needs = NEEDS_VIEW,
	OPTS_OF(list_rows, struct list_opts),
	.max_args = 1,
	.run = run_list,
};

const struct command cmd_site_show = {
	.name = "site show",
	.usage = "SITE",
	.summary = "a site by its name or an alias",
	.section = SECTION_SITES,
	.needs = NEEDS_VIEW,
	.min_args = 1,
	.max_args = 1,
	.run = run_show,
};

struct selection {
	const struct list_opts *opts;
	const char *pattern;
	struct table *table;
};

static int
run_list(struct context *cx, const void *opts, int argc, char **argv,
    struct err *e)
{
	struct selection s = { opts, argc > 0 ? argv[0] : NULL,
		table_new(site_columns, nitems(site_columns)) };
	int rv = view_each_site(cx, put_site, &s, e);

	table_end(s.table);
	return rv;
}

static int
put_site(const struct site *site, void *arg)
{
	const struct selection *s = arg;
	const struct list_opts *o = s->opts;

	if ((s->pattern != NULL && fnmatch(s->pattern, site->name, 0) != 0) ||
	    (o->owner != NULL && strcmp(o->owner, site->owner) != 0) ||
	    (o->role != NULL && strcmp(o->role, site->role) != 0) ||
	    (o->disabled && site->enabled))
		return 0;
	table_put(s->table, site->name);
	table_put_bool(s->table, site->enabled);
	table_put(s->table, *site->owner != '\0' ? site->owner : NULL);
	table_put(s->table, site->role);
	table_put(s->table, *site->home != '\0' ? site->home : NULL);
	return 0;
}

static int
run_show(struct context *cx, const void *opts, int argc, char **argv,
    struct err *e)
{
	struct site s = { 0 };

	(void)opts;
	(void)argc;
	if (view_site(cx, argv[0], &s, e) == -1)
		return -1;
	if (output_is_json())
		output_json(describe(&s));
	else {
		printf("name     %s\nenabled  %s\naliases  %s\n\n", s.name,
		    s.enabled ? "yes" : "no",
		    s.aliases != NULL && *s.aliases != '\0' ? s.aliases :
							      "none");
		fields_print(&site_options, &s);
	}
	site_fini(&s);
	return 0;
}

static json_t *
describe(const struct site *s)
{
	return json_pack("{s:s,s:I,s:b,s:o,s:o}", "name", s->name, "id",
	    (json_int_t)s->id, "enabled", s->enabled, "aliases",
	    alias_list(s->aliases), "options", fields_json(&site_options, s));
}

static json_t *
alias_list(const char *aliases)
{
	json_t *list = json_array();

	for (const char *p = aliases; p != NULL && *p != '\0';) {
		size_t n = strcspn(p, " ");

		json_array_append_new(list, json_stringn(p, n));
		p += n + (p[n] == ' ');
	}
	return list;
}
