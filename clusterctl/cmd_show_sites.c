/* cmd_show_sites.c: show_sites: whose traffic goes through the proxies. */
#include "clusterctl/command.h"

#include "clusterctl/json_table.h"
#include "clusterctl/proxies.h"
#include "clusterctl/watch.h"
#include "common/base/io.h"

#define TOP_MAX 10000 /* the proxies answer no more */

struct sites_opts {
	struct watch_opts watch;
	uint64_t top;
	bool owners;
};

/* The table of one showing. */
struct showing {
	const struct sites_opts *opts;
	struct json_table *table;
};

static const struct opt sites_rows[] = {
	{ .name = "top",
	    .letter = 'n',
	    .type = OPT_NUMBER,
	    .arg = "N",
	    .min = 1,
	    .max = TOP_MAX,
	    .initial = "20",
	    .offset = offsetof(struct sites_opts, top),
	    .help = "of each proxy, the N with most requests" },
	{ .name = "owners",
	    .letter = 'o',
	    .type = OPT_FLAG,
	    .offset = offsetof(struct sites_opts, owners),
	    .help = "by owner: all sites of a customer together" },
};

static const struct opt_set sites_sets[] = {
	{ .title = "Options", .rows = sites_rows, .n = nitems(sites_rows) },
	WATCH_OPTS(struct sites_opts),
};

/* Of owners the first and the last are left out. */
static const struct json_column columns[] = {
	{ "SITE", "site", CELL_TEXT },
	{ "OWNER", "owner", CELL_TEXT },
	{ "PROXY", "proxy", CELL_TEXT },
	{ "REQUESTS", "requests", CELL_NUMBER },
	{ "ACTIVE", "active", CELL_NUMBER },
	{ "2XX", "s2xx", CELL_NUMBER },
	{ "3XX", "s3xx", CELL_NUMBER },
	{ "4XX", "s4xx", CELL_NUMBER },
	{ "5XX", "s5xx", CELL_NUMBER },
	{ "ABORTED", "aborted", CELL_NUMBER },
	{ "LIMITED", "limited", CELL_NUMBER },
	{ "IN", "bytes_in", CELL_BYTES },
	{ "OUT", "bytes_out", CELL_BYTES },
	{ "NODE TIME", "node_us", CELL_US },
	{ "TUNNELS", "tunnels", CELL_NUMBER },
	{ "CERT DAYS", "cert_days", CELL_NUMBER },
};

static int run(struct context *, const void *, int, char **, struct err *);
static int show(struct context *, const void *, struct err *);
static void answer(const char *proxy, json_t *, void *);
static void add_rest(struct showing *, const char *proxy, json_t *rest);
static int before(json_t *, json_t *);

const struct command cmd_show_sites = {
	.name = "show_sites",
	.usage = "[options]",
	.summary = "which sites have most traffic",
	.about = "Requests by status, those LIMITED (refused with 429), bytes "
		 "IN and OUT of their\nbodies, the time that nodes spent on "
		 "them: since the counters began, which\nsurvive restarts.  "
		 "CERT DAYS is what is left of the certificate that clients\n"
		 "of the site get.  The last line, (others), is the sum of "
		 "all that --top leaves\nout.\n",
	.examples = "  clusterctl show_sites --top 5 --watch 1s\n"
		    "  clusterctl show_sites --owners --json\n",
	.section = SECTION_SITES,
	.needs = NEEDS_CLUSTER,
	.sets = sites_sets,
	.n_sets = nitems(sites_sets),
	.opts_size = sizeof(struct sites_opts),
	.run = run,
};

static int
run(struct context *cx, const void *opts, int argc, char **argv, struct err *e)
{
	const struct sites_opts *o = opts;

	(void)argc;
	(void)argv;
	return watch_run(cx, &o->watch, show, o, e);
}

static int
show(struct context *cx, const void *arg, struct err *e)
{
	const struct sites_opts *o = arg;
	size_t skip = o->owners ? 1 : 0;
	struct showing s = { o,
		json_table_new(columns + skip, nitems(columns) - 2 * skip,
		    before) };
	json_t *question = json_pack("{s:s s:I s:b}", "ask", "sites", "top",
	    (json_int_t)o->top, "owners", o->owners);
	struct proxies p;
	int rv = proxies_ask(cx, question, false, answer, &s, &p, e);

	json_table_end(s.table);
	json_decref(question);
	return rv == -1 ? -1 : proxies_status(&p, e);
}

static void
answer(const char *proxy, json_t *o, void *arg)
{
	struct showing *s = arg;
	json_t *row;
	size_t i;

	json_array_foreach (json_object_get(o,
				s->opts->owners ? "owners" : "sites"),
	    i, row) {
		json_object_set_new(row, "proxy", json_string(proxy));
		json_table_add(s->table, json_incref(row));
	}
	add_rest(s, proxy, json_object_get(o, "rest"));
}

/* In JSON its name is null, which no site has. */
static void
add_rest(struct showing *s, const char *proxy, json_t *rest)
{
	const char *name = s->opts->owners ? "owner" : "site";

	if (!json_is_object(rest) ||
	    json_integer_value(json_object_get(rest, "requests")) == 0)
		return;
	json_object_set_new(rest, name,
	    output_is_json() ? json_null() : json_string("(others)"));
	json_object_set_new(rest, "proxy", json_string(proxy));
	json_object_set_new(rest, "others", json_true());
	json_table_add(s->table, json_incref(rest));
}

static int
before(json_t *a, json_t *b)
{
	int x = json_is_true(json_object_get(a, "others"));
	int y = json_is_true(json_object_get(b, "others"));

	return x != y ? x - y : json_compare_most(a, b, "requests");
}
