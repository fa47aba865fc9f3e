/* cmd_set.c: the settings of the cluster and of its proxies. */
#include "clusterctl/command.h"

#include <stdio.h>
#include <string.h>

#include "clusterctl/output.h"
#include "clusterctl/report.h"
#include "clusterctl/view.h"
#include "common/base/io.h"
#include "common/registry/sites.h"

struct set_opts {
	bool reset;
};

struct get_opts {
	bool all;
};

static const struct opt set_rows[] = {
	{ .name = "reset",
	    .type = OPT_FLAG,
	    .offset = offsetof(struct set_opts, reset),
	    .help = "back to the default" },
};

static const struct opt get_rows[] = {
	{ .name = "all",
	    .letter = 'a',
	    .type = OPT_FLAG,
	    .offset = offsetof(struct get_opts, all),
	    .help = "every setting, with default, unit and meaning" },
};

static int run_set(struct context *, const void *, int, char **, struct err *);
static int run_get(struct context *, const void *, int, char **, struct err *);
static int join_words(int argc, char **argv, char text[OPTION_TEXT_MAX],
    struct err *);
static void remark_on_site(struct registry *, const char *key,
    const char *value);
static void show(const struct option *, const struct settings *);

const struct command cmd_set = {
	.name = "set",
	.usage = "KEY VALUE...|--reset",
	.summary = "change a setting; running programs follow it",
	.about = "Several values make a list.  clusterctl get --all shows "
		 "every setting.\n",
	.examples = "  clusterctl set proxy.http.listen 0.0.0.0:80 [::]:80\n"
		    "  clusterctl set proxy.workers auto\n"
		    "  clusterctl set proxy.keepalive --reset\n",
	.section = SECTION_REGISTRY,
	.needs = NEEDS_REGISTRY,
	OPTS_OF(set_rows, struct set_opts),
	.min_args = 1,
	.max_args = ANY_NUMBER,
	.run = run_set,
};

const struct command cmd_get = {
	.name = "get",
	.usage = "KEY | --all",
	.summary = "the value of a setting, or all of them",
	.section = SECTION_REGISTRY,
	.needs = NEEDS_VIEW,
	OPTS_OF(get_rows, struct get_opts),
	.max_args = 1,
	.run = run_get,
};

static int
run_set(struct context *cx, const void *opts, int argc, char **argv,
    struct err *e)
{
	struct registry *r = context_registry(cx);
	const struct set_opts *o = opts;
	char text[OPTION_TEXT_MAX];

	if (o->reset != (argc == 1))
		return err_set(e, ERR_USAGE,
		    o->reset ? "set: --reset takes no value" :
			       "set %.80s: to which value?  (clusterctl get "
			       "%.80s shows it)",
		    argv[0], argv[0]);
	if (o->reset) {
		if (settings_reset(r, argv[0], e) == -1)
			return -1;
		return report_done(cx, "%s is at its default.", argv[0]);
	}
	if (join_words(argc - 1, argv + 1, text, e) == -1 ||
	    settings_set(r, argv[0], text, e) == -1)
		return -1;
	remark_on_site(r, argv[0], text);
	return report_done(cx, "%s is %.400s.", argv[0], text);
}

static int
join_words(int argc, char **argv, char text[OPTION_TEXT_MAX], struct err *e)
{
	size_t used = 0;

	for (int i = 0; i < argc; i++) {
		int n = snprintf(text + used, OPTION_TEXT_MAX - used, "%s%s",
		    i > 0 ? " " : "", argv[i]);

		if ((size_t)n >= OPTION_TEXT_MAX - used)
			return err_set(e, ERR_USAGE,
			    "the value is longer than %d bytes",
			    OPTION_TEXT_MAX - 1);
		used += (size_t)n;
	}
	return 0;
}

/* A site may be named before it is added: that is no error, but seldom
 * meant. */
static void
remark_on_site(struct registry *r, const char *key, const char *value)
{
	const struct option *row;
	struct site site;
	struct err e;

	if ((row = option_find(&settings_table, key, &e)) == NULL ||
	    strcmp(row->unit, "site") != 0 || strcmp(value, row->fallback) == 0)
		return;
	if (sites_get(r, value, &site, &e) == -1) {
		output_note("%s does nothing so far: %s", key, e.text);
		return;
	}
	if (strcmp(site.name, value) != 0)
		output_note("%s is another name of site %s; %s wants that one",
		    value, site.name, key);
	site_fini(&site);
}

static int
run_get(struct context *cx, const void *opts, int argc, char **argv,
    struct err *e)
{
	const struct get_opts *o = opts;
	const struct option *row;
	struct settings set;

	if (o->all == (argc == 1))
		return err_set(e, ERR_USAGE,
		    "get: say one KEY, or --all to see every setting");
	if (view_settings(cx, &set, e) == -1)
		return -1;
	if (o->all) {
		fields_print(&settings_table, &set);
		return 0;
	}
	if ((row = option_find(&settings_table, argv[0], e)) == NULL)
		return -1;
	show(row, &set);
	return 0;
}

static void
show(const struct option *row, const struct settings *set)
{
	char text[OPTION_TEXT_MAX], rule[256];

	option_text(row, set, text);
	if (!output_is_json()) {
		puts(text);
		return;
	}
	option_rule(row, rule, sizeof(rule));
	output_json(
	    json_pack("{s:s,s:s,s:s,s:s,s:s,s:s,s:b}", "option", row->name,
		"value", text, "default", row->fallback, "unit", row->unit,
		"rule", rule, "help", row->help, "restart", row->restart));
}
