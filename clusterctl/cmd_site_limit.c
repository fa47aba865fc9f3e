/* cmd_site_limit.c: what a site, and each client of it, may use at most. */
#include "clusterctl/command.h"

#include <string.h>

#include "clusterctl/output.h"
#include "clusterctl/proxies.h"
#include "clusterctl/report.h"
#include "clusterctl/view.h"
#include "common/base/io.h"
#include "common/registry/sites.h"

static const struct column columns[] = {
	{ .title = "LIMIT", .key = "limit" },
	{ .title = "VALUE", .key = "value" },
	{ .title = "HIT", .key = "hits", .kind = COLUMN_NUMBER },
	{ .title = "IN USE", .key = "in_use", .kind = COLUMN_NUMBER },
	{ .title = "MEANING", .key = "help", .where = ON_TTY | ON_JSON },
};

static int run(struct context *, const void *, int, char **, struct err *);
static int change(struct context *, const struct field_values *,
    const char *name, struct err *);
static int show(struct context *, const char *host, struct err *);
static void answer(const char *proxy, json_t *, void *);
static void print(const struct site *, json_t *sums);

const struct command cmd_site_limit = {
	.name = "site limit",
	.usage = "SITE [LIMIT...]",
	.summary = "limits of a site and its clients, and what hit them",
	.about =
	    "Without a LIMIT it shows them, with how often each was hit since "
	    "it was set:\nrequests that got 429, responses that were slowed "
	    "down.  A limit is off when\nset to off.  A rate may say how much "
	    "comes at once: 10/s,burst=50.\n",
	.examples = "  clusterctl site limit a.example --requests 100/s "
		    "--client-requests 300/m,burst=50\n"
		    "  clusterctl site limit a.example --client-connections 20 "
		    "--client-bandwidth 2M/s\n"
		    "  clusterctl site limit a.example --requests off\n",
	.section = SECTION_SITES,
	.opts_size = sizeof(struct field_values),
	.fields = &site_limits,
	.min_args = 1,
	.max_args = 1,
	.run = run,
};

static int
run(struct context *cx, const void *opts, int argc, char **argv, struct err *e)
{
	(void)argc;
	return fields_given(opts) ? change(cx, opts, argv[0], e) :
				    show(cx, argv[0], e);
}

static int
change(struct context *cx, const struct field_values *values, const char *name,
    struct err *e)
{
	struct registry *r;
	int rv;

	if (context_need(cx, NEEDS_REGISTRY, e) == -1)
		return -1;
	r = context_registry(cx);
	if (registry_begin(r, e, "limit site %.200s", name) == -1)
		return -1;
	rv = fields_apply(&site_limits, values, r, name, sites_set, e);
	if (registry_end(r, rv, e) == -1)
		return -1;
	return report_done(cx, "The limits of %s are changed.", name);
}

/* --- what they are, and what the proxies say of them */

static int
show(struct context *cx, const char *host, struct err *e)
{
	struct site s = { 0 };
	json_t *question, *sums;
	struct proxies p;
	int rv;

	if (context_need(cx, NEEDS_CLUSTER, e) == -1 ||
	    view_site(cx, host, &s, e) == -1)
		return -1;
	sums = json_object();
	question = json_pack("{s:s s:s}", "ask", "limits", "site", s.name);
	rv = proxies_ask(cx, question, false, answer, sums, &p, e);
	if (rv == 0)
		print(&s, p.n > 0 ? sums : NULL);
	json_decref(question);
	json_decref(sums);
	site_fini(&s);
	return rv;
}

static void
add(json_t *sums, const char *key, json_t *more)
{
	json_object_set_new(sums, key,
	    json_integer(json_integer_value(json_object_get(sums, key)) +
		json_integer_value(more)));
}

static void
answer(const char *proxy, json_t *o, void *arg)
{
	json_t *limits = json_object_get(o, "limits"), *hits;
	const char *name;

	(void)proxy;
	json_object_foreach (json_object_get(limits, "hits"), name, hits)
		add(arg, name, hits);
	add(arg, "in use", json_object_get(limits, "connections"));
}

/* sums NULL: no proxy runs. */
static void
print(const struct site *s, json_t *sums)
{
	struct table *t = table_new(columns, nitems(columns));
	char text[OPTION_TEXT_MAX];

	for (size_t i = 0; i < site_limits.n; i++) {
		const struct option *o = &site_limits.rows[i];
		bool off = option_is_default(o, s);

		option_text(o, s, text);
		table_put(t, o->name);
		table_put(t, text);
		table_colour(t, off ? COLOUR_NONE : COLOUR_BOLD);
		if (off || sums == NULL)
			table_put(t, NULL);
		else
			table_put_number(t,
			    json_integer_value(json_object_get(sums, o->name)));
		if (off || sums == NULL || strcmp(o->name, "connections") != 0)
			table_put(t, NULL);
		else
			table_put_number(t,
			    json_integer_value(
				json_object_get(sums, "in use")));
		table_put(t, o->help);
	}
	table_end(t);
}
