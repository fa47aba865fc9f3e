/* cmd_show_nodes.c: show_nodes: every node as it is right now, who waits for
 * approval, and who was refused. */
#include "clusterctl/command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clusterctl/ask.h"
#include "clusterctl/output.h"
#include "clusterctl/progress.h"
#include "clusterctl/traffic.h"
#include "clusterctl/watch.h"
#include "clusterctl/xalloc.h"
#include "common/base/clock.h"
#include "common/base/io.h"
#include "common/base/json.h"
#include "common/base/text.h"
#include "common/registry/roles.h"
#include "common/registry/tokens.h"

#define CONNECT_MS   3000
#define CERT_WARN_D  14 /* days left that deserve a colour */
#define SKEW_WARN_MS 2000
#define DAY_S	     (24 * 3600)

struct show_opts {
	struct watch_opts watch;
	int64_t connect_ms;
	bool agents, traffic; /* only this half */
};

/* What is known of one node. */
struct shown {
	const struct dir_node *node;
	bool answered;
	char version[NODE_VERSION_LEN + 1];
	int64_t seen_ms; /* wall; 0: never */
	int64_t skew_ms;
	int64_t cert_not_after_s;
	double load; /* -1: unknown */
	char why[200];
};

struct show {
	struct shown *v; /* in the order of the directory */
	size_t n;
	struct table *table;
};

static const struct opt show_rows[] = {
	{ .name = "connect-timeout",
	    .type = OPT_DURATION,
	    .arg = "TIME",
	    .max = 3600 * 1000,
	    .initial = "3s",
	    .offset = offsetof(struct show_opts, connect_ms),
	    .help = "give up a node that does not answer" },
	{ .name = "agents",
	    .type = OPT_FLAG,
	    .offset = offsetof(struct show_opts, agents),
	    .help = "only what the agents say" },
	{ .name = "traffic",
	    .type = OPT_FLAG,
	    .offset = offsetof(struct show_opts, traffic),
	    .help = "only what goes through the proxies" },
};

static const struct opt_set show_sets[] = {
	{ .title = "Options", .rows = show_rows, .n = nitems(show_rows) },
	WATCH_OPTS(struct show_opts),
};

static const struct column columns[] = {
	{ .title = "NODE", .key = "node" },
	{ .title = "STATE", .key = "state" },
	{ .title = "AGENT", .key = "agent" },
	{ .title = "ROLES", .key = "roles", .kind = COLUMN_LIST },
	{ .title = "ADDRESS", .key = "address" },
	{ .title = "VERSION", .key = "version" },
	{ .title = "LOAD", .key = "load", .kind = COLUMN_NUMBER },
	{ .title = "SEEN", .where = ON_TTY },
	{ .title = "SEEN MS",
	    .key = "seen_ms",
	    .kind = COLUMN_NUMBER,
	    .where = ON_JSON | ON_PIPE },
	{ .title = "SKEW MS", .key = "skew_ms", .kind = COLUMN_NUMBER },
	{ .title = "CERT DAYS", .key = "cert_days", .kind = COLUMN_NUMBER },
	{ .title = "WHY", .key = "why" },
};

static int run(struct context *, const void *, int, char **, struct err *);
static int show_both(struct context *, const void *, struct err *);
static int show_agents(struct context *, const struct show_opts *,
    struct err *);
static int ask_all(struct context *, const struct show_opts *, struct show *,
    struct err *);
static void answer(const struct task *, json_t *, void *);
static void take_status(struct shown *, json_t *);
static void look_up_sights(struct context *, struct show *);
static int take_sight(const struct node_sight *, void *);
static void ask_sights(struct context *, struct show *);
static void sights_answer(const struct task *, json_t *, void *);
static struct shown *find(struct show *, const char *name);
static void print_node(struct table *, const struct shown *);
static int print_request(const struct join_request *, struct table *,
    const char *state, const char *why);
static int print_pending(const struct join_request *, void *);
static int print_conflict(const struct join_request *, void *);
static void put_seen(struct table *, int64_t seen_ms);

const struct command cmd_show_nodes = {
	.name = "show_nodes",
	.usage = "[options]",
	.summary = "every node as it is right now",
	.about =
	    "Asks all agents at once.  SEEN is when a node last answered, "
	    "SKEW\n"
	    "how far its clock is ahead, CERT DAYS what is left of its\n"
	    "certificate, WHY what is wrong.  On a master also those who wait\n"
	    "for an approval and those who were refused.\n"
	    "\n"
	    "Where proxies run, a second table has a row for each node, role "
	    "and\n"
	    "proxy: its state there, and SINCE when and WHY, requests ACTIVE "
	    "and\n"
	    "QUEUED just now, TOTAL, FAILED and RETRIED so far, AVERAGE and "
	    "P99\n"
	    "(of the last minute or two) of the time to its first byte, "
	    "requests\n"
	    "and connections a second.\n",
	.section = SECTION_NODES,
	.needs = NEEDS_CLUSTER,
	.sets = show_sets,
	.n_sets = nitems(show_sets),
	.opts_size = sizeof(struct show_opts),
	.run = run,
};

static int
run(struct context *cx, const void *opts, int argc, char **argv, struct err *e)
{
	const struct show_opts *o = opts;

	(void)argc;
	(void)argv;
	return watch_run(cx, &o->watch, show_both, o, e);
}

static int
show_both(struct context *cx, const void *arg, struct err *e)
{
	const struct show_opts *o = arg;
	bool agents = o->agents || !o->traffic;
	struct proxies p;
	int rv = agents ? show_agents(cx, o, e) : 0;

	if (rv != 0 || (o->agents && !o->traffic))
		return rv;
	if (traffic_show(cx, agents, agents, &p, e) == -1)
		return -1;
	return agents && !p.interrupted ? 0 : proxies_status(&p, e);
}

static int
show_agents(struct context *cx, const struct show_opts *o, struct err *e)
{
	const struct directory *d = context_directory(cx);
	struct show s = { .n = directory_n_nodes(d) };
	int rv;

	if (context_need(cx, NEEDS_OPERATOR, e) == -1)
		return -1;
	s.v = xcalloc(s.n, sizeof(*s.v));
	for (size_t i = 0; i < s.n; i++) {
		s.v[i].node = directory_at(d, i);
		s.v[i].load = -1;
	}
	look_up_sights(cx, &s);
	rv = ask_all(cx, o, &s, e);
	s.table = table_new(columns, nitems(columns));
	for (size_t i = 0; rv == 0 && i < s.n; i++)
		print_node(s.table, &s.v[i]);
	if (rv == 0 && context_registry(cx) != NULL &&
	    (pending_each(context_registry(cx), print_pending, s.table, e) ==
		    -1 ||
		conflicts_each(context_registry(cx), print_conflict, s.table,
		    e) == -1))
		rv = -1;
	table_end(s.table);
	free(s.v);
	return rv;
}

static int
ask_all(struct context *cx, const struct show_opts *o, struct show *s,
    struct err *e)
{
	const struct dir_node **nodes = xcalloc(s->n, sizeof(*nodes));
	struct ask ask = {
		.request = json_pack("{s:s}", "verb", "status"),
		.connect_ms = o->connect_ms,
		.show_progress = progress_possible(),
		.answer = answer,
		.arg = s,
	};
	int interrupted = outcome_exit_status(OUTCOME_CANCELLED);
	int rv, status = 0;
	size_t n = 0;

	for (size_t i = 0; i < s->n; i++)
		if (s->v[i].node->has_agent)
			nodes[n++] = s->v[i].node;
	rv = ask_nodes(cx, nodes, n, &ask, &status, e);
	json_decref(ask.request);
	free(nodes);
	return rv == 0 && status == interrupted ? interrupted : rv;
}

static void
answer(const struct task *t, json_t *reply, void *arg)
{
	struct shown *s = find(arg, t->node->name);

	if (t->result.outcome != OUTCOME_OK)
		result_sentence(&t->result, s->why, sizeof(s->why));
	/* To deny is to answer. */
	s->answered = t->result.outcome == OUTCOME_OK ||
	    t->result.outcome == OUTCOME_DENIED;
	if (!s->answered)
		return;
	s->seen_ms = clock_wall_ms();
	s->skew_ms = t->skew_ms;
	if (reply != NULL)
		take_status(s, reply);
}

/* A field that is missing stays unknown: the node may be older than we. */
static void
take_status(struct shown *s, json_t *reply)
{
	const char *version;
	json_t *load; /* borrowed */
	struct err e;

	if (json_opt_string(reply, "version", NODE_VERSION_LEN, NULL, &version,
		&e) == 0 &&
	    version != NULL)
		snprintf(s->version, sizeof(s->version), "%s", version);
	json_opt_int(reply, "cert_not_after_s", 0, INT64_MAX, 0,
	    &s->cert_not_after_s, &e);
	load = json_array_get(json_object_get(reply, "load"), 0);
	if (json_is_number(load))
		s->load = json_number_value(load);
}

/* When each was seen last: the master's agent keeps book. */
static void
look_up_sights(struct context *cx, struct show *s)
{
	struct err e;

	if (context_registry(cx) != NULL)
		nodes_sights(context_registry(cx), take_sight, s, &e);
	else
		ask_sights(cx, s);
}

static int
take_sight(const struct node_sight *sight, void *arg)
{
	struct shown *s = find(arg, sight->name);

	if (s == NULL)
		return 0;
	s->seen_ms = sight->at_ms;
	s->skew_ms = sight->skew_ms;
	memcpy(s->version, sight->version, sizeof(s->version));
	return 0;
}

static void
ask_sights(struct context *cx, struct show *s)
{
	const struct dir_node **masters = xcalloc(s->n, sizeof(*masters));
	struct ask ask = {
		.request = json_pack("{s:s}", "verb", "seen"),
		.connect_ms = CONNECT_MS,
		.answer = sights_answer,
		.arg = s,
	};
	struct err e;
	size_t n = 0;

	for (size_t i = 0; i < s->n; i++)
		if (s->v[i].node->has_agent &&
		    directory_node_has_role(s->v[i].node, ROLE_MASTER))
			masters[n++] = s->v[i].node;
	ask_nodes(cx, masters, n, &ask, NULL, &e);
	json_decref(ask.request);
	free(masters);
}

static void
sights_answer(const struct task *t, json_t *reply, void *arg)
{
	struct node_sight sight = { 0 };
	const char *name, *version;
	json_t *one;
	struct err e;

	(void)t;
	json_object_foreach (json_object_get(reply, "nodes"), name, one) {
		if (json_get_int(one, "at_ms", 0, INT64_MAX, &sight.at_ms,
			&e) == -1 ||
		    json_opt_int(one, "skew_ms", INT64_MIN, INT64_MAX, 0,
			&sight.skew_ms, &e) == -1 ||
		    json_opt_string(one, "version", NODE_VERSION_LEN, "",
			&version, &e) == -1)
			continue;
		snprintf(sight.name, sizeof(sight.name), "%s", name);
		snprintf(sight.version, sizeof(sight.version), "%s", version);
		take_sight(&sight, arg);
	}
}

static struct shown *
find(struct show *s, const char *name)
{
	size_t low = 0, high = s->n;

	while (low < high) {
		size_t mid = (low + high) / 2;
		int c = strcmp(name, s->v[mid].node->name);

		if (c == 0)
			return &s->v[mid];
		if (c < 0)
			high = mid;
		else
			low = mid + 1;
	}
	return NULL;
}

static void
print_node(struct table *t, const struct shown *s)
{
	const struct dir_node *n = s->node;
	int64_t cert_s =
	    s->cert_not_after_s > 0 ? s->cert_not_after_s : n->cert_not_after_s;
	int64_t days = (cert_s - clock_wall_ms() / 1000) / DAY_S;
	char addr[ADDR_PLACE_MAX];

	directory_node_address(n, addr);
	table_put(t, n->name);
	table_put(t, node_state_name(n->state));
	if (n->state != NODE_UP)
		table_colour(t, COLOUR_YELLOW);
	table_put(t, !n->has_agent ? "none" : s->answered ? "up" : "down");
	if (n->has_agent)
		table_colour(t, s->answered ? COLOUR_GREEN : COLOUR_RED);
	table_put_list(t, n->roles, n->n_roles);
	table_put(t, addr);
	table_put(t, s->version[0] != '\0' ? s->version : NULL);
	if (s->load >= 0)
		table_putf(t, "%.2f", s->load);
	else
		table_put(t, NULL);
	put_seen(t, s->seen_ms);
	if (s->seen_ms > 0)
		table_put_number(t, s->skew_ms);
	else
		table_put(t, NULL);
	if (s->skew_ms > SKEW_WARN_MS || s->skew_ms < -SKEW_WARN_MS)
		table_colour(t, COLOUR_YELLOW);
	if (cert_s > 0)
		table_put_number(t, days);
	else
		table_put(t, NULL);
	if (cert_s > 0 && days <= CERT_WARN_D)
		table_colour(t, COLOUR_RED);
	table_put(t, s->why[0] != '\0' ? s->why : NULL);
}

static int
print_pending(const struct join_request *r, void *arg)
{
	return print_request(r, arg, "pending",
	    "waits: compare the fingerprint, then clusterctl approve");
}

static int
print_conflict(const struct join_request *r, void *arg)
{
	return print_request(r, arg, "conflict",
	    r->copied ? "another machine has this node's key: remove it and "
			"enroll both anew" :
			"refused: the name has another key");
}

static int
print_request(const struct join_request *r, struct table *t, const char *state,
    const char *why)
{
	char fingerprint[FINGERPRINT_LEN + 1];

	key_fingerprint(r->key, fingerprint);
	table_put(t, r->name);
	table_put(t, state);
	table_colour(t, COLOUR_YELLOW);
	table_put(t, NULL);
	table_put_list(t, NULL, 0);
	table_putf(t, "%s:%u", r->addr, (unsigned)r->port);
	table_put(t, NULL);
	table_put(t, NULL);
	put_seen(t, r->at_ms);
	table_put(t, NULL);
	table_put(t, NULL);
	table_putf(t, "%s %s", fingerprint, why);
	return 0;
}

/* Two cells: an age for people, a time for programs. */
static void
put_seen(struct table *t, int64_t seen_ms)
{
	int64_t age_ms = clock_wall_ms() - seen_ms;
	char age[32];

	if (seen_ms == 0) {
		table_put(t, "never");
		table_put(t, NULL);
		return;
	}
	text_format_duration(age_ms > 0 ? age_ms / 1000 * 1000 : 0, age,
	    sizeof(age));
	table_putf(t, age_ms < 2000 ? "now" : "%s ago", age);
	table_put_number(t, seen_ms);
}
